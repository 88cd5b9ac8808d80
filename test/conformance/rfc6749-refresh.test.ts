import t, { type Test } from 'tap'
import {
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  post,
  postAs,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { assertRejected, introspect, isAlive, startFlow } from '../helpers/wire.ts'

const lifetimes = { refreshTokenIdleSeconds: 20_000, refreshTokenAbsoluteSeconds: 50_000 }
const { server, client, agent, tokens } = await startFlow(t, { lifetimes })
const { refreshReuseSeconds } = server.deps.config.lifetimes

/** The tokens of a refresh that must succeed. */
async function refreshed(token: string, fields = {}, of: TestClient = client): Promise<Tokens> {
  const response = await refresh(server, of, token, fields)
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as Tokens
}

t.test(
  '[service-4-token-refresh-fields] [rfc9700-2.2.2-public-refresh-protection] [mcp-security-refresh-rotation] a refresh issues new tokens without the user, and invalidates the old refresh token',
  async (t) => {
    const first = await tokens()
    const second = await refreshed(first.refresh_token)
    t.not(second.access_token, first.access_token, '[service-4-token-refresh-fields]')
    t.not(second.refresh_token, first.refresh_token, '[mcp-security-refresh-rotation]')
    t.ok(await isAlive(server, second.access_token))
    const third = await refreshed(second.refresh_token)
    t.not(third.refresh_token, second.refresh_token)
    server.advance(refreshReuseSeconds)
    const old = await refresh(server, client, second.refresh_token)
    await assertRejected(t, old, 'invalid_grant', 400, '[rfc9700-2.2.2-public-refresh-protection]')
  },
)

t.test(
  '[rfc6749-6-bound-to-client] a public client may refresh without client_id, but not with that of another client',
  async (t) => {
    const { refresh_token: token } = await tokens()
    const form = { grant_type: 'refresh_token', refresh_token: token }
    const other = await register(server)
    await assertRejected(
      t,
      await post(server, '/api/oauth/token', { ...form, client_id: other.id }),
      'invalid_grant',
    )
    await assertRejected(
      t,
      await post(server, '/api/oauth/token', { ...form, client_id: 'x' }),
      'invalid_client',
    )
    const response = await post(server, '/api/oauth/token', form)
    t.equal(response.status, 200)
    const next = ((await response.json()) as Tokens).refresh_token
    t.not(next, token)

    // Only a genuine refresh token names its client, and only for this grant type.
    for (const wrong of [
      { ...form, refresh_token: `${next.slice(0, -1)}${next.endsWith('A') ? 'B' : 'A'}` },
      { ...form, refresh_token: (await tokens()).access_token },
      { ...form, grant_type: 'authorization_code' },
    ])
      t.match(await (await post(server, '/api/oauth/token', wrong)).json(), {
        error: /invalid_(request|grant)/,
      })
    // A rotated token still counts as reuse, and ends the grant.
    server.advance(refreshReuseSeconds)
    await assertRejected(t, await post(server, '/api/oauth/token', form), 'invalid_grant')
    await assertRejected(
      t,
      await post(server, '/api/oauth/token', { ...form, refresh_token: next }),
      'invalid_grant',
    )
  },
)

t.test(
  '[rfc6749-3.2.1-confidential-must-authenticate] a refresh of a confidential client without client_id is rejected',
  async (t) => {
    const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
    const { refresh_token: token } = await obtainTokens(server, confidential, { agent })
    const form = { grant_type: 'refresh_token', refresh_token: token }
    await assertRejected(t, await post(server, '/api/oauth/token', form), 'invalid_request')
    await refreshed(token, {}, confidential)
  },
)

t.test(
  '[rfc6749-B-form-encoding] a raw space is a space inside a form value, and an error in a name',
  async (t) => {
    const first = await tokens({ scope: 'openid courses:read courses:write' })
    const send = (body: string) =>
      fetch(`${server.issuer}/api/oauth/token`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body,
      })
    const form = `grant_type=refresh_token&client_id=${client.id}&refresh_token=${first.refresh_token}`
    await assertRejected(t, await send(`${form}&scope =courses:read`), 'invalid_request')
    for (const raw of ['\n', '\r\n', '\t', '\0', 'é'])
      await assertRejected(t, await send(`${form}&scope=openid${raw}`), 'invalid_request')
    const response = await send(`${form}&scope=openid courses:read`)
    t.equal(response.status, 200)
    t.equal(((await response.json()) as Tokens).scope, 'openid courses:read')
  },
)

