/** oauth4webapi, which checks every response strictly: both discovery documents, at issuers with and without a path. */
import * as oauth from 'oauth4webapi'
import t, { type Test } from 'tap'
import { startServer, type TestServer } from '../helpers/server.ts'
import { newUser, type TestUser } from '../helpers/user.ts'

const redirectUri = 'http://127.0.0.1:41235/callback'
const http = { [oauth.allowInsecureRequests]: true }
const jwtResource = {
  identifier: 'https://signed.example',
  name: 'An API that verifies by itself',
  scopes: ['courses:read'],
  tokenFormat: 'jwt' as const,
}

/** A server, its metadata as the client discovered it, and a user. */
interface Scene {
  readonly server: TestServer
  readonly as: oauth.AuthorizationServer
  readonly client: oauth.Client
  readonly user: TestUser
}

async function discover(issuer: string, algorithm: 'oidc' | 'oauth2'): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer)
  return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, { algorithm, ...http }))
}

async function registered(as: oauth.AuthorizationServer, metadata = {}): Promise<oauth.Client> {
  const request = { redirect_uris: [redirectUri], ...metadata }
  const response = await oauth.dynamicClientRegistrationRequest(as, request, http)
  return oauth.processDynamicClientRegistrationResponse(response)
}

async function request(scene: Scene, parameters: Record<string, string> = {}) {
  const verifier = oauth.generateRandomCodeVerifier()
  const checks = { verifier, state: oauth.generateRandomState(), nonce: oauth.generateRandomNonce() }
  const url = new URL(scene.as.authorization_endpoint ?? '')
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: scene.client.client_id,
    redirect_uri: redirectUri,
    scope: 'openid courses:read',
    state: checks.state,
    nonce: checks.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...parameters,
  }).toString()
  return { url, checks }
}

/** Tokens of a whole flow, with each response checked by the library. */
async function obtainTokens(scene: Scene, parameters: Record<string, string> = {}) {
  const { as, client, user } = scene
  const { url, checks } = await request(scene, parameters)
  const callback = oauth.validateAuthResponse(as, client, await user.approve(url), checks.state)
  const response = await oauth.authorizationCodeGrantRequest(
    as,
    client,
    oauth.None(),
    callback,
    redirectUri,
    checks.verifier,
    http,
  )
  return oauth.processAuthorizationCodeResponse(as, client, response, {
    expectedNonce: checks.nonce,
    ...(parameters['max_age'] && { maxAge: Number(parameters['max_age']) }),
    requireIdToken: true,
  })
}

function call(url: string, token: string, method = 'GET'): Promise<Response> {
  return oauth.protectedResourceRequest(token, method, new URL(url), undefined, undefined, http)
}

async function setTheScene(issuerPath: string): Promise<Scene> {
  const server = await startServer(t, { clock: 'machine', issuerPath, resources: [jwtResource] })
  const as = await discover(server.issuer, 'oidc')
  return { server, as, client: await registered(as), user: newUser(server) }
}

/** The one challenge that the library parsed from an error. */
async function challengeOf(t: Test, response: Promise<unknown>) {
  const error = await response.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof oauth.WWWAuthenticateChallengeError)) throw new Error(`no challenge: ${error}`)
  const [challenge, ...others] = error.cause
  t.same(others, [], 'one challenge')
  return { status: error.status, ...challenge }
}

const atRoot = await setTheScene('')
const scenes = [
  ['without a path', atRoot],
  ['with a path', await setTheScene('/t')],
] as const

for (const [about, scene] of scenes) {
  const { server, as, client } = scene

  t.test(
    `[mcp-overview-discovery-either] an issuer ${about} is discovered by both forms, and they agree`,
    async (t) => {
      t.equal(as.issuer, server.issuer)
      t.same(await discover(server.issuer, 'oauth2'), as)
    },
  )

  t.test(`[rfc9728-3.3-resource-matches-request] the API of an issuer ${about} is discovered`, async (t) => {
    const resource = new URL(server.issuer)
    const response = await oauth.resourceDiscoveryRequest(resource, http)
    const metadata = await oauth.processResourceDiscoveryResponse(resource, response)
    t.match(metadata, { resource: server.issuer, authorization_servers: [as.issuer] })
    t.ok(as['protected_resources'])
  })

  t.test(`code, refresh, introspection and revocation at an issuer ${about} pass every check`, async (t) => {
    const tokens = await obtainTokens(scene, { max_age: '300' })
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    t.match(claims, { iss: server.issuer, aud: client.client_id, auth_time: Number })
    const userInfo = await oauth.userInfoRequest(as, client, tokens.access_token, http)
    t.same(await oauth.processUserInfoResponse(as, client, claims?.sub ?? '', userInfo), { sub: claims?.sub })

    const refreshToken = tokens.refresh_token ?? ''
    const response = await oauth.refreshTokenGrantRequest(as, client, oauth.None(), refreshToken, http)
    const refreshed = await oauth.processRefreshTokenResponse(as, client, response)
    t.match(oauth.getValidatedIdTokenClaims(refreshed), {
      sub: claims?.sub,
      auth_time: claims?.auth_time,
      nonce: undefined,
    })

    const introspect = async () => {
      const response = await oauth.introspectionRequest(
        as,
        client,
        oauth.None(),
        refreshed.access_token,
        http,
      )
      return oauth.processIntrospectionResponse(as, client, response)
    }
    t.match(await introspect(), { active: true, iss: server.issuer, aud: server.issuer, sub: claims?.sub })
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(as, client, oauth.None(), refreshed.access_token, http),
    )
    t.same(await introspect(), { active: false })
  })
}

