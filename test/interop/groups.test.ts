/** How openid-client, and a proxy in front of an application, use groups: by discovery, scope, claims and refresh. */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretBasic,
  calculatePKCECodeChallenge,
  discovery,
  fetchUserInfo,
  randomPKCECodeVerifier,
  refreshTokenGrant,
} from 'openid-client'
import t from 'tap'
import { seedGroups } from '../../src/dev/groups.ts'
import { groupNameKind } from '../../src/domain/group.ts'
import { callback, integrate } from '../helpers/authorization.ts'
import { signInAndApprove } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t, { clock: 'machine' })
const { store, clock } = server.deps
const { id: alice = '' } = (await store.find('userByLogin', 'alice')) ?? {}
await seedGroups(store, alice, ['staff', 'admins'], clock)

t.test('a proxy lets in by the claim groups, and sees a change with the next refresh', async (t) => {
  const { id: staff = '' } = (await store.find(groupNameKind, 'staff')) ?? {}
  const description = {
    allowed_groups: [staff],
    token_claims: [
      { claim: 'groups', in: ['id_token', 'userinfo'], groups: true },
      { claim: 'roles', roles: { [staff]: 'Editor' } },
    ],
  }
  const { id, secret } = await integrate(server, { consent: 'skip', description })
  const config = await discovery(new URL(server.issuer), id, {}, ClientSecretBasic(secret), {
    execute: [allowInsecureRequests],
  })
  t.ok(config.serverMetadata().scopes_supported?.includes('groups'))
  t.ok(config.serverMetadata().claims_supported?.includes('groups'))
  const pkceCodeVerifier = randomPKCECodeVerifier()
  const url = buildAuthorizationUrl(config, {
    redirect_uri: callback,
    scope: 'openid groups',
    code_challenge: await calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  const agent = new UserAgent(server.issuer)
  const response = await signInAndApprove(agent, await agent.open(url.href))
  const tokens = await authorizationCodeGrant(config, response, { pkceCodeVerifier })
  t.strictSame(tokens.claims()?.['groups'], ['admins', 'staff'], 'oauth2-proxy reads the ID Token')
  const user = await fetchUserInfo(config, tokens.access_token, alice)
  t.strictSame(user['groups'], ['admins', 'staff'])
  t.strictSame(user['roles'], ['Editor'], 'Grafana reads UserInfo')
  await seedGroups(store, alice, ['staff'], clock)
  const next = await refreshTokenGrant(config, tokens.refresh_token ?? '')
  t.strictSame(next.claims()?.['groups'], ['staff'], 'another group is gone')
  await seedGroups(store, alice, ['admins'], clock)
  const rejected = await refreshTokenGrant(config, next.refresh_token ?? '').catch(({ error }) => error)
  t.equal(rejected, 'invalid_grant')
})
