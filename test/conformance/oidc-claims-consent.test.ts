import t from 'tap'
import { ask, integrate, offeredScope, pageOf, place, sentAway, signedIn } from '../helpers/authorization.ts'
import { authorizationUrl, callApi, claimsOf, exchange, register, type Tokens } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import type { Landing } from '../helpers/user-agent.ts'

// Claims requested one by one, OpenID Connect Core §5.5, are the same personal data a scope would open.
const server = await startServer(t)
const client = await register(server)
const user = await signedIn(server, client)
const claims = JSON.stringify({
  userinfo: { email: { essential: true }, nickname: null },
  id_token: { gender: null, auth_time: { essential: true } },
})

/** The claims that a client gets with the code of this redirect. */
async function learnt(landing: Landing, who = client) {
  const response = await exchange(server, who, String(sentAway(landing)['code']))
  const { scope, access_token: token, id_token: idToken } = (await response.json()) as Tokens
  const told = (await (await callApi(server, '/api/oauth/userinfo', token)).json()) as object
  return { scope, told: Object.keys(told).sort(), idToken: claimsOf(idToken) }
}

t.test('consent covers claims like the scopes that open them', async (t) => {
  const page = pageOf(await ask(server, client, { scope: 'openid', claims }, user))
  t.same(offeredScope(page), ['profile', 'email'])
  const all = await learnt(await user.submit(page, { decision: 'approve' }))
  t.equal(all.scope, 'openid', 'what was asked for by name')
  t.same(all.told, ['email', 'nickname', 'sub'])
  t.match(all.idToken, { gender: 'female', auth_time: Number })
})

t.test('a claim whose scope the user unticks is not returned anywhere', async (t) => {
  const page = pageOf(await ask(server, client, { scope: 'openid', claims }, user))
  const some = await learnt(await user.submit(page, { decision: 'approve', scope: ['email'] }))
  t.same(some.told, ['email', 'sub'])
  t.notOk('gender' in some.idToken)
  t.match(some.idToken, { auth_time: Number })
  const both = pageOf(await ask(server, client, { scope: 'openid email', claims }, user))
  const none = await learnt(await user.submit(both, { decision: 'approve', scope: [] }))
  t.equal(none.scope, 'openid')
  t.same(none.told, ['sub'], 'asked twice, denied once')
})

t.test('a claim beyond the registered scope of the client is omitted, without an error', async (t) => {
  const modest = await register(server, { scope: 'openid email' })
  const page = pageOf(await ask(server, modest, { scope: 'openid', claims }, user))
  t.same(offeredScope(page), ['email'])
  const some = await learnt(await user.submit(page, { decision: 'approve' }), modest)
  t.same(some.told, ['email', 'sub'])
  t.notOk('gender' in some.idToken)
})

t.test('a remembered consent covers no claim that its page did not show', async (t) => {
  const portal = await integrate(server)
  const plain = pageOf(await ask(server, portal, { scope: 'openid' }, user))
  await user.submit(plain, { decision: 'approve' })
  const silent = authorizationUrl(server, portal, { scope: 'openid', claims, prompt: 'none' })
  t.equal(sentAway(await user.open(silent))['error'], 'consent_required')
  const page = pageOf(await ask(server, portal, { scope: 'openid', claims }, user))
  t.same(offeredScope(page), ['profile', 'email'])
  const agreed = await learnt(await user.submit(page, { decision: 'approve' }), portal)
  t.same(agreed.told, ['email', 'nickname', 'sub'])
  t.same((await learnt(await user.open(silent), portal)).told, ['email', 'nickname', 'sub'], 'and is kept')
  t.equal(place(await ask(server, portal, { scope: 'openid' }, user)), 'sent to https://portal.example')
})
