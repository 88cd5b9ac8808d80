import { type AuditContext, auditEvent } from '../domain/audit.ts'
import { accept, put, remove, update, type Write } from '../domain/decision.ts'
import type { Seconds } from '../domain/model.ts'
import type { RecordKind } from '../domain/record.ts'
import {
  lastSecretKind,
  type SecretChange,
  secretChangeKey,
  secretChangeKind,
} from '../domain/secret-change.ts'
import { keysOf, type Store } from '../storage/store.ts'
import type { RandomSource } from '../system/system.ts'
import { isDevelopmentKey, isSealedWith, nonceBytes, sealWith, unseal, WrongSecret } from './seal.ts'
import { openBefore, proofOf, sealBefore, sealedUnder } from './sealing-keys.ts'

/*
 * A change of the operator's secret, in steps that each may be the last of a process:
 *
 * 1. The record of the change appears: it has the old key, sealed with the new key. Each secret opens everything.
 *    Servers with the new secret seal with both keys. The operator starts every server with it.
 * 2. Everything is sealed with both keys.
 * 3. `endingAt`: servers seal with the new key alone, and the old secret starts no server.
 * 4. Everything is sealed with the new key alone, and the record goes. The old secret opens nothing.
 */

/** What a change of the secret works with. */
export interface Resealing {
  readonly store: Pick<Store, 'find' | 'list' | 'listFrom' | 'transact'>
  readonly random: RandomSource
  /** Every kind of record that has something sealed. */
  readonly kinds: readonly RecordKind<unknown>[]
}

/** How many are sealed now, and how many neither key opens. */
export interface Resealed {
  readonly keys: number
  readonly secrets: number
  readonly unopened: number
}

/** Begins a change. @returns The change that the store knows then, which another process may have begun. */
export function beginChange(
  { store, random }: Resealing,
  before: Buffer,
  after: Buffer,
  context: AuditContext,
): Promise<SecretChange> {
  const fresh = { sealedBefore: sealBefore(before, after, random(nonceBytes)), begunAt: context.at }
  return store.transact(secretChangeKind, secretChangeKey, (change) =>
    change === undefined
      ? accept(fresh, put(secretChangeKind, fresh), auditEvent('key-reseal-begun', context))
      : accept(change),
  )
}

/** Until when a server may still run with the old secret: it would have loaded its keys again by then. */
export function mayRunUntil({ begunAt, beforeSeenAt = begunAt }: SecretChange, reload: Seconds): Seconds {
  return Math.max(begunAt, beforeSeenAt) + 2 * reload
}

/** Seals everything with both keys, and then lets servers seal with the new key alone. */
export async function sealWithBoth(sources: Resealing, change: SecretChange, after: Buffer, at: Seconds) {
  await resealAll(sources, change, after, keysBeforeAndAfter(change, after))
  await sources.store.transact(secretChangeKind, secretChangeKey, (change) =>
    change === undefined || change.endingAt !== undefined
      ? accept(undefined)
      : accept(undefined, put(secretChangeKind, { ...change, endingAt: at })),
  )
}

/** Seals everything with the new key alone, and ends the change. */
export async function sealWithAfter(
  sources: Resealing,
  change: SecretChange,
  after: Buffer,
  context: AuditContext,
): Promise<Resealed> {
  const resealed = await resealAll(sources, change, after, [after])
  const { keys, secrets } = resealed
  await sources.store.transact(secretChangeKind, secretChangeKey, (known) =>
    known === undefined
      ? accept(undefined)
      : accept(
          undefined,
          remove(secretChangeKind, secretChangeKey),
          put(lastSecretKind, proofOf(after)),
          auditEvent('key-resealed', context, { keys, secrets }),
        ),
  )
  return resealed
}

/** How many records are sealed in one transaction. */
const batch = 100

async function resealAll(
  { store, random, kinds }: Resealing,
  change: SecretChange,
  after: Buffer,
  sealing: readonly Buffer[],
): Promise<Resealed> {
  const opening = keysBeforeAndAfter(change, after)
  const total = { keys: 0, secrets: 0, unopened: 0 }
  /** Returns the text to store, and nothing where it stays. */
  const again = (text: string, id: string): string | undefined => {
    if (isSealedWith(sealing, text, id)) return undefined
    const development = isDevelopmentKey({ sealedPrivate: text })
    return sealWith(sealing, unseal(text, id, ...opening), id, { random, development })
  }
  const count = (counted: { readonly done: number; readonly unopened: number }, of: 'keys' | 'secrets') => {
    total[of] += counted.done
    total.unopened += counted.unopened
  }
  count(
    await store.transact('keyRing', '', (ring = []) => {
      const { result, writes } = each(ring, (key) => {
        const sealedPrivate = again(key.sealedPrivate, key.id)
        return sealedPrivate === undefined ? undefined : update('key', { ...key, sealedPrivate })
      })
      return accept(result, ...writes)
    }),
    'keys',
  )
  for (const kind of kinds) {
    const { name, sealed = '' } = kind
    for (let after: string | undefined; ; ) {
      const page = await store.listFrom(kind, { prefix: '', after, limit: batch })
      const ids = page.map((record) => kind.rowOf(record).id)
      if (ids.length === 0) break
      const counted = await store.transact({ name: `${name} resealed`, each: kind }, keysOf(ids), (found) => {
        // `as`: objects, some of which have nothing sealed.
        const records = [...(found ?? new Map()).values()] as Readonly<Record<string, string>>[]
        const sealing = records.filter((record) => record[sealed] !== undefined)
        const { result, writes } = each(sealing, (record) => {
          const text = again(record[sealed] ?? '', sealedUnder(kind.rowOf(record).id))
          return text === undefined ? undefined : put(kind, { ...record, [sealed]: text })
        })
        return accept(result, ...writes)
      })
      count(counted, 'secrets')
      after = ids.at(-1)
    }
  }
  return total
}

function keysBeforeAndAfter(change: SecretChange, after: Buffer): readonly Buffer[] {
  const before = openBefore(change, after)
  if (before === undefined) throw new WrongSecret()
  return [before, after]
}

/** Returns the writes of what is sealed again. What no key opens is left unchanged: a sample, or a very old key. */
function each<T>(all: readonly T[], writeOf: (one: T) => Write | undefined) {
  const writes: Write[] = []
  let unopened = 0
  for (const one of all) {
    try {
      const write = writeOf(one)
      if (write !== undefined) writes.push(write)
    } catch (error) {
      if (!(error instanceof WrongSecret)) throw error
      unopened += 1
    }
  }
  return { result: { done: all.length - unopened, unopened }, writes }
}
