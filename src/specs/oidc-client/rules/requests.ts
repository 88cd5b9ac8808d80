import { hash } from 'node:crypto'
import { check } from '../../../domain/check.ts'
import { hmacText } from '../../../domain/hmac.ts'
import { isObject } from '../../../domain/is-object.ts'
import type { Hash, Seconds } from '../../../domain/model.ts'
import { type Parameters, single } from '../../../domain/parameters.ts'
import { recordKind } from '../../../domain/record.ts'
import { isLoopbackUri } from '../../../domain/redirect-uri.ts'
import { isSameText } from '../../../domain/secret.ts'

/*
 * What this server sends to an upstream, and how it reads what comes back. An upstream is trusted with the sign-in of its
 * own users and with nothing else: every response is narrowed before anything uses it.
 */

/** What is used of the metadata of an upstream, OpenID Connect Discovery §3. */
export interface Provider {
  readonly issuer: unknown
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly keysUri: string
  readonly userInfoEndpoint?: string
  /** Whether every authorization response has `iss`, RFC 9207 §3. */
  readonly sendsIss: boolean
}

/**
 * Reads the metadata of an OpenID Provider. Codes, secrets and tokens go over https, or stay on this computer.
 * @throws {OAuthError} `upstream_rejected`
 */
export function readProvider(json: unknown): Provider {
  const metadata = isObject(json) ? json : {}
  const urlOf = (name: string): string => {
    const url = metadata[name]
    const isUsable =
      typeof url === 'string' &&
      url.length <= 2000 &&
      (/^https:\/\/[^#]+$/.test(url) || isLoopbackUri(url)) &&
      URL.canParse(url)
    check(
      isUsable,
      'oidc-disc-3-rp-endpoints',
      'upstream_rejected',
      `the metadata of the upstream has no usable ${name}`,
    )
    return url
  }
  return {
    issuer: metadata['issuer'],
    authorizationEndpoint: urlOf('authorization_endpoint'),
    tokenEndpoint: urlOf('token_endpoint'),
    keysUri: urlOf('jwks_uri'),
    ...(metadata['userinfo_endpoint'] !== undefined && { userInfoEndpoint: urlOf('userinfo_endpoint') }),
    sendsIss: metadata['authorization_response_iss_parameter_supported'] === true,
  }
}

/**
 * Checks that metadata is that of the configured issuer, OpenID Connect Discovery §4.3, and that an issuer on https has
 * every endpoint there.
 * @throws {OAuthError} `upstream_rejected`
 */
export function assertIssuer(provider: Provider, issuer: string): void {
  check(
    provider.issuer === issuer,
    'oidc-disc-4.3-rp-issuer-exact',
    'upstream_rejected',
    'the metadata of the upstream is that of another issuer',
    { stored: issuer, passed: 'the metadata has the configured issuer' },
  )
  const { authorizationEndpoint, tokenEndpoint, keysUri, userInfoEndpoint = 'https:' } = provider
  const endpoints = [authorizationEndpoint, tokenEndpoint, keysUri, userInfoEndpoint]
  check(
    issuer.startsWith('http:') || endpoints.every((endpoint) => endpoint.startsWith('https:')),
    'oidc-disc-3-rp-endpoints',
    'upstream_rejected',
    'an endpoint of the upstream is not https',
  )
}

/** A sign-in that goes on at an upstream. A pending request has one at a time, and so has a session that links. */
export interface Attempt {
  readonly id: Hash
  readonly upstream: string
  /** From which, and from the secret of the browser, what is sent follows: nothing stored here suffices. */
  readonly key: string
  /** The pending request that goes on then. */
  readonly interaction?: string
  /** The session of the user who links the upstream. */
  readonly links?: { readonly userId: string; readonly sessionId: Hash }
  /** The session of the administrator who tries the upstream. */
  readonly tries?: { readonly userId: string; readonly sessionId: Hash }
  /** How long ago the user may have authenticated there, OpenID Connect Core §3.1.2.1. */
  readonly maxAgeSeconds?: Seconds
  readonly createdAt: Seconds
  readonly expiresAt: Seconds
}

export const attemptKind = recordKind<Attempt>('upstreamAttempt', {
  id: ({ id }) => id,
  userId: ({ links, tries }) => (links ?? tries)?.userId,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** What binds the response of an upstream to one attempt in one browser. */
export interface Binding {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

/**
 * Returns what an attempt sends: only the browser that began it has the secret, so that another one can neither bring a
 * response (RFC 6749 §10.12) nor exchange its code (RFC 7636 §4.6).
 */
export function bindingOf({ id, key, upstream }: Attempt, browserSecret: string): Binding {
  const derived = (use: string) =>
    hmacText(browserSecret, JSON.stringify(['upstream', use, id, key, upstream]))
  return { state: `${id}.${derived('state')}`, nonce: derived('nonce'), codeVerifier: derived('verifier') }
}

/** What a client of an upstream is configured with. */
export interface ClientOf {
  readonly clientId: string
  readonly scope: string
}

/** Returns the authorization request, OpenID Connect Core §3.1.2.1, with PKCE (RFC 7636 §4.3). */
export function authorizationUrl(
  provider: Provider,
  { clientId, scope }: ClientOf,
  redirectUri: string,
  { state, nonce, codeVerifier }: Binding,
  maxAgeSeconds?: Seconds,
): string {
  const url = new URL(provider.authorizationEndpoint)
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope,
    state,
    nonce,
    code_challenge: hash('sha256', codeVerifier, 'base64url'),
    code_challenge_method: 'S256',
    ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),
    ...(maxAgeSeconds === 0 && { prompt: 'login' }),
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url.href
}

/** Returns the id of the attempt that a response names; undefined if its state cannot be one of ours. */
export function attemptIdOf(response: Parameters): Hash | undefined {
  return /^([\w-]{43})\.[\w-]{43}$/.exec(single(response, 'state') ?? '')?.[1]
}

/**
 * Checks that a response belongs to an attempt that this browser began at this upstream.
 * @throws {OAuthError} `upstream_rejected`
 */
export function assertOwnResponse(
  response: Parameters,
  attempt: Attempt | undefined,
  upstream: string,
  browserSecret: string | undefined,
  now: Seconds,
): asserts attempt is Attempt {
  const isOpen = attempt !== undefined && now < attempt.expiresAt
  const isBound =
    isOpen &&
    browserSecret !== undefined &&
    isSameText(single(response, 'state'), bindingOf(attempt, browserSecret).state)
  check(
    isBound,
    'rfc6749-10.12-client-state',
    'upstream_rejected',
    'the response belongs to no sign-in that this browser began, or to one that has ended',
    { passed: 'state is that of a sign-in which this browser began' },
  )
  // The redirect URI of each upstream is its own.
  check(
    attempt.upstream === upstream,
    'rfc9700-4.4.2.2-distinct-redirect',
    'upstream_rejected',
    'the response came to the redirect URI of another upstream',
    { stored: attempt.upstream, received: upstream, passed: 'it came to the redirect URI of this upstream' },
  )
}

/**
 * Returns the code of an authorization response whose state is ours, OpenID Connect Core §3.1.2.7.
 * @throws {OAuthError} `upstream_rejected`; `access_denied` if the user or the upstream did not agree.
 */
export function readResponse(response: Parameters, provider: Provider): string {
  const [iss, error, code] = ['iss', 'error', 'code'].map((name) => single(response, name))
  // RFC 9207 §2.4: also where no metadata says that there is one.
  check(
    iss === undefined ? !provider.sendsIss : iss === provider.issuer,
    'rfc9207-2.4-client-compares-iss',
    'upstream_rejected',
    iss === undefined
      ? 'the response has no iss, which the upstream promises'
      : 'iss is that of another issuer',
    {
      stored: String(provider.issuer),
      received: iss,
      passed: 'iss is that of the upstream, or not promised',
    },
  )
  check(
    error === undefined,
    'oidc-core-3.1.2.6-rp-error',
    'access_denied',
    'the upstream responded with an error',
    {
      status: 400,
      received: error?.slice(0, 100),
      passed: 'the response is no error',
    },
  )
  check(
    code !== undefined && code.length <= 4096,
    'oidc-core-3.1.2.7-rp-response',
    'upstream_rejected',
    'the response has no code',
    { passed: 'the response has a code' },
  )
  return code
}

/** What is used of a token response. */
export interface UpstreamTokens {
  readonly accessToken: string
  readonly idToken: string
}

/** Reads a token response, OpenID Connect Core §3.1.3.3. @throws {OAuthError} `upstream_rejected` */
export function readTokens(json: unknown): UpstreamTokens {
  const { access_token: accessToken, id_token: idToken, token_type: type } = isObject(json) ? json : {}
  const isText = (value: unknown): value is string =>
    typeof value === 'string' && value.length > 0 && value.length <= longestToken
  const isBearer = typeof type === 'string' && type.toLowerCase() === 'bearer'
  check(
    isText(accessToken) && isText(idToken) && isBearer,
    'oidc-core-3.1.3.5-rp-token-response',
    'upstream_rejected',
    'the token response has no ID Token and bearer token',
    { passed: 'the token response has an ID Token and a bearer token' },
  )
  return { accessToken, idToken }
}

const longestToken = 32_768
