import { accept, type Decision, insert, remove, update, type Write } from '../domain/decision.ts'
import {
  isRetired,
  type KeyAlgorithm,
  type KeyState,
  keyAlgorithms,
  stateOf,
  termsOf,
} from '../domain/key-term.ts'
import type { Seconds, StoredKey } from '../domain/model.ts'

/*
 * Rotation with an overlap, OpenID Connect Core §10.1.1: from one ring of keys to the next.
 *
 * `retiredAt` is set as soon as there is a successor, and moves only forward: when an operator extends token
 * lifetimes, the keys in use are kept as much longer; when they are shortened, tokens issued before keep their key.
 * The `retiredAt` of a key that an operator ended never moves: it is not after its successor's `activeAt`, which every
 * server can see, whatever its clock.
 */

/** The configured lifetimes of keys. */
export interface KeyPolicy {
  /** The algorithms of the ring. A key of another one signs no more, and is kept as if it had a successor. */
  readonly algorithms: readonly KeyAlgorithm[]
  /** An active key of this age gets a successor; 0: only an operator rotates. */
  readonly rotationSeconds: Seconds
  /** How long a successor is published before it is active. */
  readonly publishAheadSeconds: Seconds
  /** How long a key verifies after its successor is active: the longest lifetime of what it signed. */
  readonly overlapSeconds: Readonly<Record<StoredKey['kind'], Seconds>>
}

/** A successor to be made. */
export interface DueKey {
  readonly algorithm: KeyAlgorithm
  readonly activeAt: Seconds
}

/** Retired keys stay a day: deleted by a clock that ran ahead, they would be missed once it is set right. */
export const retiredKeyGraceSeconds: Seconds = 86_400

/** The keys this ring lacks now: for an algorithm without any, and the successors of those old enough. */
export function dueKeys(ring: readonly StoredKey[], policy: KeyPolicy, now: Seconds): readonly DueKey[] {
  return policy.algorithms.flatMap((algorithm) => {
    const { terms, acting, waiting } = termsOf(ring, algorithm, now)
    if (terms.length === 0) return { algorithm, activeAt: now }
    const { activeAt = Number.POSITIVE_INFINITY } = acting ?? {}
    const isOld = policy.rotationSeconds > 0 && now >= activeAt + policy.rotationSeconds
    return isOld && waiting === undefined ? { algorithm, activeAt: now + policy.publishAheadSeconds } : []
  })
}

/**
 * Applies the passing of time to the ring: adds due keys, sets the end of keys with a successor, deletes retired ones.
 * @param fresh A key for each that `dueKeys` names.
 */
export function maintainKeys(
  ring: readonly StoredKey[],
  fresh: readonly StoredKey[],
  policy: KeyPolicy,
  now: Seconds,
): Decision<readonly StoredKey[]> {
  const made = dueKeys(ring, policy, now).map((due) => successor(fresh, due))
  const remaining = ring.filter(
    ({ retiredAt }) => retiredAt === undefined || now < retiredAt + retiredKeyGraceSeconds,
  )
  const after = withEnds([...remaining, ...made], policy, now)
  return accept(after, ...difference(ring, after))
}

/** The successors an operator's rotation lacks: one that is waiting is enough. */
export function rotationNeeds(
  ring: readonly StoredKey[],
  algorithms: readonly KeyAlgorithm[],
  now: Seconds,
): readonly KeyAlgorithm[] {
  return algorithms.filter((algorithm) => {
    const { acting, waiting } = termsOf(ring, algorithm, now)
    return acting !== undefined && waiting === undefined
  })
}

/**
 * An operator's rotation: the active key of each algorithm gets a successor, published first; a waiting key
 * is that successor. Tokens that the old keys signed remain valid.
 * @param at `once`: the successor is active immediately, before every server knows it.
 * @param fresh A key for each algorithm that `rotationNeeds` names.
 */
export function rotateKeys(
  ring: readonly StoredKey[],
  { algorithms, at }: { readonly algorithms: readonly KeyAlgorithm[]; readonly at: 'once' | 'published' },
  fresh: readonly StoredKey[],
  policy: KeyPolicy,
  now: Seconds,
): Decision<readonly StoredKey[]> {
  const needed = rotationNeeds(ring, algorithms, now)
  const made = needed.map((algorithm) =>
    successor(fresh, { algorithm, activeAt: now + policy.publishAheadSeconds }),
  )
  const advance = (key: StoredKey): StoredKey => {
    const { acting, waiting } = termsOf([...ring, ...made], key.algorithm, now)
    if (at === 'published' || !algorithms.includes(key.algorithm) || key.id !== waiting?.id) return key
    // Not in the second in which the old one began: which of the two is active would be chance.
    return { ...key, activeAt: Math.max(now, (acting?.activeAt ?? now) + 1) }
  }
  const after = withEnds([...ring, ...made].map(advance), policy, now)
  return accept(after, ...difference(ring, after))
}