t.test('tokens of confidential clients rotate in the same way', async (t) => {
  const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
  const first = await obtainTokens(server, confidential, { agent })
  const second = await refreshed(first.refresh_token, {}, confidential)
  t.not(second.refresh_token, first.refresh_token)
})

t.test(
  '[rfc6749-6-scope-narrow] [rfc6749-6-scope-omitted-original] [rfc6749-6-rotated-same-scope] a refresh can narrow its access token, but never the grant',
  async (t) => {
    const first = await tokens({ scope: 'openid courses:read courses:write' })
    const narrowed = await refreshed(first.refresh_token, { scope: 'courses:read' })
    t.equal(narrowed.scope, 'courses:read', '[rfc6749-6-scope-narrow]')
    t.notOk('nonce' in narrowed)
    t.equal((await callApi(server, '/api/courses', narrowed.access_token)).status, 200)
    const write = await callApi(server, '/api/courses', narrowed.access_token, { method: 'POST' })
    t.equal(write.status, 403)
    t.equal((await introspect(server, client, narrowed.access_token))['scope'], 'courses:read')
    const whole = await refreshed(narrowed.refresh_token)
    t.equal(whole.scope, 'openid courses:read courses:write', '[rfc6749-6-scope-omitted-original]')
    const again = await callApi(server, '/api/courses', whole.access_token, { method: 'POST' })
    t.equal(again.status, 200, '[rfc6749-6-rotated-same-scope] the rotated token has the whole scope')
  },
)

t.test(
  '[rfc6749-6-scope-exceed] [rfc9700-4.14.2-bound-to-consent] a refresh adds neither scope nor resource, and the token stays usable',
  async (t) => {
    const { refresh_token: token } = await tokens({ scope: 'openid courses:read' })
    for (const scope of ['openid courses:write', 'courses:read email', 'unknown', 'OPENID', 'courses']) {
      const wider = await refresh(server, client, token, { scope })
      await assertRejected(t, wider, 'invalid_scope', 400, `[rfc6749-6-scope-exceed] ${scope}`)
    }
    const resource = 'https://elsewhere.example'
    await assertRejected(t, await refresh(server, client, token, { resource }), 'invalid_target')
    t.equal((await refreshed(token)).scope, 'openid courses:read')
  },
)

t.test(
  '[rfc9700-4.14.2-bound-to-consent] what the user does not approve stays out of every refresh',
  async (t) => {
    const fields = { scope: 'openid courses:read courses:write' }
    const code = await obtainCode(server, client, { agent, fields, scope: ['courses:read'] })
    const first = (await (await exchange(server, client, code)).json()) as Tokens
    const wider = await refresh(server, client, first.refresh_token, { scope: 'courses:write' })
    await assertRejected(t, wider, 'invalid_scope')
    t.equal((await refreshed(first.refresh_token)).scope, 'openid courses:read')
  },
)

t.test(
  '[rfc6749-6-bound-to-client] a refresh token works only for its client, and stays valid when another tries',
  async (t) => {
    const other = await register(server)
    const { refresh_token: token } = await tokens()
    await assertRejected(t, await refresh(server, other, token), 'invalid_grant')
    const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
    await assertRejected(t, await refresh(server, confidential, token), 'invalid_grant')
    t.ok((await refreshed(token)).access_token)
  },
)

t.test(
  '[rfc6749-6-invalid-refresh] [rfc6749-6-missing-refresh-param] random text, other kinds of tokens and revoked ones are rejected',
  async (t) => {
    const first = await tokens()
    const garbled = [
      'garbage',
      first.refresh_token.slice(0, -1),
      `${first.refresh_token}A`,
      `${first.refresh_token}=`,
      flipped(first.refresh_token),
      first.access_token,
      first.access_token.replace('access', 'refresh'),
      first.id_token,
    ]
    for (const token of garbled) {
      await assertRejected(t, await refresh(server, client, token), 'invalid_grant', 400, token.slice(-8))
    }
    const absent = await refresh(server, client, '', { refresh_token: undefined })
    await assertRejected(t, absent, 'invalid_request', 400, '[rfc6749-6-missing-refresh-param]')
    t.ok(await isAlive(server, first.access_token), 'garbage revokes nothing')
    await postAs(server, client, '/api/oauth/revoke', { token: first.refresh_token })
    await assertRejected(t, await refresh(server, client, first.refresh_token), 'invalid_grant')
  },
)

