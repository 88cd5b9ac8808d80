/** OAuth 2.0 for Browser-Based Applications, RFC 10017 §6.3: what a server owes an app that runs in a browser. */
import t, { type Test } from 'tap'
import { ask, assertErrorPage, assertErrorRedirect, integrate, place } from '../helpers/authorization.ts'
import {
  authorize,
  claimsOf,
  exchange,
  obtainCode,
  obtainTokens,
  post,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, json } from '../helpers/wire.ts'

const lifetimes = { refreshTokenIdleSeconds: 7200, refreshTokenAbsoluteSeconds: 28_800 }
const server = await startServer(t, { lifetimes })
const origin = 'https://app.example'
/** An app on the web, added by an operator, and the app of a developer on this computer. */
const app = await integrate(server, { authenticationMethod: 'none', redirectUris: [`${origin}/`] })
const own = await register(server, { redirect_uris: ['http://127.0.0.1:9510/'] })
const scope = 'openid profile email courses:read'

async function refreshed(t: Test, token: string): Promise<Tokens> {
  const response = await refresh(server, app, token)
  t.equal(response.status, 200)
  return (await response.json()) as Tokens
}

t.test('[rfc10017-6.3.2.1-pkce] an app in a browser gets no code without PKCE', async (t) => {
  for (const client of [app, own]) {
    const bare = await authorize(server, client, {
      code_challenge: undefined,
      code_challenge_method: undefined,
    })
    assertErrorRedirect(t, server, bare, 'invalid_request', { to: client.redirectUri })
    const code = await obtainCode(server, client)
    for (const verifier of [undefined, 'w'.repeat(43)])
      t.equal((await exchange(server, client, code, { code_verifier: verifier })).status, 400)
    t.equal((await exchange(server, client, code)).status, 200)
  }
})

t.test('[rfc10017-6.3.2.3-rotation] each use of a refresh token replaces it', async (t) => {
  const { refresh_token: first } = await obtainTokens(server, app)
  const { refresh_token: second } = await refreshed(t, first)
  t.not(second, first)
  server.advance(server.deps.config.lifetimes.refreshReuseSeconds)
  await assertRejected(t, await refresh(server, app, first), 'invalid_grant')
  await assertRejected(t, await refresh(server, app, second), 'invalid_grant', 400, 'the stolen one')
})

t.test('[rfc10017-6.3.2.3-expiry] a refresh token that is not used expires', async (t) => {
  const { refresh_token: token } = await obtainTokens(server, app)
  server.advance(lifetimes.refreshTokenIdleSeconds)
  await assertRejected(t, await refresh(server, app, token), 'invalid_grant')
})

t.test('[rfc10017-6.3.2.3-no-extension] rotation does not move the end of the first one', async (t) => {
  let { refresh_token: token } = await obtainTokens(server, app)
  for (let hour = 0; hour < 7; hour += 1) {
    server.advance(3600)
    token = (await refreshed(t, token)).refresh_token
  }
  server.advance(3600)
  await assertRejected(t, await refresh(server, app, token), 'invalid_grant', 400, 'after eight hours')
})

t.test('[rfc10017-6.3.2.3-session] refresh tokens of an app can end with the session', async (t) => {
  const bound = await integrate(server, {
    authenticationMethod: 'none',
    redirectUris: [`${origin}/`],
    description: { refresh_tokens: 'session' },
  })
  const agent = new UserAgent(server.issuer)
  const tokens = await obtainTokens(server, bound, { agent })
  const hint = new URLSearchParams({ id_token_hint: tokens.id_token })
  await agent.send(`${server.issuer}/oauth/logout?${hint}`)
  await assertRejected(t, await refresh(server, bound, tokens.refresh_token), 'invalid_grant')
})

t.test(
  '[rfc10017-6.3.3.1-no-shared-secret] an app in a browser needs no secret, and gets none',
  async (t) => {
    t.strictSame([app.secret, own.secret], [undefined, undefined])
    t.equal((await exchange(server, app, await obtainCode(server, app))).status, 200)
    const code = await obtainCode(server, app)
    const fields = {
      grant_type: 'authorization_code',
      code,
      redirect_uri: app.redirectUri,
      client_id: app.id,
    }
    const sent = { ...fields, code_verifier: 'v'.repeat(43), client_secret: 'in-the-source-of-the-page' }
    await assertRejected(t, await post(server, '/api/oauth/token', sent), 'invalid_client')
  },
)

