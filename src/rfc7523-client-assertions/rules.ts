import { constants, type KeyObject, verify } from 'node:crypto'
import { type JsonObject, readUri, rejection } from '../clients/members.ts'
import { check } from '../domain/check.ts'
import {
  type AuthenticationRealm,
  type ClientCredentials,
  clientRejected,
  type FailedProof,
} from '../domain/client-authentication.ts'
import { OAuthError } from '../domain/errors.ts'
import { isObject } from '../domain/is-object.ts'
import {
  algorithmNamed,
  algorithmOf,
  type ClientAlgorithm,
  KeySetFault,
  keyObject,
  type PublicKey,
  parseKeySet,
} from '../domain/key-set.ts'
import type { Client, Hash, Seconds } from '../domain/model.ts'
import { type Parameters, single } from '../domain/parameters.ts'
import { recordKind } from '../domain/record.ts'
import { isLoopbackUri } from '../domain/redirect-uri.ts'
import { hashSecret } from '../domain/secret.ts'
import { parseStrictJson } from '../domain/strict-json.ts'

/** The only `client_assertion_type`, RFC 7523 §2.2. */
export const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** A parsed and not yet verified assertion: a JWS in compact form, RFC 7515 §7.1. */
export interface Assertion {
  readonly header: JsonObject
  readonly claims: JsonObject
  /** What the signature is about. */
  readonly signed: string
  readonly signature: Buffer
}

/** An assertion that was used. It must not be used again before it expires. */
interface UsedAssertion {
  readonly id: Hash
  readonly clientId: string
  readonly expiresAt: Seconds
}

