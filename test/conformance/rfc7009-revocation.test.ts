import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import t from 'tap'
import { callApi, obtainTokens, post, postAs, refresh, register, type Tokens } from '../helpers/flow.ts'
import { assertRejected, challengeOf, introspect, isAlive, startFlow } from '../helpers/wire.ts'

const { server, client, agent, tokens } = await startFlow(t)
const path = '/api/oauth/revoke'
const revoke = (token: string, fields = {}, of = client) => postAs(server, of, path, { token, ...fields })

t.test(
  '[service-4-revoke-form] [service-5-revoke-both-kinds] [rfc7009-2-access-revocation] [rfc7009-2.1-access-may-cascade] an access token ends at once, and its grant stays active',
  async (t) => {
    const { access_token: token, refresh_token: refreshToken } = await tokens({
      scope: 'openid courses:read',
    })
    t.equal((await callApi(server, '/api/courses', token)).status, 200)
    const response = await revoke(token)
    t.equal(response.status, 200, '[rfc7009-2.2-ok-200]')
    t.equal(await response.text(), '', '[rfc7009-2.2-ok-200] the body is empty')
    t.equal(response.headers.get('cache-control'), 'no-store')
    const call = await callApi(server, '/api/courses', token)
    t.equal(challengeOf(call).params['error'], 'invalid_token', '[rfc7009-2.1-immediate] the next call')
    await assertRejected(t, call, 'invalid_token', 401, '[service-5-revoke-both-kinds] access token')
    t.strictSame(await introspect(server, client, token), { active: false }, '[service-4-revoke-form]')
    const { active } = await introspect(server, client, refreshToken)
    t.equal(active, true, '[rfc7009-2.1-access-may-cascade] the grant goes on')
    t.equal((await refresh(server, client, refreshToken)).status, 200)
  },
)

t.test(
  '[service-5-revoke-both-kinds] [rfc7009-2-refresh-revocation] [rfc7009-2.1-refresh-cascades] revoking a refresh token ends its grant',
  async (t) => {
    const { access_token: token, refresh_token: refreshToken } = await tokens()
    const other = await tokens()
    t.ok(await isAlive(server, token))
    t.equal((await revoke(refreshToken)).status, 200, '[rfc7009-2-refresh-revocation]')
    const rejected = await refresh(server, client, refreshToken)
    await assertRejected(t, rejected, 'invalid_grant', 400, '[rfc7009-2-refresh-revocation]')
    t.notOk(await isAlive(server, token), '[rfc7009-2.1-refresh-cascades]')
    t.strictSame(await introspect(server, client, token), { active: false })
    t.strictSame(await introspect(server, client, refreshToken), { active: false })
    t.ok(await isAlive(server, other.access_token), 'another grant of the same client is untouched')
  },
)

t.test('an older refresh token of the family ends the grant as well', async (t) => {
  const first = await tokens()
  const second = (await (await refresh(server, client, first.refresh_token)).json()) as Tokens
  t.equal((await revoke(first.refresh_token)).status, 200)
  await assertRejected(t, await refresh(server, client, second.refresh_token), 'invalid_grant')
  t.notOk(await isAlive(server, second.access_token))
})

t.test(
  '[rfc7009-2.1-hint-extends-search] [rfc7009-2.2-bad-hint-ignored] a wrong or unknown hint does not hide a token',
  async (t) => {
    for (const hint of ['access_token', 'foo', 'saml2_token', '']) {
      const { access_token: token, refresh_token: refreshToken } = await tokens()
      const clause =
        hint === 'access_token' ? '[rfc7009-2.1-hint-extends-search]' : '[rfc7009-2.2-bad-hint-ignored]'
      t.equal((await revoke(refreshToken, { token_type_hint: hint })).status, 200, `${clause} ${hint}`)
      const revoked = await refresh(server, client, refreshToken)
      await assertRejected(t, revoked, 'invalid_grant', 400, `${clause} ${hint}`)
      t.notOk(await isAlive(server, token), hint)
    }
    const { access_token: token } = await tokens()
    t.equal((await revoke(token, { token_type_hint: 'refresh_token' })).status, 200)
    t.notOk(await isAlive(server, token))
  },
)

t.test(
  '[rfc7009-2.2-unknown-token-200] unknown, garbled, expired and already revoked tokens get a 200',
  async (t) => {
    const { access_token: token, refresh_token: refreshToken, id_token: idToken } = await tokens()
    const unknown = ['garbage', '"\\', 'lyc_access_', `${token}A`, token.slice(0, -2), idToken, 'eyJ.eyJ.x']
    for (const text of unknown) t.equal((await revoke(text)).status, 200, text.slice(0, 20))
    t.ok(await isAlive(server, token), 'none of them was this token')
    for (let times = 0; times < 2; times += 1) t.equal((await revoke(refreshToken)).status, 200)
    t.equal((await revoke(token)).status, 200, 'the access token that died with it')
    const { access_token: old } = await tokens()
    server.advance(server.deps.config.lifetimes.accessTokenSeconds)
    t.equal((await revoke(old)).status, 200)
    const { refresh_token: unused } = await tokens()
    server.advance(server.deps.config.lifetimes.refreshTokenIdleSeconds)
    t.equal((await revoke(unused)).status, 200)
    await assertRejected(t, await refresh(server, client, unused), 'invalid_grant')
  },
)

