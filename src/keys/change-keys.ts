import { type AuditContext, keyEvents } from '../domain/audit.ts'
import { accept, type Decision } from '../domain/decision.ts'
import { isRetired, type KeyAlgorithm } from '../domain/key-term.ts'
import type { Seconds, StoredKey } from '../domain/model.ts'
import type { Store } from '../storage/store.ts'
import type { Clock, RandomSource } from '../system/system.ts'
import { makeKeys } from './make-keys.ts'
import { ForeignKeys, isDevelopmentKey, type ServerKind, unseal } from './seal.ts'
import { sealingKeysOf } from './sealing-keys.ts'

/** Where keys are stored and what they are made and sealed with. */
export interface KeySources {
  readonly store: Pick<Store, 'find' | 'list' | 'transact'>
  /** What the operator's secret gives. */
  readonly sealingKey: Buffer
  readonly clock: Clock
  readonly random: RandomSource
  /** Who changes keys, `user@host`; absent: the server itself. */
  readonly operator?: string
  /** Further details of the operator for the audit log. */
  readonly facts?: AuditContext['facts']
  /** What kind of server this is; absent: an operator's command, which follows the keys it finds. */
  readonly server?: ServerKind
}

/** A change of the whole ring: the keys it needs, and what it decides once they are made. Both are pure. */
export interface KeyChange<T> {
  needs(ring: readonly StoredKey[], now: Seconds): readonly KeyAlgorithm[]
  decide(ring: readonly StoredKey[], fresh: readonly StoredKey[], now: Seconds): Decision<T>
}

/**
 * Changes the ring of this store. Keys take long to make, so they are made first and the decision is committed only if
 * the ring is still the one they were made for; otherwise it is read again. Of two processes that rotate at the same
 * time one makes the successor and the other finds it.
 * @throws {WrongSecret} when the secret is not the one the keys were sealed with; nothing is written then.
 * @throws {ForeignKeys} when the other kind of server made them.
 */
export async function changeKeys<T>(
  { store, sealingKey, clock, random, operator, facts, server }: KeySources,
  change: KeyChange<T>,
): Promise<T> {
  for (;;) {
    // Before the keys: who knows of a change of the secret opens what was sealed before and after it.
    const { sealing, opening } = await sealingKeysOf(store, sealingKey)
    const [ring, now] = [await store.list('key'), clock()]
    assertOwn(ring, server)
    assertOpen(ring, opening, now)
    const development = server === 'development' || ring.some(isDevelopmentKey)
    const fresh = await makeKeys(change.needs(ring, now), ring, { sealing, random, now, development })
    const decision = change.decide(ring, fresh, now)
    if ('rejection' in decision) throw decision.rejection
    if (decision.writes.length === 0) return decision.result
    const context: AuditContext = {
      by: operator === undefined ? 'server' : 'operator',
      at: now,
      from: operator,
      ...(facts && { facts }),
    }
    const events = keyEvents(ring, decision.writes, context)
    const done = await store.transact('keyRing', '', (current) =>
      isSameRing(current ?? [], ring)
        ? accept({ result: decision.result }, ...decision.writes, ...events)
        : accept(undefined),
    )
    if (done !== undefined) return done.result
  }
}

/** @throws {WrongSecret} unless these keys open every key that is not retired. */
export function assertOpen(ring: readonly StoredKey[], opening: readonly Buffer[], now: Seconds): void {
  for (const key of ring) if (!isRetired(key, now)) unseal(key.sealedPrivate, key.id, ...opening)
}

/** A token is as trustworthy as its key: those of a development server prove nothing to a production server. */
function assertOwn(ring: readonly StoredKey[], server: ServerKind | undefined): void {
  if (server === undefined) return
  const isOwn = (key: StoredKey) => isDevelopmentKey(key) === (server === 'development')
  if (!ring.every(isOwn)) throw new ForeignKeys(server)
}

function isSameRing(one: readonly StoredKey[], other: readonly StoredKey[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
