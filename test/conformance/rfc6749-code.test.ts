import t from 'tap'
import { openHandle } from '../../src/domain/handle.ts'
import { exchange, type Fields, obtainCode, postAs, refresh, register } from '../helpers/flow.ts'
import { assertRejected, introspect, isAlive, json, startFlow } from '../helpers/wire.ts'

const { server, client, agent, tokens } = await startFlow(t)
const code = (fields: Fields = {}) => obtainCode(server, client, { fields, agent })

t.test('[rfc6749-4.1.2-code-short-lived] a code can be redeemed until its lifetime ends', async (t) => {
  const early = await code()
  const { codeSeconds } = server.deps.config.lifetimes
  t.ok(codeSeconds <= 600)
  server.advance(codeSeconds - 5)
  t.equal((await exchange(server, client, early)).status, 200)
  const late = await code()
  server.advance(codeSeconds)
  await assertRejected(t, await exchange(server, client, late), 'invalid_grant')
})

t.test(
  '[rfc6749-4.1.2-code-single-use] [rfc6749-4.1.2-code-replay-revokes] a second use of a code is rejected and revokes everything issued from it',
  async (t) => {
    const once = await code()
    const first = await json(await exchange(server, client, once))
    const access = String(first['access_token'])
    const second = await json(await refresh(server, client, String(first['refresh_token'])))
    t.ok(await isAlive(server, access))
    await assertRejected(t, await exchange(server, client, once), 'invalid_grant')
    t.notOk(await isAlive(server, access))
    t.notOk(await isAlive(server, String(second['access_token'])))
    t.strictSame(await introspect(server, client, access), { active: false })
    const refreshed = await refresh(server, client, String(second['refresh_token']))
    await assertRejected(t, refreshed, 'invalid_grant')
  },
)

t.test(
  '[rfc6749-4.1.2-code-replay-revokes] a replay long after the code expired still revokes',
  async (t) => {
    const once = await code()
    const first = await json(await exchange(server, client, once))
    server.advance(server.deps.config.lifetimes.codeSeconds + 30)
    t.ok(await isAlive(server, String(first['access_token'])))
    await assertRejected(t, await exchange(server, client, once), 'invalid_grant')
    t.notOk(await isAlive(server, String(first['access_token'])))
  },
)

t.test(
  '[rfc6749-4.1.2-code-single-use] of twenty simultaneous redemptions exactly one succeeds',
  async (t) => {
    const once = await code()
    const responses = await Promise.all(Array.from({ length: 20 }, () => exchange(server, client, once)))
    const rejected = responses.filter(({ status }) => status !== 200)
    t.equal(rejected.length, 19)
    for (const response of rejected) await assertRejected(t, response, 'invalid_grant')
  },
)

t.test(
  '[oauth21-7.5.2-replay-only-if-valid] a replay with a wrong verifier, redirect URI or client revokes nothing',
  async (t) => {
    const once = await code()
    const first = await json(await exchange(server, client, once))
    const access = String(first['access_token'])
    const other = await register(server)
    const wrong = [
      await exchange(server, client, once, { code_verifier: 'w'.repeat(43) }),
      await exchange(server, client, once, { redirect_uri: 'http://127.0.0.1:1/callback' }),
      await exchange(server, other, once),
    ]
    for (const response of wrong) await assertRejected(t, response, 'invalid_grant')
    t.ok(await isAlive(server, access))
    t.equal((await refresh(server, client, String(first['refresh_token']))).status, 200)
    await assertRejected(t, await exchange(server, client, once), 'invalid_grant')
    t.notOk(await isAlive(server, access), 'the right verifier revokes')
    const secretive = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
    const replayed = await obtainCode(server, secretive, { agent })
    const tokens = await json(await exchange(server, secretive, replayed))
    const guess = { ...secretive, secret: 'wrong' }
    await assertRejected(t, await exchange(server, guess, replayed), 'invalid_client')
    t.ok(await isAlive(server, String(tokens['access_token'])), 'a wrong secret revokes nothing')
    await assertRejected(t, await exchange(server, secretive, replayed), 'invalid_grant')
    t.notOk(await isAlive(server, String(tokens['access_token'])))
  },
)

t.test('[rfc6749-4.1.3-code-issued-to-client] a code of one client is rejected for another', async (t) => {
  const other = await register(server)
  const redeemable = await code()
  await assertRejected(t, await exchange(server, other, redeemable), 'invalid_grant')
  t.equal((await exchange(server, client, redeemable)).status, 200)
})

t.test(
  '[rfc6749-4.1.2-code-bound-redirect] [rfc6749-4.1.3-redirect-uri-identical] the redirect URI of the exchange must be that of the authorization request',
  async (t) => {
    const two = await register(server, {
      redirect_uris: ['http://127.0.0.1:51004/callback', 'http://127.0.0.1:51004/other'],
    })
    const used = 'http://127.0.0.1:50001/callback'
    const redeemable = await obtainCode(server, two, { agent, fields: { redirect_uri: used } })
    const others = [
      'http://127.0.0.1:50002/callback',
      'http://127.0.0.1:51004/callback',
      'http://127.0.0.1:51004/other',
      'http://127.0.0.1/callback',
      `${used}/`,
      used.toUpperCase(),
    ]
    for (const uri of others) {
      const response = await exchange(server, two, redeemable, { redirect_uri: uri })
      const isRegistered = two.redirectUri === uri || uri.endsWith('/other')
      const clause = isRegistered
        ? '[rfc6749-4.1.2-code-bound-redirect]'
        : '[rfc6749-4.1.3-redirect-uri-identical]'
      await assertRejected(t, response, 'invalid_grant', 400, `${clause} ${uri}`)
    }
    t.equal((await exchange(server, two, redeemable, { redirect_uri: used })).status, 200)
  },
)

t.test(
  '[rfc6749-4.1.3-code-valid] [rfc6749-6-invalid-refresh] a code and a refresh token of a revoked grant are rejected with that reason',
  async (t) => {
    const once = await code()
    const first = await json(await exchange(server, client, once))
    const token = String(first['refresh_token'])
    t.equal((await postAs(server, client, '/api/oauth/revoke', { token })).status, 200)
    // A grant revoked before its code is redeemed, by the operator or the user.
    const open = await code()
    const grantId = openHandle(server.deps.keys.handles, open, 'code')?.grantId ?? ''
    const rule = 'rfc9700-4.14.2-revoke-on-event'
    const revocation = { op: 'revokeGrant', grantId, at: server.now(), rule } as const
    await server.deps.store.write(revocation)
    for (const rejected of [
      await exchange(server, client, once),
      await exchange(server, client, open),
      await refresh(server, client, token),
    ]) {
      t.equal((await json(rejected.clone()))['error_description'], 'the grant was revoked')
      await assertRejected(t, rejected, 'invalid_grant')
    }
    t.notOk(await isAlive(server, String(first['access_token'])))
    t.ok(await isAlive(server, (await tokens()).access_token), 'the next authorization is another grant')
  },
)
