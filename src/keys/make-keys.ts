import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import type { Seconds, SigningAlgorithm, StoredKey } from '../domain/model.ts'
import type { RandomSource } from '../system.ts'
import { seal } from './seal.ts'

/** Every algorithm there is a signing key for, RFC 7518 §3.1 and RFC 8037 §3.1. */
export const signingAlgorithms: readonly SigningAlgorithm[] = ['RS256', 'ES256', 'EdDSA']

/** What a new key is sealed with and dated by. */
export interface KeyMaking {
  readonly sealingKey: Buffer
  readonly random: RandomSource
  readonly now: Seconds
}

const nonceBytes = 12
const handleKeyBytes = 32

/** A new signing key, active at once. Its id is the thumbprint of its public part, RFC 7638 §3. */
export async function makeSigningKey(algorithm: SigningAlgorithm, making: KeyMaking): Promise<StoredKey> {
  const pair = await generateKeyPair(algorithm, { extractable: true, modulusLength: 2048 })
  const publicPart = await exportJWK(pair.publicKey)
  const id = await calculateJwkThumbprint(publicPart)
  const privatePart = Buffer.from(JSON.stringify(await exportJWK(pair.privateKey)))
  return {
    id,
    kind: 'signing',
    algorithm,
    publicJwk: JSON.stringify({ ...publicPart, kid: id, alg: algorithm, use: 'sig' }),
    sealedPrivate: seal(privatePart, id, making.sealingKey, making.random(nonceBytes)),
    createdAt: making.now,
    activeAt: making.now,
  }
}

/**
 * A new handle key, active at once. Its id is one byte of every handle, "1" to "255", and the lowest that is free: two
 * processes that start together choose the same, and the store lets one of them have it.
 */
export function makeHandleKey(taken: readonly string[], making: KeyMaking): StoredKey {
  const free = Array.from({ length: 255 }, (_, index) => String(index + 1)).find((id) => !taken.includes(id))
  if (free === undefined) throw new Error('all 255 handle key ids are taken')
  return {
    id: free,
    kind: 'handle',
    algorithm: 'HS256',
    sealedPrivate: seal(making.random(handleKeyBytes), free, making.sealingKey, making.random(nonceBytes)),
    createdAt: making.now,
    activeAt: making.now,
  }
}
