import { constants, hash, type KeyObject, verify } from 'node:crypto'
import { check } from './check.ts'
import type { OAuthErrorCode } from './errors.ts'
import { isObject } from './is-object.ts'
import { algorithmNamed, algorithmOf, type ClientAlgorithm, keyObject, type PublicKey } from './key-set.ts'
import { parseStrictJson } from './strict-json.ts'

/** A parsed and not yet verified JWT: a JWS in compact form, RFC 7515 §7.1. */
export interface Jws {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
  /** What the signature is about. */
  readonly signed: string
  readonly signature: Buffer
}

/**
 * Parses a JWT strictly: three parts of base64url, and two JSON objects without repeated members.
 * @returns undefined for anything else.
 */
export function parseJws(text: string): Jws | undefined {
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) return undefined
  const [header, claims, signature] = text.split('.') as [string, string, string]
  const [parsedHeader, parsedClaims] = [parsePart(header), parsePart(claims)]
  if (!isObject(parsedHeader) || !isObject(parsedClaims)) return undefined
  return {
    header: parsedHeader,
    claims: parsedClaims,
    signed: `${header}.${claims}`,
    signature: Buffer.from(signature, 'base64url'),
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function parsePart(encoded: string): unknown {
  try {
    return parseStrictJson(utf8.decode(Buffer.from(encoded, 'base64url')))
  } catch {
    return undefined
  }
}

/** The error of a signature that is not accepted, and the rules that it breaks. */
export interface SignatureRules {
  readonly code: OAuthErrorCode
  readonly signature: string
  readonly algorithm: string
}

/**
 * Checks the signature of a JWT by one of these keys.
 * @param registered The algorithm that the client registered: what the header says has no part in it, RFC 8725 §3.1.
 * @throws {OAuthError} with the code of `rules`.
 */
export function assertSignature(
  { header, signed, signature }: Jws,
  registered: ClientAlgorithm | undefined,
  keys: readonly PublicKey[],
  rules: SignatureRules,
): void {
  const { kid, alg } = header
  const named = keys.filter((key) => kid === undefined || key.kid === kid)
  const usable = named.flatMap((key) => {
    const algorithm = algorithmOf(key, registered)
    const material = keyObject(key)
    return algorithm === undefined || material === undefined ? [] : [{ algorithm, material }]
  })
  // FAPI 2.0 Security Profile §5.4.3: several keys may have one kid; each has its algorithm all the same.
  const isDoubled = kid !== undefined && usable.length > 1
  const fitting = isDoubled ? usable.filter(({ algorithm }) => algorithm === algorithmNamed(alg)) : usable
  const [key, ...others] = fitting
  // OpenID Connect Core §10.1: with several keys, kid says which.
  check(
    key !== undefined && others.length === 0,
    rules.signature,
    rules.code,
    key === undefined ? 'there is no such key' : 'there are several keys, and kid is missing',
    { stored: keys.map((one) => one.kid ?? ''), received: shown(kid) },
  )
  check(
    algorithmNamed(alg) === key.algorithm,
    rules.algorithm,
    rules.code,
    'alg is not the algorithm of the registered key',
    { stored: key.algorithm, received: shown(alg) },
  )
  check(
    verifies(key.algorithm, key.material, Buffer.from(signed), signature),
    rules.signature,
    rules.code,
    'the signature is wrong',
    { passed: 'the signature is that of a registered key' },
  )
}

/** Verifies as RFC 7518 §3.3 to §3.5 and RFC 8037 §3.1 say. */
export function verifies(
  algorithm: ClientAlgorithm,
  key: KeyObject,
  signed: Buffer,
  signature: Buffer,
): boolean {
  const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING } = constants
  switch (algorithm) {
    case 'ES256':
      return signature.length === 64 && verify('sha256', signed, key, derOf(signature))
    case 'RS256':
      return verify('sha256', signed, { key, padding: RSA_PKCS1_PADDING }, signature)
    case 'PS256':
      return verify('sha256', signed, { key, padding: RSA_PKCS1_PSS_PADDING, saltLength: 32 }, signature)
    case 'EdDSA':
      return verify(null, signed, key, signature)
  }
}

/**
 * Returns a signature of RFC 7518 §3.4 in DER, RFC 3279 §2.2.3. Node can do that, too, and then takes two thirds more
 * for the whole verification.
 */
function derOf(signature: Buffer): Buffer {
  const der = Buffer.alloc(longestDer)
  let length = 2
  for (const end of [32, 64]) {
    let start = end - 32
    while (start < end - 1 && signature[start] === 0) start += 1
    // The first bit is the sign: a zero byte goes before it.
    const sign = signature.readUInt8(start) > 127 ? 1 : 0
    der[length] = 2
    der[length + 1] = sign + end - start
    length += 2 + sign + signature.copy(der, length + 2 + sign, start, end)
  }
  der[0] = 48
  der[1] = length - 2
  return der.subarray(0, length)
}

/** A sequence of two numbers of 33 bytes. */
const longestDer = 2 + 2 * (2 + 33)

/**
 * Returns a member of the header that names or contains a key, or changes what is signed: none is accepted, RFC 8725
 * §3.
 */
export function foreignMember(header: Jws['header']): string | undefined {
  return ['crit', 'jwk', 'jku', 'x5u', 'x5c', 'b64', 'zip'].find((name) => name in header)
}

/** Returns `at_hash`: the left half of the algorithm's hash of the access token (OpenID Connect Core §3.1.3.6). */
export function accessTokenHash(accessToken: string, algorithm: ClientAlgorithm): string {
  // Through text, as everywhere on hot paths: a digest as bytes is one more allocation, and takes twice as long.
  const digest = Buffer.from(hash(algorithm === 'EdDSA' ? 'sha512' : 'sha256', accessToken, 'hex'), 'hex')
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

/** Whether a claim is an instant, RFC 7519 §2. */
export function isInstant(value: unknown): value is number {
  return Number.isFinite(value)
}

/** What a member holds, for the log: bounded. */
export function shown(value: unknown): string | number | undefined {
  if (value === undefined || typeof value === 'number') return value
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 200)
}