const { as, client, user, server } = atRoot
t.test('[rfc9207-2.3-flag] a client that reads the metadata requires iss, and the right one', async (t) => {
  const { url, checks } = await request(atRoot)
  const response = await user.approve(url)
  t.ok(oauth.validateAuthResponse(as, client, response, checks.state))
  const [without, wrong] = [new URL(response), new URL(response)]
  without.searchParams.delete('iss')
  wrong.searchParams.set('iss', `${server.issuer}/`)
  for (const url of [without, wrong])
    t.throws(() => oauth.validateAuthResponse(as, client, url, checks.state), { code: /OAUTH_INVALID/ })
  t.equal(as.authorization_response_iss_parameter_supported, true)
  t.equal((await discover(server.issuer, 'oauth2')).authorization_response_iss_parameter_supported, true)
})

t.test('an error redirect is parsed as one, with its code', async (t) => {
  const { url, checks } = await request(atRoot, { prompt: 'none' })
  const response = await user.approve(url)
  t.throws(() => oauth.validateAuthResponse(as, client, response, checks.state), {
    error: 'consent_required',
    code: 'OAUTH_AUTHORIZATION_RESPONSE_ERROR',
  })
})

t.test(
  '[service-5-invalid-token-points-to-prm] [rfc9728-5.1-resource-metadata-param] the challenge to an invalid token leads to the metadata',
  async (t) => {
    const challenge = await challengeOf(t, call(`${server.issuer}/api/courses`, 'garbage'))
    t.match(challenge, { status: 401, scheme: 'bearer', parameters: { error: 'invalid_token' } })
    t.match(challenge.parameters?.error_description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/)
    const metadata = await fetch(challenge.parameters?.resource_metadata ?? '')
    t.equal(metadata.status, 200)
    t.match(await metadata.json(), { resource: server.issuer, authorization_servers: [server.issuer] })
  },
)

t.test(
  '[service-5-insufficient-scope-points-to-prm] the challenge to a token without the scope names the scope',
  async (t) => {
    const { access_token: token } = await obtainTokens(atRoot)
    const challenge = await challengeOf(t, call(`${server.issuer}/api/courses`, token, 'POST'))
    t.match(challenge, {
      status: 403,
      parameters: {
        error: 'insufficient_scope',
        scope: 'courses:write',
        resource_metadata: `${server.issuer}/.well-known/oauth-protected-resource`,
      },
    })
    t.equal((await call(`${server.issuer}/api/courses`, token)).status, 200, 'the token still reads')
  },
)

t.test('the token endpoint challenges only a client that used HTTP Basic', async (t) => {
  const secretive = await registered(as, { token_endpoint_auth_method: 'client_secret_post' })
  const basic = await registered(as, { token_endpoint_auth_method: 'client_secret_basic' })
  const redeem = async (client: oauth.Client, auth: oauth.ClientAuth) => {
    const response = await oauth.refreshTokenGrantRequest(as, client, auth, 'none', http)
    return oauth.processRefreshTokenResponse(as, client, response)
  }
  await t.rejects(redeem(secretive, oauth.ClientSecretPost('wrong')), {
    code: 'OAUTH_RESPONSE_BODY_ERROR',
    error: 'invalid_client',
    status: 400,
  })
  const challenge = await challengeOf(t, redeem(basic, oauth.ClientSecretBasic('wrong')))
  t.match(challenge, { status: 401, scheme: 'basic', parameters: { realm: String } })
})

t.test('a JWT access token passes the checks of RFC 9068, for its own audience only', async (t) => {
  const { access_token: token } = await obtainTokens(atRoot, {
    resource: jwtResource.identifier,
    scope: 'openid courses:read',
  })
  const incoming = () =>
    new Request('https://signed.example/courses', { headers: { authorization: `Bearer ${token}` } })
  const claims = await oauth.validateJwtAccessToken(as, incoming(), jwtResource.identifier, http)
  t.match(claims, { client_id: client.client_id, scope: 'courses:read', sub: String, jti: String })
  await t.rejects(oauth.validateJwtAccessToken(as, incoming(), server.issuer, http), {
    code: 'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  })
  t.match(await challengeOf(t, call(`${server.issuer}/api/courses`, token)), { status: 401 })
})
