import t from 'tap'
import { removeUser } from '../../src/domain/decision.ts'
import { ask, offeredScope, pageOf, title } from '../helpers/authorization.ts'
import { exchange, obtainCode, obtainTokens, postAs, refresh, register } from '../helpers/flow.ts'
import { bob } from '../helpers/server.ts'
import { assertRejected, isAlive, json, startFlow } from '../helpers/wire.ts'

const { server, client, agent, tokens } = await startFlow(t)

t.test(
  '[oauth21-3.2.3-scope-always] the response contains scope even if it is exactly what was requested',
  async (t) => {
    for (const scope of ['openid', 'openid profile email', 'courses:read']) {
      const code = await obtainCode(server, client, { agent, fields: { scope } })
      const first = await json(await exchange(server, client, code))
      t.equal(first['scope'], scope)
      const next = await json(await refresh(server, client, String(first['refresh_token'])))
      t.equal(next['scope'], scope, 'after a refresh')
      const same = await json(await refresh(server, client, String(next['refresh_token']), { scope }))
      t.equal(same['scope'], scope, 'after a refresh that names it')
    }
  },
)

t.test('[oauth21-4.3.1-grant-active] a refresh needs an active grant, and its own client', async (t) => {
  const { refresh_token: token } = await tokens()
  const other = await register(server)
  await assertRejected(t, await refresh(server, other, token), 'invalid_grant', 400, 'another client')
  const rotated = await json(await refresh(server, client, token))
  t.type(rotated['refresh_token'], 'string', 'and the token was not used up by it')
  const { refresh_token: survivor } = await tokens()
  const revoked = await postAs(server, client, '/api/oauth/revoke', {
    token: String(rotated['refresh_token']),
  })
  t.equal(revoked.status, 200)
  const dead = await refresh(server, client, String(rotated['refresh_token']))
  await assertRejected(t, dead, 'invalid_grant', 400, 'a revoked grant')
  t.notOk(await isAlive(server, String(rotated['access_token'])))
  t.equal((await refresh(server, client, survivor)).status, 200, 'another grant of the same client goes on')
})

t.test('[oauth21-4.3.1-grant-active] the tokens of a deleted user are invalid', async (t) => {
  const theirs = await obtainTokens(server, client, { user: bob })
  const { refresh_token: other } = await tokens()
  t.ok(await isAlive(server, theirs.access_token))
  const user = await server.deps.store.find('userByLogin', bob.username)
  await server.deps.store.write(removeUser(user?.id ?? '', 0))
  await assertRejected(t, await refresh(server, client, theirs.refresh_token), 'invalid_grant')
  t.notOk(await isAlive(server, theirs.access_token))
  t.equal((await refresh(server, client, other)).status, 200, 'those of others are not')
})

t.test('[oauth21-4.3.1-grant-active] a replayed code ends the grant of the refresh token', async (t) => {
  const code = await obtainCode(server, client, { agent })
  const { refresh_token: token } = await json(await exchange(server, client, code))
  await assertRejected(t, await exchange(server, client, code), 'invalid_grant')
  await assertRejected(t, await refresh(server, client, String(token)), 'invalid_grant')
})

t.test(
  '[oauth21-7.9-consent-phishing] [mcp-security-redirect-host-shown] the consent page shows the client, how it registered, its redirect host and the scope',
  async (t) => {
    const asking = await register(server, { client_name: 'Zed CLI' })
    const page = pageOf(await ask(server, asking, { scope: 'openid courses:read orders:read' }, agent))
    t.equal(title(page), 'Allow Zed CLI to use your account?')
    t.match(page.html, /registered automatically \d+ \w+ ago .* nobody has checked who made it/)
    t.match(page.html, '<bdi class="host">127.0.0.1:51004</bdi>, a program on this computer')
    t.strictSame(offeredScope(page), ['courses:read', 'orders:read'])
  },
)
