/** Two issuers with one database and one set of keys: a signature alone does not make a token ours. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { assertErrorRedirect } from '../helpers/authorization.ts'
import { authorize, redirectUri } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { introspect, startFlow } from '../helpers/wire.ts'

const folder = mkdtempSync(join(tmpdir(), 'lychgate-'))
const shared = {
  store: `sqlite:${join(folder, 'lychgate.db')}`,
  resources: [
    {
      identifier: 'https://library.example/api',
      name: 'Library',
      scopes: ['pages:read'],
      tokenFormat: 'jwt' as const,
    },
  ],
}
const { server, client, tokens } = await startFlow(t, shared, { post_logout_redirect_uris: [redirectUri] })
const other = await startServer(t, shared)
t.teardown(() => rmSync(folder, { recursive: true }))
const { id_token: idToken } = await tokens()

t.test('[oidc-core-3.1.2.2-hint-issuer] an ID Token of another issuer is rejected as hint', async (t) => {
  const hinted = { id_token_hint: idToken, prompt: 'none' }
  assertErrorRedirect(t, other, await authorize(other, client, hinted), 'invalid_request')
  assertErrorRedirect(t, server, await authorize(server, client, hinted), 'login_required')
})

t.test(
  '[oidc-rpl-2-hint-validated] with an ID Token of another issuer sign-out redirects nowhere',
  async (t) => {
    const query = new URLSearchParams({ id_token_hint: idToken, post_logout_redirect_uri: redirectUri })
    const logout = (issuer: string) => fetch(`${issuer}/oauth/logout?${query}`, { redirect: 'manual' })
    const elsewhere = await logout(other.issuer)
    t.equal(elsewhere.headers.get('location'), null)
    t.ok(elsewhere.headers.get('x-request-id'), 'the hint is not used')
    t.equal((await logout(server.issuer)).headers.get('location'), redirectUri)
  },
)

t.test('a JWT access token of another issuer is rejected', async (t) => {
  const [resource] = shared.resources.map(({ identifier }) => identifier)
  const { access_token: token } = await tokens({ scope: 'pages:read', resource })
  t.strictSame(await introspect(other, client, token), { active: false })
  t.match(await introspect(server, client, token), { active: true, iss: server.issuer })
})