export const usedAssertionKind = recordKind<UsedAssertion>('client-assertion', {
  id: ({ id }) => id,
  clientId: ({ clientId }) => clientId,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** By how much the clock of a client may differ from that of this server. */
const skewSeconds = 10
/** How far ahead `exp` may be. */
const mostSeconds = 600
const longestJti = 256

/**
 * Parses an assertion strictly: three parts of base64url, and two JSON objects without repeated members.
 * @returns undefined for anything else.
 */
export function parseAssertion(text: string): Assertion | undefined {
  const [, header = '', claims = '', signature = ''] = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(text) ?? []
  const [parsedHeader, parsedClaims] = [parsePart(header), parsePart(claims)]
  if (!isObject(parsedHeader) || !isObject(parsedClaims)) return undefined
  return {
    header: parsedHeader,
    claims: parsedClaims,
    signed: `${header}.${claims}`,
    signature: Buffer.from(signature, 'base64url'),
  }
}

function parsePart(encoded: string): unknown {
  try {
    return parseStrictJson(
      new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(encoded, 'base64url')),
    )
  } catch {
    return undefined
  }
}

/**
 * Reads the assertion of a request, RFC 7523 §2.2; its `sub` names the client.
 * @throws {OAuthError} `invalid_client`
 */
export function readAssertion(
  parameters: Parameters,
  realm: AuthenticationRealm,
): ClientCredentials | undefined {
  const type = single(parameters, 'client_assertion_type')
  const text = single(parameters, 'client_assertion')
  if (type === undefined && text === undefined) return undefined
  const reject = (rule: string, received: string, stored?: string) =>
    clientRejected(realm.alwaysUnauthorized, { rule, received, stored })
  if (type !== assertionType)
    throw reject('rfc7523-2.2-parameters', `client_assertion_type: ${type ?? 'absent'}`, assertionType)
  const assertion = text === undefined ? undefined : parseAssertion(text)
  if (text === undefined || assertion === undefined)
    throw reject('rfc7523-2.2-parameters', 'client_assertion is not one signed JWT without repeated members')
  const { sub } = assertion.claims
  if (typeof sub !== 'string' || !/^[\x21-\x7e]{1,200}$/.test(sub))
    throw reject('rfc7523-3-iss-sub', 'sub is not a client_id')
  const clientId = single(parameters, 'client_id') ?? sub
  if (clientId !== sub) throw reject('rfc7523-3-client-id-agrees', `client_id: ${clientId}`, `sub: ${sub}`)
  return { clientId: sub, proof: text }
}

/** How this server is named in an assertion. */
export interface Audience {
  readonly issuer: string
  /** What else a client with `legacy_audience` may name: the endpoints that authenticate clients. */
  readonly endpoints: readonly string[]
}

/**
 * Checks the header and the claims of an assertion of this client, RFC 7523 §3.
 * @throws {OAuthError} `invalid_client`
 */
export function assertClaims(
  { header, claims }: Assertion,
  client: Client,
  audience: Audience,
  now: Seconds,
): void {
  const { iss, sub, aud, exp, nbf, iat, jti } = claims
  const must = (
    ok: boolean,
    rule: string,
    description: string,
    received: unknown,
    stored?: string | number,
  ) => check(ok, rule, 'invalid_client', description, { stored, received: shown(received) })
  const foreign = ['crit', 'jwk', 'jku', 'x5u', 'x5c', 'b64', 'zip'].find((name) => name in header)
  must(foreign === undefined, 'rfc7523-3-valid-jwt', 'the header has a member that is not accepted', foreign)
  must(
    header['typ'] === undefined ||
      /^(application\/)?(jwt|client-authentication\+jwt)$/i.test(String(header['typ'])),
    'rfc7523-3-valid-jwt',
    'typ is that of another kind of JWT',
    header['typ'],
  )
  must(
    iss === client.id && sub === client.id,
    'rfc7523-3-iss-sub',
    'iss or sub is not the client_id',
    iss,
    client.id,
  )
  must(
    isAudience(aud, client, audience),
    'rfc7523-3-aud',
    'aud is not the issuer alone',
    aud,
    audience.issuer,
  )
  must(isInstant(exp) && now < exp + skewSeconds, 'rfc7523-3-exp', 'exp is missing or over', exp, now)
  must(
    isInstant(exp) && exp <= now + mostSeconds + skewSeconds,
    'rfc7523-3-exp',
    'exp is more than ten minutes ahead',
    exp,
    now,
  )
  for (const [name, at] of Object.entries({ nbf, iat }))
    must(
      at === undefined || (isInstant(at) && at <= now + skewSeconds),
      'rfc7523-3-nbf-iat',
      `${name} is no instant, or in the future`,
      at,
      now,
    )
  must(
    typeof jti === 'string' && jti !== '' && jti.length <= longestJti,
    'rfc7523-3-jti-replay',
    `jti is missing or longer than ${longestJti} characters`,
    jti,
  )
}

/** The issuer as one string; other forms only where an operator marked the client, RFC 7523 §3 and RFC 9126 §2. */
function isAudience(aud: unknown, { extra }: Client, { issuer, endpoints }: Audience): boolean {
  if (aud === issuer) return true
  if (extra?.['legacy_audience'] !== true) return false
  return [aud].flat().some((name) => name === issuer || endpoints.includes(String(name)))
}

function isInstant(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** What a claim holds, for the log: bounded. */
function shown(value: unknown): string | number | undefined {
  if (value === undefined || typeof value === 'number') return value
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 200)
}

/** The registered algorithm of a client: what its own header says has no part in it, RFC 8725 §3.1. */
function registeredAlgorithm({ extra }: Client): ClientAlgorithm | undefined {
  return algorithmNamed(extra?.['token_endpoint_auth_signing_alg'])
}

/**
 * Checks the signature of an assertion by one of the client's keys, RFC 7523 §3.
 * @throws {OAuthError} `invalid_client`
 */
export function assertSignature(
  { header, signed, signature }: Assertion,
  client: Client,
  keys: readonly PublicKey[],
): void {
  const { kid, alg } = header
  const registered = registeredAlgorithm(client)
  const named = keys.filter((key) => kid === undefined || key.kid === kid)
  const usable = named.flatMap((key) => {
    const algorithm = algorithmOf(key, registered)
    const material = keyObject(key)
    return algorithm === undefined || material === undefined ? [] : [{ algorithm, material }]
  })
  const [key, ...others] = usable
  // OpenID Connect Core §10.1: with several keys, kid says which.
  check(
    key !== undefined && others.length === 0,
    'rfc7523-3-signature',
    'invalid_client',
    key === undefined ? 'the client has no such key' : 'the client has several keys, and kid is missing',
    { stored: keys.map((one) => one.kid ?? ''), received: shown(kid) },
  )
  check(
    algorithmNamed(alg) === key.algorithm,
    'rfc7523-3-alg-registered',
    'invalid_client',
    'alg is not the algorithm of the registered key',
    { stored: key.algorithm, received: shown(alg) },
  )
  check(
    verifies(key.algorithm, key.material, Buffer.from(signed), signature),
    'rfc7523-3-signature',
    'invalid_client',
    'the signature is wrong',
    { passed: 'the signature is that of a registered key' },
  )
}

/** Verifies as RFC 7518 §3.3 to §3.5 and RFC 8037 §3.1 say. */
function verifies(algorithm: ClientAlgorithm, key: KeyObject, signed: Buffer, signature: Buffer): boolean {
  const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING } = constants
  switch (algorithm) {
    case 'ES256':
      return verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, signature)
    case 'RS256':
      return verify('sha256', signed, { key, padding: RSA_PKCS1_PADDING }, signature)
    case 'PS256':
      return verify('sha256', signed, { key, padding: RSA_PKCS1_PSS_PADDING, saltLength: 32 }, signature)
    case 'EdDSA':
      return verify(null, signed, key, signature)
  }
}

