import { constants, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { assertionType } from '../../src/specs/rfc7523-client-assertions/rules/assertion.ts'

const make = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  EdDSA: () => generateKeyPairSync('ed25519'),
  Ed25519: () => generateKeyPairSync('ed25519'),
}

export type AssertionAlgorithm = keyof typeof make

/** The key of a client, and its public part as it registers it. */
export interface ClientKey {
  readonly alg: AssertionAlgorithm
  readonly privateKey: KeyObject
  readonly jwk: Readonly<Record<string, unknown>>
}

export function makeClientKey(alg: AssertionAlgorithm = 'ES256', kid: string = alg): ClientKey {
  const { publicKey, privateKey } = make[alg]()
  return { alg, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid } }
}

/** What a test changes about an assertion; undefined leaves a member out. */
export interface AssertionChange {
  readonly header?: Readonly<Record<string, unknown>>
  readonly claims?: Readonly<Record<string, unknown>>
  /** The JSON of the claims, when an object cannot say it. */
  readonly text?: string
}

/** Signs the assertion of a client, valid for a minute from `now`. */
export function signAssertion(
  key: ClientKey,
  { id, issuer, now }: { readonly id: string; readonly issuer: string; readonly now: number },
  { header, claims, text }: AssertionChange = {},
): string {
  const whole = { iss: id, sub: id, aud: issuer, exp: now + 60, iat: now, jti: randomUUID(), ...claims }
  return signJws(key, { alg: key.alg, kid: key.jwk['kid'], ...header }, text ?? whole)
}

/** Signs a JWT with exactly this header and these claims, or this text. */
export function signJws({ alg, privateKey }: ClientKey, header: object, claims: object | string): string {
  const parts = [JSON.stringify(header), typeof claims === 'string' ? claims : JSON.stringify(claims)]
  const signed = parts.map((part) => Buffer.from(part).toString('base64url')).join('.')
  return `${signed}.${signatureOf(alg, Buffer.from(signed), privateKey).toString('base64url')}`
}

/** The form parameters of an assertion. */
export function withAssertion(assertion: string) {
  return { client_assertion_type: assertionType, client_assertion: assertion }
}

function signatureOf(alg: AssertionAlgorithm, data: Buffer, key: KeyObject): Buffer {
  if (alg === 'EdDSA' || alg === 'Ed25519') return sign(null, data, key)
  if (alg === 'ES256') return sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' })
  if (alg === 'RS256') return sign('sha256', data, key)
  return sign('sha256', data, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 })
}
