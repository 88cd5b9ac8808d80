import { accept } from '../domain/decision.ts'
import { isRetired } from '../domain/key-term.ts'
import type { Seconds, StoredKey } from '../domain/model.ts'
import { changeKeys, type KeyChange, type KeySources } from './change-keys.ts'
import { openHandleKey, openSigningKey } from './opened-key.ts'
import { dueKeys, type KeyPolicy, maintainKeys } from './rules.ts'
import { noteBefore, type SealingKeys, sealingKeysOf } from './sealing-keys.ts'
import { type OpenedKeys, type Snapshot, takeSnapshot } from './snapshot.ts'

/** The keys of a store as of the last reload, which does not happen at every request. */
export interface LiveKeys {
  now(): Snapshot
  sealing(): SealingKeys
  /** Makes the keys that are due, and loads what other processes changed. */
  reload(): Promise<KeyNews>
  /** Reads the store for an unknown key, unless it was read just now: strangers can name any key. */
  reloadIfUnknown(id: string): Promise<boolean>
}

/** Ids of new keys, waiting ones included, and of keys no longer in use. */
export interface KeyNews {
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

/** The interval between two reloads for unknown keys: a key that is active at once is rejected for no longer. */
const unknownKeyPauseSeconds: Seconds = 1

/** The keys of this store; with a policy, makes due keys first. @throws {WrongSecret} */
export async function readKeys(sources: KeySources, policy?: KeyPolicy): Promise<LiveKeys> {
  const { store, clock, sealingKey } = sources
  let sealing = await sealingKeysOf(store, sealingKey)
  let stored: readonly StoredKey[] = []
  let opened: OpenedKeys = { signing: [], handle: [] }
  let snapshot: Snapshot = takeSnapshot(opened, clock())
  let readAt = clock()
  let reading: Promise<KeyNews> | undefined

  const read = async (): Promise<KeyNews> => {
    readAt = clock()
    sealing = await sealingKeysOf(store, sealingKey)
    if (policy !== undefined && sealing.isBefore) await noteBefore(store, readAt)
    stored = await changeKeys(sources, policy ? upkeep(policy) : asTheyAre)
    const before = opened
    opened = openKeys(stored, before, sealing.opening, clock())
    snapshot = takeSnapshot(opened, clock(), snapshot)
    return { added: missingIn(before, opened), removed: missingIn(opened, before) }
  }
  const reload = () => {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }

  await reload()
  return {
    now: () => {
      const at = clock()
      if (at < snapshot.from || at >= snapshot.until) snapshot = takeSnapshot(opened, at, snapshot)
      return snapshot
    },
    sealing: () => sealing,
    reload,
    reloadIfUnknown: async (id) => {
      // A retired key is known.
      if (stored.some((key) => key.id === id)) return false
      // Also in the past: a clock that was set back must not prevent a reload.
      const isRecent = Math.abs(clock() - readAt) < unknownKeyPauseSeconds
      if (reading === undefined && isRecent) return false
      await reload()
      return true
    },
  }
}

const asTheyAre: KeyChange<readonly StoredKey[]> = { needs: () => [], decide: (ring) => accept(ring) }

function upkeep(policy: KeyPolicy): KeyChange<readonly StoredKey[]> {
  return {
    needs: (ring, now) => dueKeys(ring, policy, now).map(({ algorithm }) => algorithm),
    decide: (ring, fresh, now) => maintainKeys(ring, fresh, policy, now),
  }
}

/** Opens what is new; a signing key that was open already only gets its new term. */
function openKeys(
  stored: readonly StoredKey[],
  before: OpenedKeys,
  opening: readonly Buffer[],
  now: Seconds,
): OpenedKeys {
  // Always in the same order: the JWK Set is one object as long as nothing in it changes.
  const live = stored
    .filter((key) => !isRetired(key, now))
    .sort((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1))
  const signing = live.flatMap((term) => {
    const known = before.signing.find((key) => key.term.id === term.id)
    if (known !== undefined) return { ...known, term }
    return term.algorithm === 'HS256' ? [] : openSigningKey(term, term.algorithm, opening)
  })
  const handle = live.filter(({ kind }) => kind === 'handle').map((key) => openHandleKey(key, opening))
  return { signing, handle }
}

function missingIn(keys: OpenedKeys, others: OpenedKeys): readonly string[] {
  const [idsBefore, ids] = [keys, others].map(({ signing, handle }) =>
    [...signing, ...handle].map(({ term }) => term.id),
  )
  return (ids ?? []).filter((id) => !idsBefore?.includes(id))
}
