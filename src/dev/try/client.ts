/** The requests and checks of the try-it client, by oauth4webapi with a `fetch` that records what it sends. */
import { hash } from 'node:crypto'
import { compactVerify, createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet } from 'jose'
import * as oauth from 'oauth4webapi'
import { systemClock } from '../../system/system.ts'
import { type Attempt, attempt, type Run, type Take } from './run.ts'

/** The authorization request, parameter by parameter, RFC 6749 §4.1.1. */
export function authorizationParameters(run: Run): readonly { name: string; value: string; why: string }[] {
  return [
    { name: 'response_type', value: 'code', why: 'only a code goes through the browser' },
    { name: 'client_id', value: run.clientId ?? '', why: 'the client' },
    { name: 'redirect_uri', value: run.redirectUri, why: 'where the response goes; any port is allowed' },
    { name: 'scope', value: run.scope, why: 'what the client wants to do' },
    { name: 'state', value: run.state, why: 'binds the response to this browser and this request' },
    { name: 'nonce', value: run.nonce, why: 'binds the ID Token to this request' },
    {
      name: 'code_challenge',
      value: run.challenge,
      why: 'binds the code to the client that has the verifier',
    },
    { name: 'code_challenge_method', value: 'S256', why: 'the only method that is accepted' },
    ...(run.loginHint === undefined
      ? []
      : [{ name: 'login_hint', value: run.loginHint, why: 'fills in the user name' }]),
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
export const discover = attempt('The metadata could not be fetched.', async (attempt) => {
  const { run, place, options, members, check } = attempt
  const issuer = new URL(place.issuer)
  const response = await oauth.discoveryRequest(issuer, { ...options, algorithm: 'oauth2' })
  const found = members()
  if (response.ok && found !== undefined) check('issuer', place.issuer, found['issuer'])
  run.metadata = await oauth.processDiscoveryResponse(issuer, response)
  return { said: 'The metadata lists every endpoint.' }
})

/** Registers the client, RFC 7591 §3.1. */
export const register = attempt('The client was not registered.', async ({ run, as, options }) => {
  const metadata = {
    client_name: 'Lychgate try-it',
    application_type: 'native',
    redirect_uris: [run.redirectUri],
    token_endpoint_auth_method: 'none',
  }
  const response = await oauth.dynamicClientRegistrationRequest(as, metadata, options)
  const { client_id: clientId } = await oauth.processDynamicClientRegistrationResponse(response)
  run.clientId = clientId
  return { said: `The client_id is ${clientId}.` }
})

/** Shows how the PKCE pair is computed, RFC 7636 §4.2. */
export const prepare = attempt('', async ({ run }) => {
  const digest = Buffer.from(run.challenge, 'base64url').toString('hex')
  const verifierIs = '32 random bytes in base64url, 43 characters; it stays in the client'
  const shown = [
    { name: 'code_verifier', value: run.verifier, why: verifierIs },
    { name: 'SHA-256', value: digest, why: 'the hash of the verifier' },
    { name: 'code_challenge', value: run.challenge, why: 'the hash in base64url, without padding' },
    { name: 'state', value: run.state, why: 'returned with the code' },
    { name: 'nonce', value: run.nonce, why: 'returned in the ID Token' },
  ]
  return { said: 'challenge = base64url(SHA-256(verifier))', shown }
})

/** Validates the authorization response, RFC 9207 §2.4. */
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
    return { said: 'The response has a code.', shown }
  } catch {
    return { ok: false, said: 'This response must not be used.', shown }
  }
})

/** Requests tokens for the code, RFC 6749 §4.1.3. */
export const exchange = attempt('The response has no tokens.', async (attempt) =>
  keepTokens(attempt, await redeem(attempt, attempt.run.verifier)),
)

/** Requests tokens for the code and this verifier. */
export function redeem({ run, as, client, options }: Attempt, verifier: string): Promise<Response> {
  const parameters = run.validated ?? new URLSearchParams()
  const [none, to] = [oauth.None(), run.redirectUri]
  return oauth.authorizationCodeGrantRequest(as, client, none, parameters, to, verifier, options)
}

/** Requests new tokens for the refresh token, RFC 6749 §6. */
export const refresh = attempt('The response has no tokens.', async (attempt) =>
  keepTokens(attempt, await refreshWith(attempt, attempt.run.tokens?.refresh)),
)

/** Requests new tokens for this refresh token. */
export function refreshWith({ as, client, options }: Attempt, token = ''): Promise<Response> {
  return oauth.refreshTokenGrantRequest(as, client, oauth.None(), token, options)
}

/** Stores the tokens of a response. The ID Token is checked by another step. */
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
  return { said: `The access token expires in ${seconds} seconds.`, decoded }
}

function decodedToken(name: string, jws: string): { readonly name: string; readonly json: string } {
  const decoded = { header: decodeProtectedHeader(jws), claims: decodeJwt(jws) }
  return { name, json: JSON.stringify(decoded, undefined, 2) }
}

/** Checks the ID Token, OpenID Connect Core §3.1.3.7: the library decides, the page shows the comparisons. */
export const identify = attempt('The keys could not be fetched.', async (attempt) => {
  const { run, as, client, fetch, options, members } = attempt
  await fetch(`${as.jwks_uri}`, { method: 'GET' })
  const { id, json } = run.tokens ?? {}
  if (id === undefined || json === undefined)
    return { said: 'There is no ID Token, because the scope openid was not granted.' }
  // `as unknown as`: jose and the library check every member.
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
    return { said: `The user is ${sub}.` }
  } catch {
    return { ok: false, said: 'This ID Token must not be used.' }
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
export const userInfo = attempt('There are no claims.', async (attempt) => {
  const { run, as, client, options, members, check } = attempt
  const response = await oauth.userInfoRequest(as, client, run.tokens?.access ?? '', options)
  if (response.ok && run.sub !== undefined) check('sub', run.sub, members()?.['sub'])
  const expected = run.sub ?? oauth.skipSubjectCheck
  const { sub } = await oauth.processUserInfoResponse(as, client, expected, response)
  return { said: `The claims of ${sub}.` }
})

/** Calls the API with the access token, RFC 6750 §2.1. */
export function apiRequest({ run, place, options }: Attempt, method: 'GET' | 'POST'): Promise<Response> {
  const url = new URL(`${place.issuer}/api/${run.area}`)
  return oauth.protectedResourceRequest(run.tokens?.access ?? '', method, url, undefined, null, options)
}

/** Sends a request, and compares the status of its response. */
export function expectStatus(
  expected: number,
  said: string,
  send: (attempt: Attempt) => Promise<unknown>,
): Take {
  return attempt('', async (attempt) => {
    const status = await attempt.statusOf(send(attempt))
    const ok = status === expected
    return { ok, said: ok ? said : `${status}, not ${expected}.` }
  })
}

/** Introspects the access token, RFC 7662 §2.1. */
export const introspect = attempt('The token is not active.', async ({ run, as, client, options }) => {
  const token = run.tokens?.access ?? ''
  const response = await oauth.introspectionRequest(as, client, oauth.None(), token, options)
  const { active } = await oauth.processIntrospectionResponse(as, client, response)
  return { ok: active, said: `The token is ${active ? '' : 'not '}active.` }
})

/** Revokes the grant, RFC 7009 §2.1. */
export const revoke = attempt('The token was not revoked.', async ({ run, as, client, options }) => {
  const token = run.tokens?.refresh ?? run.tokens?.access ?? ''
  const response = await oauth.revocationRequest(as, client, oauth.None(), token, options)
  await oauth.processRevocationResponse(response)
  return { said: 'The token is invalid now.' }
})
