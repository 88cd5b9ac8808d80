/** Values in the wrong place are ignored: one kind of token for another, the query instead of the body. */
import t from 'tap'
import { callApi, exchange, obtainCode, post, postAs, refresh } from '../helpers/flow.ts'
import { send } from '../helpers/raw.ts'
import { assertRejected, introspect, isAlive, json, startFlow } from '../helpers/wire.ts'

const { server, client, agent, tokens } = await startFlow(t)
const code = () => obtainCode(server, client, { agent })

t.test(
  '[rfc6749-6-invalid-refresh] a code is rejected as refresh token, before it is redeemed and afterwards',
  async (t) => {
    const once = await code()
    await assertRejected(t, await refresh(server, client, once), 'invalid_grant')
    const asRefreshToken = once.replace('code', 'refresh')
    await assertRejected(t, await refresh(server, client, asRefreshToken), 'invalid_grant')
    const first = await json(await exchange(server, client, once))
    t.type(first['refresh_token'], 'string', 'the code was not used up')
    await assertRejected(t, await refresh(server, client, once), 'invalid_grant')
    await assertRejected(t, await refresh(server, client, asRefreshToken), 'invalid_grant')
    t.ok(await isAlive(server, String(first['access_token'])), 'and nothing was revoked')
    t.equal((await refresh(server, client, String(first['refresh_token']))).status, 200)
  },
)

t.test('[rfc6749-4.1.3-code-valid] any other token is rejected as code, and stays valid', async (t) => {
  const { access_token: access, refresh_token: token, id_token: idToken } = await tokens()
  for (const other of [
    token,
    access,
    idToken,
    token.replace('refresh', 'code'),
    access.replace('access', 'code'),
  ]) {
    await assertRejected(t, await exchange(server, client, other), 'invalid_grant')
  }
  t.ok(await isAlive(server, access))
  t.equal((await refresh(server, client, token)).status, 200)
})

t.test('a parameter in the query of the token endpoint is ignored, even with a valid form', async (t) => {
  const redeemable = await code()
  const fields = { redirect_uri: client.redirectUri, client_id: client.id, code_verifier: 'v'.repeat(43) }
  const path = `/api/oauth/token?${new URLSearchParams({ code: redeemable })}`
  const inQuery = await post(server, path, { grant_type: 'authorization_code', ...fields })
  await assertRejected(t, inQuery, 'invalid_request')
  const kept = await json(await exchange(server, client, redeemable))
  t.type(kept['access_token'], 'string', 'the code was not used up')
  const query = new URLSearchParams({ refresh_token: String(kept['refresh_token']) })
  const again = await postAs(server, client, `/api/oauth/token?${query}`, { grant_type: 'refresh_token' })
  await assertRejected(t, again, 'invalid_request')
  const type = await postAs(server, client, '/api/oauth/token?grant_type=refresh_token', {
    refresh_token: String(kept['refresh_token']),
  })
  await assertRejected(t, type, 'invalid_request')
})

t.test(
  '[rfc7009-2.1-token-required] [rfc7662-2.1-token-required] a token in the query is neither revoked nor introspected',
  async (t) => {
    const { access_token: token } = await tokens({ scope: 'openid courses:read' })
    for (const path of ['/api/oauth/revoke', '/api/oauth/introspect']) {
      const response = await postAs(server, client, `${path}?${new URLSearchParams({ token })}`, {})
      await assertRejected(t, response, 'invalid_request', 400, path)
    }
    t.equal((await introspect(server, client, token))['active'], true)
  },
)

t.test(
  '[rfc6750-2.2-form-conditions] an API without form tokens ignores one in a body: its sender is anonymous',
  async (t) => {
    const { access_token: token } = await tokens({ scope: 'openid courses:write' })
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ access_token: token }),
    }
    const response = await callApi(server, '/api/courses', undefined, init)
    t.equal(response.status, 200)
    t.match(await json(response), { caller: 'anonymous' })
    const both = await callApi(server, '/api/courses', token, init)
    t.match(await json(both), { caller: 'user' }, 'and the token of the header counts alone')
  },
)

t.test('[rfc6750-2.2-form-conditions] a form in the body of a GET request is ignored', async (t) => {
  const { access_token: token } = await tokens({ scope: 'openid courses:read' })
  const form = {
    headers: [['Content-Type', 'application/x-www-form-urlencoded']] as const,
    body: `access_token=${token}`,
  }
  const info = await send(server, { path: '/api/oauth/userinfo', ...form })
  t.equal(info.status, 401)
  t.match(
    info.headers['www-authenticate'],
    /^Bearer resource_metadata="[^"]+", DPoP algs="[^"]+"$/,
    'as without a token',
  )
  const posted = await send(server, { method: 'POST', path: '/api/oauth/userinfo', ...form })
  t.equal(posted.status, 200, 'by POST it is')
  const area = await send(server, { path: '/api/courses', ...form })
  t.notMatch(area.body, '"caller":"user"')
})