t.test('after a lost response the same old token gets the same successor while that is unused', async (t) => {
  const first = await tokens()
  const second = await refreshed(first.refresh_token)
  server.advance(refreshReuseSeconds - 3)
  const retried = await refreshed(first.refresh_token)
  t.equal(retried.refresh_token, second.refresh_token)
  t.ok(await isAlive(server, retried.access_token))
  t.ok(await isAlive(server, second.access_token))
  t.not((await refreshed(second.refresh_token)).refresh_token, second.refresh_token)
})

t.test('twenty simultaneous refreshes all get the one successor', async (t) => {
  const { refresh_token: token } = await tokens()
  const responses = await Promise.all(Array.from({ length: 20 }, () => refreshed(token)))
  t.equal(new Set(responses.map((response) => response.refresh_token)).size, 1)
})

/** Asserts that a family is dead: its newest refresh token and every access token. */
async function assertFamilyDead(t: Test, newest: Tokens, ...older: readonly Tokens[]) {
  await assertRejected(t, await refresh(server, client, newest.refresh_token), 'invalid_grant')
  for (const { access_token: token } of [newest, ...older]) t.notOk(await isAlive(server, token))
}

t.test('[rfc9700-4.14.2-reuse-revokes-family] reuse after the window revokes the family', async (t) => {
  const first = await tokens()
  const second = await refreshed(first.refresh_token)
  server.advance(refreshReuseSeconds)
  t.ok(await isAlive(server, second.access_token))
  await assertRejected(t, await refresh(server, client, first.refresh_token), 'invalid_grant')
  await assertFamilyDead(t, second, first)
})

t.test(
  '[rfc9700-4.14.2-reuse-revokes-family] reuse within the window revokes once the successor was used',
  async (t) => {
    const first = await tokens()
    const second = await refreshed(first.refresh_token)
    const third = await refreshed(second.refresh_token)
    t.equal(
      (await refreshed(second.refresh_token)).refresh_token,
      third.refresh_token,
      'the last one may retry',
    )
    await assertRejected(t, await refresh(server, client, first.refresh_token), 'invalid_grant')
    await assertFamilyDead(t, third, second, first)
  },
)

t.test('[rfc9700-4.14.2-reuse-revokes-family] reuse by another client revokes nothing', async (t) => {
  const stranger = await register(server)
  const first = await tokens()
  const second = await refreshed(first.refresh_token)
  server.advance(refreshReuseSeconds)
  await assertRejected(t, await refresh(server, stranger, first.refresh_token), 'invalid_grant')
  t.ok(await isAlive(server, second.access_token))
  t.ok((await refreshed(second.refresh_token)).refresh_token)
})

t.test('[rfc9700-4.14.2-reuse-revokes-family] with refreshReuseSeconds 0 every reuse revokes', async (t) => {
  const strict = await startFlow(t, { lifetimes: { refreshReuseSeconds: 0 } })
  const first = await strict.tokens()
  const second = (await (await refresh(strict.server, strict.client, first.refresh_token)).json()) as Tokens
  t.ok(await isAlive(strict.server, second.access_token))
  await assertRejected(t, await refresh(strict.server, strict.client, first.refresh_token), 'invalid_grant')
  await assertRejected(t, await refresh(strict.server, strict.client, second.refresh_token), 'invalid_grant')
  t.notOk(await isAlive(strict.server, second.access_token))
})

t.test('[rfc9700-4.14.2-inactive-expiry] a refresh token expires when it is not used', async (t) => {
  const used = await tokens()
  server.advance(lifetimes.refreshTokenIdleSeconds - 5)
  const successor = await refreshed(used.refresh_token)
  server.advance(lifetimes.refreshTokenIdleSeconds)
  await assertRejected(t, await refresh(server, client, successor.refresh_token), 'invalid_grant')
})

t.test('no refresh token outlives the absolute limit of its grant', async (t) => {
  let { refresh_token: token } = await tokens()
  for (const seconds of [19_000, 19_000, 11_995]) {
    server.advance(seconds)
    token = (await refreshed(token)).refresh_token
  }
  server.advance(10)
  await assertRejected(t, await refresh(server, client, token), 'invalid_grant')
})

function flipped(token: string): string {
  const at = token.length - 20
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
}
