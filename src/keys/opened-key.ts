import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { HandleKey } from '../domain/handle.ts'
import type { KeyTerm } from '../domain/key-term.ts'
import type { SigningAlgorithm, StoredKey } from '../domain/model.ts'
import { unseal } from './seal.ts'
import { encoded } from './sign.ts'

/** A public key as it is published, RFC 7517. */
export interface PublicJwk {
  readonly kid: string
  readonly kty: string
  readonly alg: SigningAlgorithm
  readonly use: 'sig'
  readonly [member: string]: unknown
}

/** A signing key, both parts opened once. */
export interface SigningKey {
  readonly term: KeyTerm
  readonly algorithm: SigningAlgorithm
  readonly publicJwk: PublicJwk
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
  /** Returns the encoded header of a JWT of this type (RFC 7515 §4.1.9) that the key signs. */
  headerOf(type: string): string
}

/** A handle key. */
export interface OpenedHandleKey {
  readonly term: KeyTerm
  readonly handleKey: HandleKey
}

/** Opens a stored signing key. @throws {WrongSecret} */
export function openSigningKey(
  stored: StoredKey,
  algorithm: SigningAlgorithm,
  opening: readonly Buffer[],
): SigningKey {
  // `as`: both texts were written by makeSigningKey, and the private one is authenticated by its seal.
  const publicJwk = JSON.parse(stored.publicJwk ?? '{}') as PublicJwk
  const privateJwk = JSON.parse(unseal(stored.sealedPrivate, stored.id, ...opening).toString()) as JsonWebKey
  const publicKey = createPublicKey({ key: publicJwk, format: 'jwk' })
  const privateKey = createPrivateKey({ key: privateJwk, format: 'jwk' })
  const headers = new Map<string, string>()
  const headerOf = (type: string) => {
    const known = headers.get(type)
    if (known !== undefined) return known
    const header = encoded({ alg: algorithm, kid: stored.id, typ: type })
    headers.set(type, header)
    return header
  }
  return { term: stored, algorithm, publicJwk, publicKey, privateKey, headerOf }
}

/** Opens a stored handle key. @throws {WrongSecret} */
export function openHandleKey(stored: StoredKey, opening: readonly Buffer[]): OpenedHandleKey {
  const secret = unseal(stored.sealedPrivate, stored.id, ...opening).toString('base64url')
  return { term: stored, handleKey: { id: Number(stored.id), secret } }
}
