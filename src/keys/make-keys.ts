import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import type { KeyAlgorithm } from '../domain/key-term.ts'
import type { Seconds, SigningAlgorithm, StoredKey } from '../domain/model.ts'
import type { RandomSource } from '../system/system.ts'
import { sealWith } from './seal.ts'

/** The sealing keys and the time of a new key. */
export interface KeyMaking {
  readonly sealing: readonly Buffer[]
  readonly random: RandomSource
  readonly now: Seconds
  /** The keys are those of a development server, and marked as such. */
  readonly development: boolean
}

const handleKeyBytes = 32
/** The id of a handle key is one byte of every handle; 0 is left out. */
const handleKeyIds = 255

/** A new key of each of these algorithms, active at once unless the caller changes that. */
export function makeKeys(
  algorithms: readonly KeyAlgorithm[],
  ring: readonly StoredKey[],
  making: KeyMaking,
): Promise<readonly StoredKey[]> {
  return Promise.all(
    algorithms.map((algorithm) =>
      algorithm === 'HS256' ? makeHandleKey(ring, making) : makeSigningKey(algorithm, making),
    ),
  )
}

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
    sealedPrivate: sealWith(making.sealing, privatePart, id, making),
    createdAt: making.now,
    activeAt: making.now,
  }
}

/**
 * A new handle key, active at once. Its id is one byte of every handle, "1" to "255": the next free one after that of
 * the newest key, so that an id is reused as late as possible, long after every handle with it has expired.
 */
export function makeHandleKey(ring: readonly StoredKey[], making: KeyMaking): StoredKey {
  const handleKeys = ring.filter(({ kind }) => kind === 'handle')
  const newest = handleKeys.reduce<StoredKey | undefined>(
    (latest, key) => (latest === undefined || key.createdAt >= latest.createdAt ? key : latest),
    undefined,
  )
  const start = Number(newest?.id ?? 0)
  const id = Array.from({ length: handleKeyIds }, (_, index) =>
    String(((start + index) % handleKeyIds) + 1),
  ).find((candidate) => !handleKeys.some((key) => key.id === candidate))
  if (id === undefined) throw new Error(`all ${handleKeyIds} handle key ids are taken`)
  return {
    id,
    kind: 'handle',
    algorithm: 'HS256',
    sealedPrivate: sealWith(making.sealing, making.random(handleKeyBytes), id, making),
    createdAt: making.now,
    activeAt: making.now,
  }
}