/** Returns the record by which an assertion is used once, RFC 7523 §3; it is kept until the assertion has expired. */
export function useOf({ claims: { jti, exp } }: Assertion, clientId: string): UsedAssertion {
  return {
    id: hashSecret(`${clientId} ${jti}`),
    clientId,
    expiresAt: Math.ceil(Number(exp)) + skewSeconds,
  }
}

/** Returns why an assertion is not accepted; any other error is thrown on. */
export function failureOf(error: unknown): FailedProof {
  if (!(error instanceof OAuthError)) throw error
  const { rule, stored, received } = error.detail
  return { rule, why: error.message, stored, received }
}

/** Reads `jwks`, RFC 7591 §2: public keys only, and not together with `jwks_uri`. */
export function readKeys(
  members: JsonObject,
  name: string,
): { readonly keys: readonly PublicKey[] } | undefined {
  const value = members[name] ?? ''
  if (value === '') return undefined
  if ((members['jwks_uri'] ?? '') !== '')
    throw rejection('jwks and jwks_uri exclude each other', { rule: 'rfc7591-2-jwks-exclusive' })
  try {
    return { keys: parseKeySet(value) }
  } catch (error) {
    if (error instanceof KeySetFault) throw rejection(`jwks ${error.message}`)
    throw error
  }
}

/** Reads `jwks_uri`, RFC 7591 §2: https, or loopback for development. */
export function readKeysUri(members: JsonObject, name: string): string | undefined {
  const uri = readUri(members, name)
  if (uri === undefined || /^https:/i.test(uri) || isLoopbackUri(uri)) return uri
  throw rejection(`${name} must be an https URI`, { rule: 'rfc7591-2-uri-members-valid' })
}

/**
 * Checks that a client can sign: it has keys, or names where they are, and one of them fits its algorithm.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function assertCanSign(extra: JsonObject): void {
  const { jwks, jwks_uri: uri, token_endpoint_auth_signing_alg: algorithm } = extra
  if (uri !== undefined) return
  if (jwks === undefined)
    throw rejection('private_key_jwt needs jwks or jwks_uri', { rule: 'rfc7523-2.2-registration' })
  const registered = algorithmNamed(algorithm)
  if (keysOf(jwks).some((key) => algorithmOf(key, registered) !== undefined)) return
  throw rejection('jwks has no key for token_endpoint_auth_signing_alg', { rule: 'rfc7523-2.2-registration' })
}

/** Returns the keys that are registered by value. */
export function keysOf(jwks: unknown): readonly PublicKey[] {
  // `as`: readKeys alone writes this member.
  return isObject(jwks) ? (jwks['keys'] as readonly PublicKey[]) : []
}
