import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  sign,
} from 'node:crypto'
import { type Jws, parseJws, verifies } from '../domain/jws.ts'
import { algorithmNamed } from '../domain/key-set.ts'
import { systemClock, systemRandom } from '../system/system.ts'

/** A key of a client, on P-256. */
export interface ClientKey {
  readonly privateKey: KeyObject
  readonly jwk: JsonWebKey
  /** RFC 7638. */
  readonly thumbprint: string
  /** Its name in the key set of the client. */
  readonly kid: string
}

/** What a test changes in a JWT; a member that is undefined is left out. */
export interface Change {
  readonly header?: Readonly<Record<string, unknown>>
  readonly claims?: Readonly<Record<string, unknown>>
  /** Another key signs than the header names. */
  readonly signer?: ClientKey
}

export function random(size = 24): string {
  return systemRandom(size).toString('base64url')
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

export function createKey(): ClientKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { crv, kty, x, y } = publicKey.export({ format: 'jwk' })
  const own = sha256(JSON.stringify({ crv, kty, x, y }))
  return { privateKey, jwk: { crv, kty, x, y } as JsonWebKey, thumbprint: own, kid: own } // of P-256: all are there
}

/** Reads a private key on P-256 out of a key set; undefined for any other. The name of a key there is kept. */
export function keyOf(jwk: JsonWebKey): ClientKey | undefined {
  const { crv, kty, x, y, kid } = jwk
  if (crv !== 'P-256') return undefined
  const privateKey = privateKeyOf(jwk)
  if (privateKey === undefined) return undefined
  const own = sha256(JSON.stringify({ crv, kty, x, y }))
  return {
    privateKey,
    jwk: { crv, kty, x, y } as JsonWebKey,
    thumbprint: own,
    kid: typeof kid === 'string' ? kid : own,
  } // all are there
}

function privateKeyOf(key: JsonWebKey): KeyObject | undefined {
  try {
    return createPrivateKey({ key, format: 'jwk' })
  } catch {
    return undefined
  }
}

/** Signs a JWT as ES256, whatever its header says. */
export function signJwt(
  key: ClientKey,
  header: Readonly<Record<string, unknown>>,
  claims: Readonly<Record<string, unknown>>,
): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const input = `${encode(header)}.${encode(claims)}`
  const signature = sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

/** The request that a proof is for. */
export interface Proven {
  readonly method: string
  readonly url: string
  readonly token?: string | undefined
  readonly nonce?: string | undefined
}

/** A DPoP proof, RFC 9449 §4.2. */
export function dpopProof(
  key: ClientKey,
  { method, url, token, nonce }: Proven,
  change: Change = {},
): string {
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: key.jwk, ...change.header }
  const claims = {
    jti: random(),
    htm: method,
    htu: url.replace(/[?#].*$/, ''),
    iat: systemClock(),
    nonce,
    ...(token !== undefined && { ath: sha256(token) }),
    ...change.claims,
  }
  return signJwt(change.signer ?? key, header, claims)
}

/** A client assertion, RFC 7523 §3. */
export function clientAssertion(
  key: ClientKey,
  clientId: string,
  audience: string,
  change: Change = {},
): string {
  const now = systemClock()
  const header = { alg: 'ES256', kid: key.kid, ...change.header }
  const claims = {
    iss: clientId,
    sub: clientId,
    aud: audience,
    iat: now,
    exp: now + 60,
    jti: random(),
    ...change.claims,
  }
  return signJwt(change.signer ?? key, header, claims)
}

/** A request object, RFC 9101 §4. */
export function requestObject(
  key: ClientKey,
  clientId: string,
  audience: string,
  params: Readonly<Record<string, unknown>>,
  change: Change = {},
): string {
  const now = systemClock()
  const header = { alg: 'ES256', typ: 'oauth-authz-req+jwt', kid: key.kid, ...change.header }
  const claims = { iss: clientId, aud: audience, nbf: now, exp: now + 60, ...params, ...change.claims }
  return signJwt(change.signer ?? key, header, claims)
}

/** Returns the JWT if a key of the set signed it. */
export function verifiedJwt(token: string, keys: readonly JsonWebKey[]): Jws | undefined {
  const jws = parseJws(token)
  const algorithm = algorithmNamed(jws?.header['alg'])
  if (jws === undefined || algorithm === undefined) return undefined
  const { kid } = jws.header
  const isSigner = (key: JsonWebKey) =>
    (kid === undefined || key['kid'] === kid) &&
    verifies(algorithm, createPublicKey({ key, format: 'jwk' }), Buffer.from(jws.signed), jws.signature)
  const fits = ({ kty }: JsonWebKey) =>
    kty === { ES256: 'EC', EdDSA: 'OKP', RS256: 'RSA', PS256: 'RSA' }[algorithm]
  return keys.filter(fits).some(isSigner) ? jws : undefined
}
