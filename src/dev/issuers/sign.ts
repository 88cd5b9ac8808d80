import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { SigningAlgorithm } from '../../domain/model.ts'
import type { KeyRing } from '../../keys/key-ring.ts'
import { type Answer, inTokens, type Lie, type Members } from './lie.ts'

/** Lies in the first ID Token, by another text of it. */
export function inIdToken(change: (jws: string, answer: Answer) => string | Promise<string>): Lie {
  return inTokens('authorization_code', (members, answer) =>
    withIdToken(members, (jws) => change(jws, answer)),
  )
}

/** Lies in one claim of the first ID Token: it is signed as ever. Undefined where there is nothing to lie about. */
export function inClaims(change: (claims: Members) => Members | undefined): Lie {
  return inTokens('authorization_code', (members, { keys }) => withClaims(members, keys, change))
}

/** A token response whose ID Token has other claims, signed by the server's own key. */
export function withClaims(
  members: Members,
  keys: KeyRing,
  change: (claims: Members) => Members | undefined,
): Promise<Members | undefined> {
  return withIdToken(members, async (jws) => {
    const claims = change(decodeJwt(jws))
    return claims && keys.sign(algorithmOf(jws), 'JWT', claims)
  })
}

async function withIdToken(
  members: Members,
  change: (jws: string) => string | undefined | Promise<string | undefined>,
): Promise<Members | undefined> {
  const { id_token: jws } = members
  if (typeof jws !== 'string') return undefined
  const changed = await change(jws)
  return changed === undefined ? undefined : { ...members, id_token: changed }
}

/** The algorithm an ID Token of ours is signed with. */
export function algorithmOf(jws: string): SigningAlgorithm {
  // `as`: the key ring has signed it.
  return decodeProtectedHeader(jws).alg as SigningAlgorithm
}

/** Signs the same claims by a key that is not published, under this key id. */
export async function signedByStranger(jws: string, kid: string): Promise<string> {
  const algorithm = algorithmOf(jws)
  const { privateKey } = await strangerKey(algorithm)
  return new SignJWT(decodeJwt(jws)).setProtectedHeader({ alg: algorithm, kid, typ: 'JWT' }).sign(privateKey)
}

/** The same claims without a signature, RFC 7518 §3.6. */
export function unsigned(jws: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'none', typ: 'JWT' })).toString('base64url')
  return `${header}.${jws.split('.')[1]}.`
}

/** Signs the same claims by HMAC with the text of the public key as the secret, RFC 8725 §2.1. */
export async function signedByPublicKey(jws: string, keys: KeyRing): Promise<string> {
  const { kid = '' } = decodeProtectedHeader(jws)
  const found = keys.jwks().keys.find((key) => key.kid === kid)
  // `as`: a public JWK of ours is one of Node's.
  const publicKey = createPublicKey({ key: found as JsonWebKey, format: 'jwk' })
  const secret = Buffer.from(publicKey.export({ type: 'spki', format: 'pem' }).toString())
  return new SignJWT(decodeJwt(jws)).setProtectedHeader({ alg: 'HS256', kid, typ: 'JWT' }).sign(secret)
}

/** The same ID Token with another signature. */
export function wronglySigned(jws: string): string {
  const [header = '', payload = '', signature = ''] = jws.split('.')
  const bytes = Buffer.from(signature, 'base64url')
  bytes[0] = (bytes[0] ?? 0) ^ 1
  return [header, payload, bytes.toString('base64url')].join('.')
}

/** The published keys, each another one under its name. */
export async function swappedKeys(jwks: Members): Promise<Members> {
  const { keys } = jwks
  if (!Array.isArray(keys)) return jwks
  const swapped = keys.map(async (key: { readonly kid: string; readonly alg: SigningAlgorithm }) => {
    const { publicKey } = await strangerKey(key.alg)
    return { ...(await exportJWK(publicKey)), kid: key.kid, alg: key.alg, use: 'sig' }
  })
  return { ...jwks, keys: await Promise.all(swapped) }
}

/** One a process is enough: making an RSA key takes a while. */
const strangers = new Map<SigningAlgorithm, ReturnType<typeof generateKeyPair>>()

function strangerKey(algorithm: SigningAlgorithm) {
  const key = strangers.get(algorithm) ?? generateKeyPair(algorithm, { extractable: true })
  strangers.set(algorithm, key)
  return key
}
