import { importJWK, type JWK } from 'jose'
import type { HandleKey } from '../domain/handle.ts'
import type { Seconds, SigningAlgorithm, StoredKey } from '../domain/model.ts'
import { unseal } from './seal.ts'

/** A public key as it is published, RFC 7517. */
export interface PublicJwk {
  readonly kid: string
  readonly kty: string
  readonly alg: SigningAlgorithm
  readonly use: 'sig'
  readonly [member: string]: unknown
}

type ImportedKey = Awaited<ReturnType<typeof importJWK>>

/** When a key is in use: it acts from `activeAt` on and is gone from `retiredAt` on. */
export type KeyTerm = Pick<StoredKey, 'id' | 'createdAt' | 'activeAt' | 'retiredAt'>

/** A signing key, both parts imported once. */
export interface SigningKey {
  readonly term: KeyTerm
  readonly algorithm: SigningAlgorithm
  readonly publicJwk: PublicJwk
  readonly publicKey: ImportedKey
  readonly privateKey: ImportedKey
}

/** A handle key. */
export interface OpenedHandleKey {
  readonly term: KeyTerm
  readonly handleKey: HandleKey
}

/** Opens a stored signing key. @throws {WrongSecret} */
export async function openSigningKey(
  stored: StoredKey,
  algorithm: SigningAlgorithm,
  sealingKey: Buffer,
): Promise<SigningKey> {
  // `as`: both texts were written by makeSigningKey, and the private one is authenticated by its seal.
  const publicJwk = JSON.parse(stored.publicJwk ?? '{}') as PublicJwk
  const privateJwk = JSON.parse(unseal(stored.sealedPrivate, stored.id, sealingKey).toString()) as JWK
  const [publicKey, privateKey] = await Promise.all([
    importJWK(publicJwk, algorithm),
    importJWK(privateJwk, algorithm),
  ])
  return { term: stored, algorithm, publicJwk, publicKey, privateKey }
}

/** Opens a stored handle key. @throws {WrongSecret} */
export function openHandleKey(stored: StoredKey, sealingKey: Buffer): OpenedHandleKey {
  const secret = unseal(stored.sealedPrivate, stored.id, sealingKey).toString('base64url')
  return { term: stored, handleKey: { id: Number(stored.id), secret } }
}

/** Whether the key is gone: it neither signs nor verifies, and is not published. */
export function isRetired({ retiredAt }: KeyTerm, now: Seconds): boolean {
  return retiredAt !== undefined && now >= retiredAt
}

/**
 * The key that acts now: the one that became active last. A clock that was set back behind them all gets the oldest:
 * a server with keys never stands without one.
 */
export function activeKey<K extends { readonly term: KeyTerm }>(
  keys: readonly K[],
  now: Seconds,
): K | undefined {
  const newestFirst = keys
    .filter(({ term }) => !isRetired(term, now))
    .sort(
      // The id settles ties the same way in every process.
      ({ term: one }, { term: other }) =>
        other.activeAt - one.activeAt || other.createdAt - one.createdAt || (one.id < other.id ? -1 : 1),
    )
  return newestFirst.find(({ term }) => term.activeAt <= now) ?? newestFirst.at(-1)
}
