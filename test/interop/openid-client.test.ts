/** openid-client as an application uses it, which is given only the issuer. */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  dynamicClientRegistration,
  fetchProtectedResource,
  fetchUserInfo,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  refreshTokenGrant,
  tokenIntrospection,
  tokenRevocation,
} from 'openid-client'
import t from 'tap'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const redirectUri = 'http://127.0.0.1:41234/callback'
const server = await startServer(t, { clock: 'machine' })
const user = newUser(server)

function registered(metadata: Record<string, unknown> = {}, auth?: ClientAuth): Promise<Configuration> {
  const request = { client_name: 'openid-client', redirect_uris: [redirectUri], ...metadata }
  return dynamicClientRegistration(new URL(server.issuer), request, auth, {
    execute: [allowInsecureRequests],
  })
}

/** An authorization request, and the values to check its response against. */
async function authorizationRequest(config: Configuration, parameters: Record<string, string> = {}) {
  const [verifier, state, nonce] = [randomPKCECodeVerifier(), randomState(), randomNonce()]
  const url = buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: 'openid profile email courses:read',
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    nonce,
    ...parameters,
  })
  return { url, checks: { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce } }
}

const methods: readonly [string, (secret?: string) => ClientAuth][] = [
  ['none', () => None()],
  ['client_secret_post', ClientSecretPost],
  ['client_secret_basic', ClientSecretBasic],
]
for (const [method, authentication] of methods) {
  t.test(
    `[service-5-flow-end-to-end] a client with ${method} goes from discovery to revocation knowing only the issuer`,
    async (t) => {
      const config = await registered({ token_endpoint_auth_method: method }, authentication())
      t.equal(config.clientMetadata()['token_endpoint_auth_method'], method)
      const { url, checks } = await authorizationRequest(config)
      const tokens = await authorizationCodeGrant(config, await user.approve(url), checks)
      const sub = tokens.claims()?.sub ?? ''
      t.match(tokens, { token_type: 'bearer', expires_in: 3600, refresh_token: String })

      t.match(await fetchUserInfo(config, tokens.access_token, sub), {
        sub,
        name: 'Alice Ångström',
        email: 'alice@example.test',
        email_verified: true,
      })
      const courses = new URL(`${server.issuer}/api/courses`)
      const call = await fetchProtectedResource(config, tokens.access_token, courses, 'GET')
      t.match(await call.json(), { caller: 'user', sub, scope: /courses:read/ })

      const refreshed = await refreshTokenGrant(config, tokens.refresh_token ?? '')
      t.equal(refreshed.claims()?.sub, sub)
      t.not(refreshed.access_token, tokens.access_token)
      const live = await tokenIntrospection(config, refreshed.access_token)
      t.match(live, { active: true, sub, aud: server.issuer, client_id: config.clientMetadata().client_id })

      await tokenRevocation(config, refreshed.refresh_token ?? '')
      t.same(await tokenIntrospection(config, refreshed.access_token), { active: false })
      await t.rejects(fetchProtectedResource(config, refreshed.access_token, courses, 'GET'), {
        code: 'OAUTH_WWW_AUTHENTICATE_CHALLENGE',
        status: 401,
      })
      await t.rejects(refreshTokenGrant(config, refreshed.refresh_token ?? ''), {
        code: 'OAUTH_RESPONSE_BODY_ERROR',
        error: 'invalid_grant',
        status: 400,
      })
    },
  )
}

for (const algorithm of ['RS256', 'ES256', 'EdDSA']) {
  t.test(`an ID Token signed with ${algorithm} is accepted by a client that asked for it`, async (t) => {
    const config = await registered({ id_token_signed_response_alg: algorithm }, None())
    const { url, checks } = await authorizationRequest(config)
    const tokens = await authorizationCodeGrant(config, await user.approve(url), checks)
    const [header = ''] = (tokens.id_token ?? '').split('.')
    t.match(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: algorithm, kid: String })
    t.ok(tokens.claims()?.sub)
  })
}

t.test('response_mode=form_post delivers code, state and iss in the form the client reads', async (t) => {
  const config = await registered({}, None())
  const { url, checks } = await authorizationRequest(config, { response_mode: 'form_post' })
  const posted = await user.approveByPost(url)
  t.equal(posted.url, redirectUri)
  t.match(Object.fromEntries(new URLSearchParams(await posted.clone().text())), {
    code: String,
    state: checks.expectedState,
    iss: server.issuer,
  })
  const tokens = await authorizationCodeGrant(config, posted, checks)
  t.ok(tokens.claims()?.sub)
})

t.test('a denied request reaches the client as access_denied, with state and iss', async (t) => {
  const config = await registered({}, None())
  const { url, checks } = await authorizationRequest(config)
  const response = await user.deny(url)
  t.equal(response.searchParams.get('iss'), server.issuer)
  await t.rejects(authorizationCodeGrant(config, response, checks), {
    code: 'OAUTH_AUTHORIZATION_RESPONSE_ERROR',
    error: 'access_denied',
  })
  t.equal(response.searchParams.has('code'), false)
})

t.test('auth_time satisfies a client that limits the age of the sign-in', async (t) => {
  const config = await registered({}, None())
  const { url, checks } = await authorizationRequest(config, { max_age: '600' })
  const tokens = await authorizationCodeGrant(config, await user.approve(url), { ...checks, maxAge: 600 })
  t.type(tokens.claims()?.auth_time, 'number')
})

t.test('a code works once, and the client gets invalid_grant the second time', async (t) => {
  const config = await registered({}, None())
  const { url, checks } = await authorizationRequest(config)
  const response = await user.approve(url)
  const { access_token: token } = await authorizationCodeGrant(config, response, checks)
  t.match(await tokenIntrospection(config, token), { active: true })
  await t.rejects(authorizationCodeGrant(config, response, checks), {
    code: 'OAUTH_RESPONSE_BODY_ERROR',
    error: 'invalid_grant',
  })
  t.same(await tokenIntrospection(config, token), { active: false })
})

t.test('the end session URL that the client builds signs the user out', async (t) => {
  const config = await registered({}, None())
  const { url, checks } = await authorizationRequest(config)
  const tokens = await authorizationCodeGrant(config, await user.approve(url), checks)
  const landing = await user.agent.open(
    buildEndSessionUrl(config, { id_token_hint: tokens.id_token ?? '' }).href,
  )
  t.match(landing, { at: 'page', page: { status: 200, html: /signed out/i } })
  const again = await user.agent.open((await authorizationRequest(config)).url.href)
  t.match(again, { at: 'page', page: { html: /name="password"/ } })
})
