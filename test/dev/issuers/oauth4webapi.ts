import * as oauth from 'oauth4webapi'
import type { ClientUnderTest, Surroundings } from './client.ts'
import { judged } from './openid-client.ts'

const redirectUri = 'http://127.0.0.1:41235/callback'
const http = { [oauth.allowInsecureRequests]: true }

/**
 * An application over oauth4webapi: each response goes through its function, with or without the one for signatures.
 */
export function oauth4webapi(name: string, checksSignatures: boolean): ClientUnderTest {
  return { name, run: (surroundings, at) => run(surroundings, at, checksSignatures) }
}

interface Scene extends Surroundings {
  readonly as: oauth.AuthorizationServer
  readonly client: oauth.Client
}

async function run(surroundings: Surroundings, at: (step: string) => void, checksSignatures: boolean) {
  const { issuer, waitForExpiry, tell } = surroundings
  at('resource metadata')
  const resource = new URL(issuer)
  await oauth.processResourceDiscoveryResponse(resource, await oauth.resourceDiscoveryRequest(resource, http))
  at('discovery')
  const as = await oauth.processDiscoveryResponse(resource, await oauth.discoveryRequest(resource, http))
  const metadata = { redirect_uris: [redirectUri] }
  const client = await oauth.processDynamicClientRegistrationResponse(
    await oauth.dynamicClientRegistrationRequest(as, metadata, http),
  )
  const scene = { ...surroundings, as, client }

  at('code')
  const obtainedAt = Math.floor(Date.now() / 1000)
  const tokens = await exchange(scene, checksSignatures)
  const sub = oauth.getValidatedIdTokenClaims(tokens)?.sub ?? ''
  const now = (await waitForExpiry?.()) ?? obtainedAt
  const call = (token: string) =>
    oauth.protectedResourceRequest(token, 'GET', new URL(`${issuer}/api/courses`), undefined, undefined, http)
  if (now < obtainedAt + (tokens.expires_in ?? 0)) {
    at('UserInfo')
    const userInfo = await oauth.userInfoRequest(as, client, tokens.access_token, http)
    await oauth.processUserInfoResponse(as, client, sub, userInfo)
    at('API')
    await call(tokens.access_token)
  }

  at('refresh')
  const refreshed = await refresh(scene, tokens.refresh_token)
  await call(refreshed.access_token)
  at('second refresh')
  const again = await refresh(scene, refreshed.refresh_token ?? tokens.refresh_token)

  at('introspection')
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(as, client, oauth.None(), again.access_token, http),
  )
  await judged(tell, async () => {
    const response = await oauth.introspectionRequest(as, client, oauth.None(), again.access_token, http)
    return (await oauth.processIntrospectionResponse(as, client, response)).active
  })
  // Its assertion has the time of this machine.
  if (waitForExpiry === undefined) await actForItself(scene, at)
  at('end')
}

/** The same application without a user: it signs instead of sending a secret. */
async function actForItself({ as, issuer, service, user }: Scene, at: (step: string) => void) {
  at('service')
  const { privateKey, jwk } = service.key
  const key = privateKey.toCryptoKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign'])
  const authentication = oauth.PrivateKeyJwt({ key, kid: String(jwk['kid']) })
  const client: oauth.Client = { client_id: service.id }
  const scope = new URLSearchParams({ scope: 'courses:read' })
  const response = await oauth.clientCredentialsGrantRequest(as, client, authentication, scope, http)
  const tokens = await oauth.processClientCredentialsResponse(as, client, response)
  at('service API')
  const api = new URL(`${issuer}/api/courses`)
  await oauth.protectedResourceRequest(tokens.access_token, 'GET', api, undefined, undefined, http)
  // A proof is for one URL: the issuer rejects that of an endpoint elsewhere.
  if (!as.token_endpoint?.startsWith(issuer)) return
  at('key')
  const options = { ...http, DPoP: oauth.DPoP(client, await oauth.generateKeyPair('ES256')) }
  const ask = async () => {
    const response = await oauth.clientCredentialsGrantRequest(as, client, authentication, scope, options)
    return oauth.processClientCredentialsResponse(as, client, response)
  }
  // As its documentation shows: once more if a nonce is demanded.
  const bound = await ask().catch((error) => (oauth.isDPoPNonceError(error) ? ask() : Promise.reject(error)))
  at('key API')
  await oauth.protectedResourceRequest(bound.access_token, 'GET', api, undefined, undefined, options)
  at('pushed request')
  const request = await oauth.issueRequestObject(
    as,
    client,
    {
      response_type: 'code',
      redirect_uri: redirectUri,
      scope: 'openid courses:read',
      code_challenge: await oauth.calculatePKCECodeChallenge(oauth.generateRandomCodeVerifier()),
      code_challenge_method: 'S256',
    },
    key,
  )
  const pushed = await oauth.processPushedAuthorizationResponse(
    as,
    client,
    await oauth.pushedAuthorizationRequest(as, client, authentication, { request }, http),
  )
  const url = new URL(as.authorization_endpoint ?? '')
  url.search = new URLSearchParams({
    client_id: service.id,
    request_uri: pushed.request_uri,
  }).toString()
  oauth.validateAuthResponse(as, client, await user.approve(url), oauth.expectNoState)
}

async function exchange({ as, client, user }: Scene, checksSignatures: boolean) {
  const verifier = oauth.generateRandomCodeVerifier()
  const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomNonce()]
  const url = new URL(as.authorization_endpoint ?? '')
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: redirectUri,
    scope: 'openid courses:read',
    state,
    nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }).toString()
  const callback = oauth.validateAuthResponse(as, client, await user.approve(url), state)
  const response = await oauth.authorizationCodeGrantRequest(
    as,
    client,
    oauth.None(),
    callback,
    redirectUri,
    verifier,
    http,
  )
  const expected = { expectedNonce: nonce, requireIdToken: true }
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, response, expected)
  if (checksSignatures) await oauth.validateApplicationLevelSignature(as, response, http)
  return tokens
}

async function refresh({ as, client }: Scene, token: string | undefined) {
  const response = await oauth.refreshTokenGrantRequest(as, client, oauth.None(), token ?? '', http)
  return oauth.processRefreshTokenResponse(as, client, response)
}
