import { check } from '../../../domain/check.ts'
import { isObject } from '../../../domain/is-object.ts'
import { accessTokenHash, foreignMember, isInstant, type Jws, shown } from '../../../domain/jws.ts'
import type { ClientAlgorithm } from '../../../domain/key-set.ts'
import type { Seconds } from '../../../domain/model.ts'

/** What an ID Token of an upstream has to be for, OpenID Connect Core §3.1.3.7. */
export interface Expected {
  readonly issuer: string
  readonly clientId: string
  readonly signingAlgorithm: ClientAlgorithm
  readonly groupsClaim: string
  readonly nonce: string
  readonly accessToken: string
  /** The longest time that may have passed since the user authenticated there; absent: any. */
  readonly maxAgeSeconds?: Seconds | undefined
  /** When the sign-in began here. */
  readonly begunAt: Seconds
}

/** What is used of the claims about a user. */
export interface UpstreamClaims {
  readonly sub: string
  readonly name?: string
  readonly givenName?: string
  readonly familyName?: string
  readonly username?: string
  readonly email?: string
  readonly emailVerified: boolean
  /** When the user authenticated there; absent if it does not say so. */
  readonly authenticatedAt?: Seconds
  /** RFC 8176 references. */
  readonly methods: readonly string[]
  /** The groups of the user there; absent if it does not say so. */
  readonly groups?: readonly string[]
}

/** How far the clock of an upstream may be off. */
const skewSeconds: Seconds = 60
/** An ID Token that comes straight from the token endpoint is not older. */
const oldestSeconds: Seconds = 600

/** The rules of a signature, for `assertSignature`. */
export const signatureRules = {
  code: 'upstream_rejected',
  signature: 'oidc-core-3.1.3.7-rp-signature',
  algorithm: 'oidc-core-3.1.3.7-rp-alg',
} as const

/**
 * Checks the header of an ID Token: a type of token that is for something else, or a key of its own, is not accepted
 * (RFC 8725 §3.11).
 * @throws {OAuthError} `upstream_rejected`
 */
export function assertHeader(token: Jws | undefined): asserts token is Jws {
  const type = token?.header['typ'] ?? 'JWT'
  check(
    token !== undefined &&
      foreignMember(token.header) === undefined &&
      typeof type === 'string' &&
      type.toUpperCase() === 'JWT',
    'oidc-core-3.1.3.7-rp-signature',
    'upstream_rejected',
    'the ID Token is no JWT of that type, or its header names a key',
    { received: shown(token?.header['typ']), passed: 'the ID Token is a JWT' },
  )
}

/**
 * Checks the claims of an ID Token whose signature is verified, OpenID Connect Core §3.1.3.7.
 * @throws {OAuthError} `upstream_rejected`
 */
