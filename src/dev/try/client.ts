/** The requests and checks of the try-it client, by oauth4webapi with a `fetch` that records what it sends. */
import { hash } from 'node:crypto'
import { compactVerify, createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet } from 'jose'
import * as oauth from 'oauth4webapi'
import { systemClock } from '../../system.ts'
import { type Attempt, attempt } from './attempt.ts'
import type { Run } from './run.ts'

/** The authorization request, parameter by parameter, RFC 6749 §4.1.1. */
export function authorizationParameters(run: Run): readonly { name: string; value: string; why: string }[] {
  return [
    { name: 'response_type', value: 'code', why: 'nothing but a code goes through the browser' },
    { name: 'client_id', value: run.clientId ?? '', why: 'who asks' },
    { name: 'redirect_uri', value: run.redirectUri, why: 'where the answer goes; the port is free' },
    { name: 'scope', value: run.scope, why: 'what for' },
    { name: 'state', value: run.state, why: 'ties the answer to this browser and this request' },
    { name: 'nonce', value: run.nonce, why: 'ties the ID Token to this request' },
    { name: 'code_challenge', value: run.challenge, why: 'ties the code to whoever has the verifier' },
    { name: 'code_challenge_method', value: 'S256', why: 'the only method there is' },
    ...(run.loginHint === undefined
      ? []
      : [{ name: 'login_hint', value: run.loginHint, why: 'fills the page in' }]),
  ]
}

/** The URL of the authorization request. */
export function authorizationUrl(run: Run): string {
  const query = new URLSearchParams(
    authorizationParameters(run).map(({ name, value }): [string, string] => [name, value]),
  )
  return `${run.metadata?.authorization_endpoint}?${query}`
}

/** Fetches the metadata of the issuer, RFC 8414 §3. */
export const discover = attempt('There is no metadata.', async (attempt) => {
  const { run, place, options, members, check } = attempt
  const issuer = new URL(place.issuer)
  const response = await oauth.discoveryRequest(issuer, { ...options, algorithm: 'oauth2' })
  const found = members()
  if (response.ok && found !== undefined) check('issuer', place.issuer, found['issuer'])
  run.metadata = await oauth.processDiscoveryResponse(issuer, response)
  return { said: 'The metadata names every endpoint.' }
})

/** Registers the client, RFC 7591 §3.1. */
export const register = attempt('It was not registered.', async ({ run, as, options }) => {
  const metadata = {
    client_name: 'Lychgate try-it',
    application_type: 'native',
    redirect_uris: [run.redirectUri],
    token_endpoint_auth_method: 'none',
  }
  const response = await oauth.dynamicClientRegistrationRequest(as, metadata, options)
  const { client_id: clientId } = await oauth.processDynamicClientRegistrationResponse(response)
  run.clientId = clientId
  return { said: `This client is ${clientId} from now on.` }
})

/** Shows how the PKCE pair is computed, RFC 7636 §4.2. */
export const prepare = attempt('', async ({ run }) => {
  const digest = Buffer.from(run.challenge, 'base64url').toString('hex')
  const verifierIs = '32 random bytes in base64url, 43 characters; stays here'
  const shown = [
    { name: 'code_verifier', value: run.verifier, why: verifierIs },
    { name: 'SHA-256', value: digest, why: 'of the characters of the verifier, as bytes' },
    { name: 'code_challenge', value: run.challenge, why: 'these bytes in base64url, without padding' },
    { name: 'state', value: run.state, why: 'comes back with the code' },
    { name: 'nonce', value: run.nonce, why: 'comes back in the ID Token' },
  ]
  return { said: 'challenge = base64url(SHA-256(verifier))', shown }
})