t.test(
  '[rfc10017-6.3.3.2-no-automatic-approval] the user is asked about each request of an app that registered itself',
  async (t) => {
    const agent = new UserAgent(server.issuer)
    for (const round of [1, 2]) {
      await obtainCode(server, own, { agent })
      t.equal(place(await ask(server, own, {}, agent)), '/consent', `round ${round}`)
    }
    const silent = await authorize(server, own, { prompt: 'none' }, agent)
    assertErrorRedirect(t, server, silent, 'consent_required', { to: own.redirectUri })
  },
)

t.test('[rfc10017-6.3.3.2.1-exact-redirect] a redirect URI is the registered one, exactly', async (t) => {
  for (const uri of [
    origin,
    `${origin}/?a=b`,
    `${origin}/x`,
    'https://www.app.example/',
    'https://app.example:8443/',
  ])
    await assertErrorPage(t, await authorize(server, app, { redirect_uri: uri }), 'invalid_request', uri)
})

t.test('[rfc10017-6.3.3.4-cors] a page may call what an app needs, without cookies', async (t) => {
  const { access_token: token, refresh_token: refreshToken } = await obtainTokens(server, app, {
    fields: { scope },
  })
  const metadata = await json(await fetch(`${server.issuer}/.well-known/oauth-authorization-server`))
  const authorization = `Bearer ${token}`
  const calls = [
    ['jwks_uri', 'GET', {}, undefined],
    ['userinfo_endpoint', 'GET', { authorization }, undefined],
    [
      'token_endpoint',
      'POST',
      {},
      { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: app.id },
    ],
    ['revocation_endpoint', 'POST', {}, { token, client_id: app.id }],
    ['registration_endpoint', 'POST', { 'content-type': 'application/json' }, undefined],
  ] as const
  for (const [name, method, headers, form] of calls) {
    const url = String(metadata[name])
    const asked = {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': 'authorization, content-type, dpop',
    }
    const preflight = await fetch(url, { method: 'OPTIONS', headers: asked })
    const redirects = JSON.stringify({ redirect_uris: ['http://127.0.0.1:9510/'] })
    const body = form === undefined ? (method === 'POST' ? redirects : null) : new URLSearchParams(form)
    const response = await fetch(url, { method, headers: { ...headers, origin }, body })
    t.ok(response.ok, `${name}: ${response.status}`)
    for (const { headers: sent } of [preflight, response]) {
      t.equal(sent.get('access-control-allow-origin'), '*', name)
      t.equal(sent.get('access-control-allow-credentials'), null, name)
    }
    t.match(preflight.headers.get('access-control-allow-headers'), /authorization.*content-type.*dpop/i, name)
  }
  for (const path of ['oauth-authorization-server', 'openid-configuration']) {
    const response = await fetch(`${server.issuer}/.well-known/${path}`, { headers: { origin } })
    t.equal(response.headers.get('access-control-allow-origin'), '*', path)
  }
})

t.test(
  '[rfc10017-7.2-no-implicit] [rfc10017-7.3-no-password] tokens come from the token endpoint, for a code',
  async (t) => {
    for (const type of ['token', 'id_token token', 'code token']) {
      const response = await authorize(server, app, { response_type: type, nonce: 'a-nonce' })
      assertErrorRedirect(t, server, response, 'unsupported_response_type', { to: app.redirectUri })
      t.notMatch(response.headers.get('location'), /access_token/, `[rfc10017-7.2-no-implicit] ${type}`)
    }
    const { username, password } = alice
    const fields = { grant_type: 'password', username, password, client_id: app.id }
    const response = await post(server, '/api/oauth/token', fields)
    await assertRejected(t, response, 'unsupported_grant_type', 400, '[rfc10017-7.3-no-password]')
  },
)

t.test('[rfc10017-9-thin-id-token] the ID Token of an app has no claims about the user', async (t) => {
  const { id_token: idToken } = await obtainTokens(server, app, { fields: { scope } })
  const names = Object.keys(claimsOf(idToken))
  for (const name of ['name', 'email', 'email_verified', 'preferred_username', 'groups'])
    t.notOk(names.includes(name), name)
})