t.test('[rfc7009-2.1-token-required] a request without token is rejected', async (t) => {
  for (const token of [undefined, '']) {
    await assertRejected(t, await postAs(server, client, path, { token }), 'invalid_request')
  }
  const { access_token: token } = await tokens()
  await assertRejected(
    t,
    await post(server, path, { token: [token, token], client_id: client.id }),
    'invalid_request',
  )
  t.ok(await isAlive(server, token))
})

t.test(
  '[rfc7009-2.1-confidential-authenticates] [rfc7009-5-public-sends-client-id] the client is authenticated first, and a rejected request does not revoke the token',
  async (t) => {
    const byPost = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
    const byBasic = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
    for (const caller of [byPost, byBasic]) {
      const { access_token: token } = await obtainTokens(server, caller, { agent })
      const asNobody: Record<string, string | undefined>[] = [
        {},
        { client_id: '' },
        { client_id: 'client_nobody' },
        { client_id: caller.id },
        { client_id: caller.id, client_secret: 'wrong' },
      ]
      for (const fields of asNobody) {
        const response = await post(server, path, { token, ...fields })
        await assertRejected(
          t,
          response,
          fields['client_id'] ? 'invalid_client' : 'invalid_request',
          400,
          JSON.stringify(fields),
        )
      }
      const authorization = `Basic ${btoa(`${caller.id}:wrong`)}`
      const byHeader = await post(server, path, { token }, { authorization })
      t.equal(challengeOf(byHeader).scheme, 'Basic')
      await assertRejected(t, byHeader, 'invalid_client', 401, '[rfc7009-2.1-confidential-authenticates]')
      t.ok(await isAlive(server, token), caller.method)
      t.equal((await revoke(token, {}, caller)).status, 200)
      t.notOk(await isAlive(server, token), caller.method)
    }
    const { access_token: token } = await tokens()
    const clause = '[rfc7009-5-public-sends-client-id]'
    await assertRejected(t, await post(server, path, { token }), 'invalid_request', 400, clause)
    const unknown = await post(server, path, { token, client_id: 'client_nobody' })
    await assertRejected(t, unknown, 'invalid_client', 400, clause)
    t.ok(await isAlive(server, token))
  },
)

t.test("[rfc7009-2.1-issued-to-client] another client's token is rejected and stays valid", async (t) => {
  const other = await register(server)
  const { access_token: token, refresh_token: refreshToken } = await tokens()
  await assertRejected(t, await revoke(token, {}, other), 'invalid_grant')
  await assertRejected(t, await revoke(refreshToken, {}, other), 'invalid_grant')
  t.ok(await isAlive(server, token))
  t.equal((await refresh(server, client, refreshToken)).status, 200)
})

t.test(
  '[rfc7009-2-post-form] [rfc7009-2.3-cors] only a POST of a form revokes, from any origin, and JSONP is not supported',
  async (t) => {
    const { access_token: token } = await tokens()
    const fields = { token, client_id: client.id }
    const query = new URLSearchParams({ ...fields, callback: 'run' })
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const response = await fetch(`${server.issuer}${path}?${query}`, { method })
      t.equal(response.headers.get('allow'), 'OPTIONS, POST')
      await assertRejected(t, response, 'invalid_request', 405, `[rfc7009-2-post-form] ${method}`)
    }
    const headers = { 'content-type': 'application/json' }
    const asJson = await fetch(server.issuer + path, {
      method: 'POST',
      body: JSON.stringify(fields),
      headers,
    })
    await assertRejected(t, asJson, 'invalid_request', 415)
    t.ok(await isAlive(server, token))
    const response = await post(server, path, fields, { origin: 'https://app.example' })
    t.equal(response.status, 200)
    t.equal(response.headers.get('access-control-allow-origin'), '*')
    t.equal(response.headers.get('access-control-allow-credentials'), null)
  },
)

t.test(
  '[rfc7009-2.2.1-unavailable-503] while the database is locked the response is 503, and the token stays valid',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'lychgate-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'lychgate.db')
    const stored = await startFlow(t, { store: `sqlite:${file}` })
    const { access_token: token } = await stored.tokens()
    const intruder = new Database(file)
    t.teardown(() => intruder.close())
    intruder.exec('begin immediate')
    const response = await postAs(stored.server, stored.client, path, { token })
    t.match(response.headers.get('retry-after'), /^\d+$/)
    await assertRejected(t, response, 'temporarily_unavailable', 503)
    t.ok(await isAlive(stored.server, token), 'reads go on')
    intruder.exec('rollback')
    t.equal((await postAs(stored.server, stored.client, path, { token })).status, 200)
    t.notOk(await isAlive(stored.server, token))
  },
)