export function assertIdToken(claims: Jws['claims'], expected: Expected, now: Seconds): UpstreamClaims {
  const { iss, aud, azp, exp, iat, nbf, nonce, sub, at_hash: hashed, auth_time: authTime } = claims
  const { issuer, clientId, signingAlgorithm, accessToken, maxAgeSeconds, begunAt } = expected
  const rule = (ok: boolean, id: string, description: string, received?: unknown, stored?: string | number) =>
    check(ok, id, 'upstream_rejected', description, {
      ...(received !== undefined && { received: shown(received) }),
      ...(stored !== undefined && { stored }),
    })
  rule(iss === issuer, 'oidc-core-3.1.3.7-rp-iss', 'iss of the ID Token is not the upstream', iss, issuer)
  // An audience that is not ours is not trusted: another one of them could have been given the token.
  const audiences = Array.isArray(aud) ? aud : [aud]
  const isForUs = audiences.length > 0 && audiences.every((one) => one === clientId)
  rule(isForUs, 'oidc-core-3.1.3.7-rp-aud', 'aud of the ID Token is not this client alone', aud, clientId)
  rule(
    azp === undefined || azp === clientId,
    'oidc-core-3.1.3.7-rp-azp',
    'azp of the ID Token is another client',
    azp,
    clientId,
  )
  rule(
    isInstant(exp) && now < exp + skewSeconds,
    'oidc-core-3.1.3.7-rp-exp',
    'the ID Token has expired',
    exp,
    now,
  )
  const isRecent = isInstant(iat) && iat <= now + skewSeconds && iat >= now - oldestSeconds
  rule(isRecent, 'oidc-core-3.1.3.7-rp-iat', 'iat of the ID Token is not now', iat, now)
  const isValid = nbf === undefined || (isInstant(nbf) && nbf <= now + skewSeconds)
  rule(isValid, 'oidc-core-3.1.3.7-rp-iat', 'the ID Token is not valid yet', nbf, now)
  rule(
    nonce === expected.nonce,
    'oidc-core-3.1.3.7-rp-nonce',
    'nonce of the ID Token is not that of this sign-in',
  )
  const isHashed = hashed === undefined || hashed === accessTokenHash(accessToken, signingAlgorithm)
  rule(
    isHashed,
    'oidc-core-3.1.3.8-rp-at-hash',
    'at_hash of the ID Token is not that of the access token',
    hashed,
  )
  const isKnown = isInstant(authTime) && authTime <= now + skewSeconds
  const isFresh = isKnown && authTime >= begunAt - (maxAgeSeconds ?? 0) - skewSeconds
  const freshness = maxAgeSeconds === undefined ? authTime === undefined || isKnown : isFresh
  rule(
    freshness,
    'oidc-core-3.1.3.7-rp-auth-time',
    'auth_time of the ID Token is missing, or too long ago',
    authTime,
    maxAgeSeconds,
  )
  check(
    isSubject(sub),
    'oidc-core-2-rp-sub',
    'upstream_rejected',
    'sub of the ID Token is not text of 1 to 255 ASCII characters',
    { passed: 'the ID Token has a sub' },
  )
  return {
    ...profileOf(claims, expected.groupsClaim),
    sub,
    ...(isKnown && { authenticatedAt: Math.min(authTime, now) }),
  }
}

/**
 * Adds what UserInfo says, OpenID Connect Core §5.3.2: only about the user of the ID Token, which wins.
 * @throws {OAuthError} `upstream_rejected`
 */
export function withUserInfo(claims: UpstreamClaims, json: unknown, groupsClaim: string): UpstreamClaims {
  const info = isObject(json) ? json : {}
  check(
    info['sub'] === claims.sub,
    'oidc-core-5.3.2-rp-sub',
    'upstream_rejected',
    'sub of UserInfo is not that of the ID Token',
    { passed: 'sub of UserInfo is that of the ID Token' },
  )
  const { emailVerified, methods: _, ...more } = profileOf(info, groupsClaim)
  const isOwnEmail = claims.email !== undefined
  return { ...more, ...claims, emailVerified: isOwnEmail ? claims.emailVerified : emailVerified }
}

function profileOf(
  claims: Readonly<Record<string, unknown>>,
  groupsClaim: string,
): Omit<UpstreamClaims, 'sub'> {
  const texts = {
    name: textOf(claims['name']),
    givenName: textOf(claims['given_name']),
    familyName: textOf(claims['family_name']),
    username: textOf(claims['preferred_username']),
    email: textOf(claims['email']),
  }
  const { amr } = claims
  const groups = claims[groupsClaim]
  return {
    ...Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== undefined)),
    // Text that reads true is no true.
    emailVerified: claims['email_verified'] === true,
    methods: Array.isArray(amr) ? amr.filter((method) => typeof method === 'string').slice(0, 20) : [],
    ...(groups !== undefined && {
      groups: [groups].flat().filter((group) => typeof group === 'string'),
    }),
  }
}

/** Returns text of a claim that may be stored and shown. */
function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.replaceAll(/[\p{C}\s]+/gu, ' ').trim()
  return text === '' || text.length > longestText ? undefined : text
}

const longestText = 254

/** OpenID Connect Core §2: at most 255 ASCII characters. */
function isSubject(sub: unknown): sub is string {
  return typeof sub === 'string' && /^[\x20-\x7e]{1,255}$/.test(sub)
}
