import { check } from '../../domain/check.ts'
import { type Authenticated, basicChallenge } from '../../domain/client-authentication.ts'
import type { Confirmation } from '../../domain/confirmation.ts'
import type { GrantRule } from '../../domain/grant.ts'
import { isInstant, type Jws, parseJws, shown } from '../../domain/jws.ts'
import type { AuthorizationRequest, Client } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { parseScope } from '../../domain/scope.ts'

export const profileName = 'fapi2'
/** FAPI 2.0 Message Signing: the same, and what passes the browser is signed. */
export const signingProfileName = 'fapi2-message-signing'
/** The member of client metadata by which an operator chooses a client. */
export const profileMember = 'security_profile'
export const method = 'private_key_jwt'
export const mostCodeSeconds = 60
const mostRequestSeconds = 3600

/** Key in a pushed request that marks it as conforming to the profile. */
const extraName = 'fapi2'
/** Under both names of EdDSA with Ed25519. */
const algorithms: readonly unknown[] = ['PS256', 'ES256', 'EdDSA', 'Ed25519']

/**
 * Whether a client must conform to the profile, because an operator chose it or because every client must. A resource
 * server gets no tokens, so that it may introspect with a secret.
 * @param profile The setting of that name.
 */
export function isProfiled({ origin, extra }: Client, profile: string): boolean {
  const chosen = extra?.[profileMember]
  return (
    origin !== 'resource-server' &&
    (profile === profileName || chosen === profileName || chosen === signingProfileName)
  )
}

/** Whether a client must sign its requests, too, because an operator chose it. */
export function signsMessages({ extra }: Client): boolean {
  return extra?.[profileMember] === signingProfileName
}

/** Whether JWTs may be signed with this algorithm, FAPI 2.0 Security Profile §5.4.1. */
export function isAccepted(algorithm: unknown): boolean {
  return algorithms.includes(algorithm)
}

/** Returns the metadata of a server on which every client must conform: without what it rejects. */
export function narrowMetadata(
  members: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const narrowed = Object.entries(members).map(([name, value]) => {
    if (/^(token|revocation)_endpoint_auth_methods_supported$/.test(name)) return [name, [method]]
    const isOfAlgorithms = name.endsWith('_alg_values_supported') && Array.isArray(value)
    return [name, isOfAlgorithms ? value.filter(isAccepted) : value]
  })
  return { ...Object.fromEntries(narrowed), require_pushed_authorization_requests: true }
}

/** What is signed for a client about its users with. */
export function signedFor({ idTokenSignedResponseAlg, extra }: Client): readonly string[] {
  const { userinfo_signed_response_alg: userInfo } = extra ?? {}
  return [idTokenSignedResponseAlg, ...(typeof userInfo === 'string' ? [userInfo] : [])]
}

/** What holds for the grants of such a client, FAPI 2.0 Security Profile §5.3.2.1 and §5.4.1. */
export const grantRule: GrantRule = {
  mostCodeSeconds,
  keepsRefreshToken: true,
  accessTokenAlgorithm: 'ES256',
  idTokenAlgorithms: ['ES256', 'EdDSA'],
  thinIdToken: true,
}

/**
 * Checks how a client has authenticated: by an assertion of its own, to this server alone, FAPI 2.0 Security Profile
 * §5.3.2.1.
 * @throws {OAuthError} `invalid_client`
 */
export function assertAuthentication({ client, proof = '', realm }: Authenticated, issuer: string): void {
  const { authenticationMethod } = client
  const must = (ok: boolean, rule: string, description: string, received: unknown, passed: string): void =>
    check(ok, rule, 'invalid_client', `FAPI 2.0: ${description}`, {
      received: shown(received),
      passed,
      ...(realm.alwaysUnauthorized ? { headers: basicChallenge } : { status: 400 }),
    })
  must(
    authenticationMethod !== 'none',
    'fapi2-5.3.2.1-confidential-clients',
    'a public client gets no tokens',
    authenticationMethod,
    'the client is confidential',
  )
  const { header, claims }: Partial<Jws> = parseJws(proof) ?? {}
  must(
    authenticationMethod === method && claims?.['iss'] === client.id,
    'fapi2-5.3.2.1-client-authentication',
    'the client must authenticate by private_key_jwt, with a key of its own',
    authenticationMethod === method ? claims?.['iss'] : authenticationMethod,
    'the client authenticates by its own key',
  )
  must(
    claims?.['aud'] === issuer,
    'fapi2-5.3.2.1-assertion-audience',
    'aud must be the issuer, as a string',
    claims?.['aud'],
    'aud is the issuer',
  )
  must(
    isAccepted(header?.['alg']),
    'fapi2-5.4.1-algorithms',
    'an assertion is signed with PS256, ES256 or EdDSA',
    header?.['alg'],
    'the algorithm of the assertion is one of the profile',
  )
}

