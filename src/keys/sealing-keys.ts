import { accept, type Condition, put } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import { hmacText } from '../domain/hmac.ts'
import type { Seconds } from '../domain/model.ts'
import {
  type LastSecret,
  lastSecretKind,
  type SecretChange,
  secretChangeKey,
  secretChangeKind,
} from '../domain/secret-change.ts'
import type { Store } from '../storage/store.ts'
import { isSealedWith, seal, unseal, WrongSecret } from './seal.ts'

/** The keys that stored secrets are sealed with: one, and two while the operator's secret changes. */
export interface SealingKeys {
  /** Something is sealed with each of them; pseudonyms follow from the first. */
  readonly sealing: readonly [Buffer, ...Buffer[]]
  /** Any of them opens it. */
  readonly opening: readonly Buffer[]
  /** The secret is the one before a change that has begun. */
  readonly isBefore: boolean
}

const nameOfBefore = 'secret before'

/** The name under which the secret of a record is sealed: no key of the ring has it. */
export function sealedUnder(id: string): string {
  return `secret of ${id}`
}

/** Seals the key of the old secret, so that a server with the new secret can open everything. */
export function sealBefore(before: Buffer, after: Buffer, nonce: Buffer): string {
  return seal(before, nameOfBefore, { sealingKey: after, nonce, development: false })
}

/** The key of the old secret, if this is the key of the new secret. */
export function openBefore(change: SecretChange, key: Buffer): Buffer | undefined {
  try {
    return unseal(change.sealedBefore, nameOfBefore, key)
  } catch {
    return undefined
  }
}

/**
 * The keys that a server with this one uses. Until the change ends, it seals with both, so that servers with either
 * secret open it.
 * @throws {WrongSecret} for the old secret, once the change is ending.
 */
export function keysDuring(change: SecretChange | undefined, own: Buffer): SealingKeys {
  if (change === undefined) return { sealing: [own], opening: [own], isBefore: false }
  const before = openBefore(change, own)
  if (before !== undefined) {
    const sealing = change.endingAt === undefined ? ([before, own] as const) : ([own] as const)
    return { sealing, opening: [own, before], isBefore: false }
  }
  if (change.endingAt !== undefined) throw new WrongSecret()
  return { sealing: [own], opening: [own], isBefore: true }
}

/** The same for the change that the store knows. @throws {WrongSecret} */
export async function sealingKeysOf(store: Pick<Store, 'find'>, own: Buffer): Promise<SealingKeys> {
  return keysDuring(await store.find(secretChangeKind, secretChangeKey), own)
}

/** Stores that a server still has the old secret: the change does not end as long as there is one. */
export function noteBefore(store: Pick<Store, 'transact'>, at: Seconds): Promise<void> {
  return store.transact(secretChangeKind, secretChangeKey, (change) =>
    change === undefined
      ? accept(undefined)
      : accept(undefined, put(secretChangeKind, { ...change, beforeSeenAt: at })),
  )
}

/** Names the key of a secret to those who have the secret. */
export function proofOf(key: Buffer): LastSecret {
  return { proof: hmacText(key, 'last secret') }
}

/**
 * What is sealed and not yet stored is sealed as the store wants it at that moment. A change with `--stopped` waits for
 * no server: one that still runs with the old secret would store what the new secret does not open, and one that has
 * not loaded its keys again what the old secret opens.
 * @param stale Is called in the transaction where it is not.
 */
export function requireSealedNow(own: Buffer, text: string, id: string, stale: () => void): Condition {
  return {
    rule: 'lychgate-sealed-now',
    why: 'the secret of the server was changed',
    *holds(read) {
      const change = yield* read.find(secretChangeKind, secretChangeKey)
      const last = yield* read.find(lastSecretKind, secretChangeKey)
      const before = change && openBefore(change, own)
      if (last !== undefined && last.proof !== proofOf(before ?? own).proof) return false
      if (change?.endingAt !== undefined && before === undefined) return false
      return isSealedWith(keysDuring(change, own).sealing, text, sealedUnder(id))
    },
    error: () => {
      stale()
      return new OAuthError(
        'temporarily_unavailable',
        'the keys of the server are changing; try again shortly',
        {
          rule: 'lychgate-sealed-now',
          headers: { 'retry-after': '2' },
        },
      )
    },
  }
}