/** Validates what came to the redirect URI, RFC 9207 §2.4. */
export const comeBack = attempt('', async ({ run, place, as, client, check }) => {
  const { state = '', iss = '', error, error_description: description } = run.callback ?? {}
  check('state', run.state, state)
  check('iss', place.issuer, iss)
  const shown = Object.entries(run.callback ?? {}).map(([name, value]) => ({ name, value }))
  if (error !== undefined) return { ok: false, said: `${error}: ${description}`, shown }
  try {
    const validated = oauth.validateAuthResponse(as, client, new URLSearchParams(run.callback), run.state)
    if (!validated.has('code')) throw new Error('code is missing')
    run.validated = validated
    return { said: 'The browser came back with a code.', shown }
  } catch {
    return { ok: false, said: 'This answer must not be used.', shown }
  }
})

/** Requests tokens for the code, RFC 6749 §4.1.3. */
export const exchange = attempt('There are no tokens.', async (attempt) =>
  keepTokens(attempt, await redeem(attempt, attempt.run.verifier)),
)

/** Requests tokens for the code and this verifier. */
export function redeem({ run, as, client, options }: Attempt, verifier: string): Promise<Response> {
  const parameters = run.validated ?? new URLSearchParams()
  const { redirectUri } = run
  return oauth.authorizationCodeGrantRequest(
    as,
    client,
    oauth.None(),
    parameters,
    redirectUri,
    verifier,
    options,
  )
}

/** Requests new tokens for the refresh token, RFC 6749 §6. */
export const refresh = attempt('There are no tokens.', async (attempt) =>
  keepTokens(attempt, await refreshWith(attempt, attempt.run.tokens?.refresh)),
)

/** Requests new tokens for this refresh token. */
export function refreshWith({ as, client, options }: Attempt, token = ''): Promise<Response> {
  return oauth.refreshTokenGrantRequest(as, client, oauth.None(), token, options)
}

/** Remembers the tokens of a response. Its ID Token is checked by another step. */
async function keepTokens({ run, as, client, members }: Attempt, response: Response) {
  const { id_token: id, ...others } = members() ?? {}
  const withoutIdToken = new Response(JSON.stringify(others), response)
  const tokens = await oauth.processGenericTokenEndpointResponse(as, client, withoutIdToken)
  const { access_token: access, refresh_token: next, expires_in: seconds } = tokens
  if (run.tokens?.refresh !== undefined) run.replaced = run.tokens.refresh
  run.tokens = {
    access,
    ...(next !== undefined && { refresh: next }),
    ...(typeof id === 'string' && { id }),
    json: JSON.stringify(members()),
  }
  const decoded = [
    ...(typeof id === 'string' ? [decodedToken('ID Token', id)] : []),
    ...(access.startsWith('eyJ') ? [decodedToken('access token', access)] : []),
  ]
  return { said: `The access token lives for ${seconds} seconds.`, decoded }
}

function decodedToken(name: string, jws: string): { readonly name: string; readonly json: string } {
  const decoded = { header: decodeProtectedHeader(jws), claims: decodeJwt(jws) }
  return { name, json: JSON.stringify(decoded, undefined, 2) }
}

/** Checks the ID Token, OpenID Connect Core §3.1.3.7: the library decides, and the page shows what is compared. */
export const identify = attempt('There are no keys.', async (attempt) => {
  const { run, as, client, fetch, options, members } = attempt
  await fetch(`${as.jwks_uri}`, { method: 'GET' })
  const { id, json } = run.tokens ?? {}
  if (id === undefined || json === undefined) return { said: 'There is no ID Token: openid was not granted.' }
  // `as unknown as`: the set is what the server sent; jose and the library look at every member themselves.
  const jwks = (members() ?? {}) as unknown as JSONWebKeySet
  const { sub } = decodeJwt(id)
  // A copy, because the library remembers the keys of each server.
  const server = { ...as }
  const response = new Response(json, { headers: { 'content-type': 'application/json' } })
  const keys = { [oauth.jwksCache]: { jwks, uat: systemClock() } }
  try {
    if (!(await compareClaims(attempt, id, jwks))) throw new Error('a check failed')
    await oauth.processAuthorizationCodeResponse(server, client, response, { expectedNonce: run.nonce })
    await oauth.validateApplicationLevelSignature(server, response, { ...options, ...keys })
    if (sub !== undefined) run.sub = sub
    return { said: `It is ${sub} who signed in.` }
  } catch {
    return { ok: false, said: 'This ID Token must not be believed.' }
  }
})