/**
 * Returns what is stored with a request that a client of the profile pushes. A request object has a signature of its
 * own, FAPI 2.0 Security Profile §5.4.1, and one that cannot be accepted has an error of its own, RFC 9101 §6.2.
 * @param mustSign Whether the client must push a request object, FAPI 2.0 Message Signing §5.3.1.
 * @throws {OAuthError} `invalid_request_object`, and `invalid_request` for parameters that are not signed.
 */
export function extraOfPush(
  parameters: Parameters,
  mustSign = false,
): NonNullable<AuthorizationRequest['extra']> {
  const object = single(parameters, 'request')
  const jws = object === undefined ? undefined : parseJws(object)
  const algorithm = jws?.header['alg']
  check(
    object === undefined || isAccepted(algorithm),
    'fapi2-5.4.1-algorithms',
    'invalid_request_object',
    'FAPI 2.0: a request object is signed with PS256, ES256 or EdDSA',
    { received: shown(algorithm), passed: 'the request is signed with no other algorithm' },
  )
  if (mustSign) assertSignedFor(jws)
  return { [extraName]: true }
}

/** FAPI 2.0 Message Signing §5.3.1: it is signed, and for at most an hour. RFC 9101 judges what the times are. */
function assertSignedFor(object: Jws | undefined): void {
  check(
    object !== undefined,
    'fapi2-ms-5.3.1-signed-request',
    'invalid_request',
    'FAPI 2.0 Message Signing: the client must push its parameters as a signed request object (request)',
    { passed: 'the request is signed' },
  )
  const { exp, nbf } = object.claims
  check(
    isInstant(nbf) && isInstant(exp) && exp - nbf <= mostRequestSeconds,
    'fapi2-ms-5.3.1-exp-nbf',
    'invalid_request_object',
    'FAPI 2.0 Message Signing: a request object has nbf, and exp at most 60 minutes later',
    { received: shown({ exp, nbf }), passed: 'the request object is for at most 60 minutes' },
  )
}

/**
 * Checks an authorization request, when it is pushed and when the browser brings its reference, FAPI 2.0 Security
 * Profile §5.3.2.2.
 * @throws {OAuthError} `invalid_request`, and `unauthorized_client` for a client that would get another kind of ID
 * Token.
 */
export function assertRequest(
  client: Client,
  extra: NonNullable<AuthorizationRequest['extra']>,
  parameters: Parameters,
): void {
  check(
    extra[extraName] === true,
    'fapi2-5.3.2.2-require-par',
    'invalid_request',
    'FAPI 2.0: the client must push the request, and authenticate for that',
    { passed: 'the client pushed the request' },
  )
  check(
    single(parameters, 'redirect_uri') !== undefined,
    'fapi2-5.3.2.2-redirect-uri-required',
    'invalid_request',
    'FAPI 2.0: redirect_uri is missing',
    { passed: 'redirect_uri is present' },
  )
  check(
    single(parameters, 'code_challenge') !== undefined,
    'fapi2-5.3.2.2-pkce-s256',
    'invalid_request',
    'FAPI 2.0: code_challenge is missing',
    { passed: 'code_challenge is present' },
  )
  const getsIdToken = parseScope(single(parameters, 'scope') ?? '').includes('openid')
  check(
    !getsIdToken || signedFor(client).every(isAccepted),
    'fapi2-5.4.1-algorithms',
    'unauthorized_client',
    'FAPI 2.0: ID Tokens or UserInfo of this client are signed with RS256 (id_token_signed_response_alg)',
    { stored: signedFor(client), passed: 'ID Tokens have an algorithm of the profile' },
  )
}

/**
 * Checks that a token request proves a key: no other tokens are issued, FAPI 2.0 Security Profile §5.3.2.1.
 * @throws {OAuthError} `invalid_dpop_proof`
 */
export function assertBound(confirmation: Confirmation | undefined): void {
  check(
    confirmation !== undefined,
    'fapi2-5.3.2.1-sender-constrained',
    'invalid_dpop_proof',
    'FAPI 2.0: tokens are bound to a key of the client; send a DPoP header',
    { passed: 'the tokens are bound to a key of the client' },
  )
}