/** What ends with a key an operator retires. */
export interface Retirement {
  readonly ring: readonly StoredKey[]
  readonly key: StoredKey
  readonly was: Exclude<KeyState, 'retired'>
  /** The key that is active instead, if it was the active one. */
  readonly successor?: StoredKey
}

/** The successor an operator's retirement lacks: the active key ends only together with the beginning of another. */
export function retirementNeeds(
  ring: readonly StoredKey[],
  id: string,
  now: Seconds,
): readonly KeyAlgorithm[] {
  const key = ring.find((one) => one.id === id)
  if (key === undefined || stateOf(key, ring, now) !== 'active') return []
  return termsOf(ring, key.algorithm, now).waiting === undefined ? [key.algorithm] : []
}

/**
 * Retires a key now, which invalidates everything it signed or sealed. The active key's successor, waiting or fresh, is
 * active from now on. A waiting key has signed nothing and is deleted. Undefined if there is no such key.
 * @param fresh A key for each algorithm that `retirementNeeds` names.
 */
export function retireKey(
  ring: readonly StoredKey[],
  id: string,
  fresh: readonly StoredKey[],
  policy: KeyPolicy,
  now: Seconds,
): Decision<Retirement | undefined> {
  const key = ring.find((one) => one.id === id)
  const was = key && stateOf(key, ring, now)
  if (key === undefined || was === undefined || was === 'retired') return accept(undefined)
  const { terms } = termsOf(ring, key.algorithm, now)
  const position = terms.indexOf(key)
  const [before, next] = [terms[position - 1], terms[position + 1]]
  if (was === 'waiting') {
    // The previous key continues as if this one had never been made.
    const after = ring
      .filter((one) => one !== key)
      .map(({ retiredAt, ...one }) =>
        one.id === before?.id || retiredAt === undefined ? one : { ...one, retiredAt },
      )
    const settled = withEnds(after, policy, now)
    return accept({ ring: settled, key, was }, ...difference(ring, settled))
  }
  if (was === 'verifies only') {
    const after = ring.map((one) =>
      one === key ? { ...key, retiredAt: Math.min(next?.activeAt ?? now, now) } : one,
    )
    return accept({ ring: after, key, was }, ...difference(ring, after))
  }
  const heir = { ...(next ?? successor(fresh, { algorithm: key.algorithm, activeAt: now })), activeAt: now }
  const others = ring.filter((one) => one !== key && one.id !== heir.id)
  const after = withEnds([...others, { ...key, retiredAt: now }, heir], policy, now)
  return accept({ ring: after, key, was, successor: heir }, ...difference(ring, after))
}

/**
 * Sets the end of the overlap of every key that has a successor, or moves it forward. The last key of an algorithm has
 * an end only if the algorithm is not offered, and continues when it is offered again.
 */
function withEnds(ring: readonly StoredKey[], policy: KeyPolicy, now: Seconds): readonly StoredKey[] {
  const followers = new Map<string, StoredKey>()
  for (const algorithm of keyAlgorithms) {
    const { terms } = termsOf(ring, algorithm, now)
    for (const [index, key] of terms.entries()) {
      const follower = terms[index + 1]
      if (follower !== undefined) followers.set(key.id, follower)
    }
  }
  return ring.map((key) => {
    const follower = followers.get(key.id)
    const { retiredAt = Number.POSITIVE_INFINITY, ...endless } = key
    if (follower === undefined) {
      if (isRetired(key, now)) return key
      if (policy.algorithms.includes(key.algorithm)) return endless
      return { ...key, retiredAt: key.retiredAt ?? now + policy.overlapSeconds[key.kind] }
    }
    if (retiredAt <= follower.activeAt) return key
    const end = follower.activeAt + policy.overlapSeconds[key.kind]
    return { ...key, retiredAt: Math.max(key.retiredAt ?? end, end) }
  })
}

function successor(fresh: readonly StoredKey[], { algorithm, activeAt }: DueKey): StoredKey {
  const key = fresh.find((one) => one.algorithm === algorithm)
  if (key === undefined) throw new TypeError(`a fresh ${algorithm} key is missing`)
  return { ...key, activeAt }
}

function difference(before: readonly StoredKey[], after: readonly StoredKey[]): readonly Write[] {
  const gone = before.filter(({ id }) => !after.some((key) => key.id === id))
  return [
    ...gone.map(({ id }): Write => remove('key', id)),
    ...after.flatMap((key): Write | readonly Write[] => {
      const old = before.find(({ id }) => id === key.id)
      if (old === undefined) return insert('key', key)
      const isChanged = old.activeAt !== key.activeAt || old.retiredAt !== key.retiredAt
      return isChanged ? update('key', key) : []
    }),
  ]
}

/** Describes a key to an operator, without its private part. */
export function describeKey(key: StoredKey, ring: readonly StoredKey[], now: Seconds) {
  return {
    kid: key.id,
    kind: key.kind,
    algorithm: key.algorithm,
    state: stateOf(key, ring, now),
    created_at: key.createdAt,
    active_from: key.activeAt,
    ...(key.retiredAt !== undefined && { retires_at: key.retiredAt }),
  }
}
