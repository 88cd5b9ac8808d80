/** Claims of granted scopes in ID Tokens: of the confidential clients of an operator, unless it says otherwise. */
import assert from 'node:assert/strict'
import t from 'tap'
import type { OperatorClientMembers } from '../../src/clients/core-members.ts'
import { configuredOf } from '../../src/clients/describe.ts'
import { changeOperatorClient, replaceOperatorClient } from '../../src/clients/operator-client.ts'
import { update } from '../../src/domain/decision.ts'
import { vocabularyOf } from '../../src/feature/client-vocabulary.ts'
import { declared } from '../../src/features.ts'
import { integrate } from '../helpers/authorization.ts'
import { callApi, claimsOf, obtainTokens, register, type TestClient } from '../helpers/flow.ts'
import { addProfiled, tokensOf } from '../helpers/profiled-clients.ts'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t)
const { store } = server.deps
const known = vocabularyOf(server.deps.config, declared)
const protocol = ['acr', 'amr', 'at_hash', 'aud', 'auth_time', 'exp', 'iat', 'iss', 'nonce', 'sid', 'sub']

/** The claims of the user in the ID Token of a client, after each refresh too. */
async function userClaims(client: TestClient, scope = 'openid profile email groups') {
  const tokens = await obtainTokens(server, client, { fields: { scope } })
  const { id_token, access_token } = tokens
  const { sub: _, ...info } = (await (
    await callApi(server, '/api/oauth/userinfo', access_token)
  ).json()) as object & {
    sub: string
  }
  return { own: ownOf(id_token), info }
}

function ownOf(idToken: string) {
  return Object.fromEntries(Object.entries(claimsOf(idToken)).filter(([name]) => !protocol.includes(name)))
}

async function setClaims(client: TestClient, change: OperatorClientMembers, { deps, now } = server) {
  const context = { by: 'operator', at: now() } as const
  await deps.store.transact('client', client.id, (found) =>
    changeOperatorClient(found, change, known, context),
  )
}

t.test(
  '[oidc-core-5.4-claims-at-userinfo] the ID Token of a confidential client that an operator added has what UserInfo has',
  async (t) => {
    const { own, info } = await userClaims(await integrate(server))
    t.match(own, { preferred_username: 'alice', email: String, groups: [] })
    t.strictSame(own, info)
    t.strictSame((await userClaims(await integrate(server), 'openid')).own, {}, 'only of what was granted')
    t.strictSame(Object.keys((await userClaims(await integrate(server), 'openid groups')).own), ['groups'])
  },
)

t.test(
  'public clients, those that registered themselves and those of a previous version have thin ID Tokens',
  async (t) => {
    const publicClient = await integrate(server, { authenticationMethod: 'none' })
    const registered = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
    const former = await integrate(server)
    const { idTokenClaims: _, ...stored } = (await store.find('client', former.id)) ?? assert.fail()
    await store.write(update('client', stored))
    for (const client of [publicClient, registered, former]) t.strictSame((await userClaims(client)).own, {})
    await setClaims(former, { client_name: 'Changed' })
    const context = { by: 'operator', at: server.now() } as const
    const whole = { client_name: 'Whole', redirect_uris: [former.redirectUri] }
    await store.transact('client', former.id, (found) => replaceOperatorClient(found, whole, known, context))
    t.strictSame(
      (await userClaims(former)).own,
      {},
      'no other change gives them, and no file that does not say so',
    )
    t.match(configuredOf((await store.find('client', former.id)) ?? stored), { id_token_claims: 'none' })
    for (const client of [publicClient, former]) {
      await setClaims(client, { id_token_claims: 'scope' })
      t.match((await userClaims(client)).own, { preferred_username: 'alice' })
      await setClaims(client, { id_token_claims: 'none' })
      t.strictSame((await userClaims(client)).own, {})
    }
  },
)

t.test('clients of the profile have thin ID Tokens until an operator says otherwise', async (t) => {
  const { put } = declared.clientProfiles['fapi2'] ?? assert.fail()
  const client = {
    ...((await store.find('client', (await integrate(server)).id)) ?? assert.fail()),
    authenticationMethod: 'private_key_jwt',
    extra: { jwks_uri: 'https://portal.example/keys' },
  }
  t.match(put(client), { id_token_claims: 'none' })
  t.match(put({ ...client, idTokenClaims: 'scope' }), { id_token_claims: 'scope' })
})

t.test('so have those of a server whose profile holds for every client', async (t) => {
  const strict = await startServer(t, { profile: 'fapi2' })
  const scope = ['openid', 'profile', 'email']
  const party = await addProfiled(strict, 'ES256', { security_profile: '' }, { scope })
  const own = async () => ownOf(String((await tokensOf(party, { scope: scope.join(' ') }))['id_token']))
  t.equal((await strict.deps.store.find('client', party.client.id))?.idTokenClaims, 'default')
  t.strictSame(await own(), {})
  await setClaims(party.client, { id_token_claims: 'scope' }, strict)
  t.match(await own(), { preferred_username: String, email: String })
})