/** Adds a check for the signature and for each claim, and returns whether all are passed. */
async function compareClaims({ run, place, check }: Attempt, jws: string, jwks: JSONWebKeySet) {
  const { alg = '' } = decodeProtectedHeader(jws)
  const { iss, aud, exp, iat, nonce, at_hash: atHash } = decodeJwt(jws)
  const { clientId = '', tokens } = run
  const now = place.now()
  const isSigned = await compactVerify(jws, createLocalJWKSet(jwks)).then(
    () => true,
    () => false,
  )
  const results = [
    check('signature', 'by a key of jwks_uri', alg, isSigned),
    check('iss', place.issuer, iss),
    check('aud', clientId, aud, [aud].flat().includes(clientId)),
    check('exp', `after ${now}`, exp, Number(exp) > now),
    check('iat', `about ${now}`, iat, Math.abs(Number(iat) - now) < 300),
    check('nonce', run.nonce, nonce),
    atHash === undefined || check('at_hash', accessTokenHash(alg, tokens?.access ?? ''), atHash),
  ]
  return results.every((ok) => ok)
}

/** OpenID Connect Core §3.1.3.6: the left half of the digest that the signature uses; Ed25519 uses SHA-512. */
function accessTokenHash(alg: string, accessToken: string): string {
  const digest = hash(alg === 'EdDSA' ? 'sha512' : 'sha256', accessToken, 'buffer')
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

/** Calls UserInfo, OpenID Connect Core §5.3. */
export const userInfo = attempt('Nothing was told.', async (attempt) => {
  const { run, as, client, options, members, check } = attempt
  const response = await oauth.userInfoRequest(as, client, run.tokens?.access ?? '', options)
  if (response.ok && run.sub !== undefined) check('sub', run.sub, members()?.['sub'])
  const expected = run.sub ?? oauth.skipSubjectCheck
  const { sub } = await oauth.processUserInfoResponse(as, client, expected, response)
  return { said: `These are the claims of ${sub}.` }
})

/** Calls the API with the access token, RFC 6750 §2.1. */
export function apiRequest({ run, place, options }: Attempt, method: 'GET' | 'POST'): Promise<Response> {
  const url = new URL(`${place.issuer}/api/${run.area}`)
  return oauth.protectedResourceRequest(run.tokens?.access ?? '', method, url, undefined, null, options)
}

/** Calls the API; any status other than the expected one is a failure. */
export const callApi = (expected: 200 | 401) =>
  attempt('', async (attempt) => {
    const status = await attempt.statusOf(apiRequest(attempt, 'GET'))
    const ok = status === expected
    return { ok, said: ok ? `${status}, as it should be.` : `${status}, where ${expected} was expected.` }
  })

/** Introspects the access token, RFC 7662 §2.1. */
export const introspect = attempt('It is not active.', async ({ run, as, client, options }) => {
  const token = run.tokens?.access ?? ''
  const response = await oauth.introspectionRequest(as, client, oauth.None(), token, options)
  const { active } = await oauth.processIntrospectionResponse(as, client, response)
  return { ok: active, said: active ? 'It is active.' : 'It is not active.' }
})

/** Revokes the grant, RFC 7009 §2.1. */
export const revoke = attempt('It was not revoked.', async ({ run, as, client, options }) => {
  const token = run.tokens?.refresh ?? run.tokens?.access ?? ''
  const response = await oauth.revocationRequest(as, client, oauth.None(), token, options)
  await oauth.processRevocationResponse(response)
  return { said: 'It is dead, whatever it was.' }
})
