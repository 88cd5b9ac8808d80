import type { Seconds, SigningAlgorithm, StoredKey } from './model.ts'

/*
 * The lifecycle of a key of the key ring (OpenID Connect Core §10.1.1), the same for signing keys and handle keys.
 *
 *     state           meaning                                       until
 *     waiting         published and known to every server           its `activeAt`
 *     active          it signs or seals                             the `activeAt` of its successor
 *     verifies only   what it signed may still be valid             its `retiredAt`
 *     retired         not used; its row stays for a day             the next upkeep after that
 */
export type KeyState = 'waiting' | 'active' | 'verifies only' | 'retired'

export type KeyAlgorithm = StoredKey['algorithm']

/** Every algorithm there is a signing key of, RFC 7518 §3.1 and RFC 8037 §3.1. */
export const signingAlgorithms: readonly SigningAlgorithm[] = ['RS256', 'ES256', 'EdDSA']

/** The algorithms that a server with this setting signs with. */
export function offeredAlgorithms({ ed25519 }: { readonly ed25519: 'on' | 'off' }) {
  return signingAlgorithms.filter((algorithm) => algorithm !== 'EdDSA' || ed25519 === 'on')
}

/** Every algorithm a key ring has a key of; HS256 is that of the handles. */
export const keyAlgorithms: readonly KeyAlgorithm[] = [...signingAlgorithms, 'HS256']

/** When a key is in use: from `activeAt` until `retiredAt`. */
export type KeyTerm = Pick<StoredKey, 'id' | 'createdAt' | 'activeAt' | 'retiredAt'>

/** Whether the key is retired: it neither signs nor verifies, and is not published. */
export function isRetired({ retiredAt }: KeyTerm, now: Seconds): boolean {
  return retiredAt !== undefined && now >= retiredAt
}

/**
 * The active key: the one that became active last. If a clock was set back behind them all, the oldest, so that a
 * server with keys always has an active one. If even the last key has an end, the algorithm is no longer offered, and
 * no key is active.
 * @param keys Keys of one algorithm.
 */
export function actingKey<K extends KeyTerm>(keys: readonly K[], now: Seconds): K | undefined {
  const terms = inOrder(keys.filter((key) => !isRetired(key, now)))
  if (terms.at(-1)?.retiredAt !== undefined) return undefined
  return terms.findLast(({ activeAt }) => activeAt <= now) ?? terms[0]
}

/** The keys of an algorithm that are not retired, in the order in which they act; the acting one and who follows it. */
export function termsOf(ring: readonly StoredKey[], algorithm: KeyAlgorithm, now: Seconds) {
  const terms = inOrder(ring.filter((key) => key.algorithm === algorithm && !isRetired(key, now)))
  const acting = actingKey(terms, now)
  const position = acting === undefined ? terms.length : terms.indexOf(acting)
  return { terms, acting, position, waiting: terms[position + 1] }
}

/** The state of a key of this ring. */
export function stateOf(key: StoredKey, ring: readonly StoredKey[], now: Seconds): KeyState {
  if (isRetired(key, now)) return 'retired'
  const { terms, position } = termsOf(ring, key.algorithm, now)
  const own = terms.findIndex(({ id }) => id === key.id)
  if (own < position) return 'verifies only'
  return own === position ? 'active' : 'waiting'
}

function inOrder<K extends KeyTerm>(keys: readonly K[]): readonly K[] {
  // The id breaks ties the same way in every process.
  return [...keys].sort(
    (one, other) =>
      one.activeAt - other.activeAt || one.createdAt - other.createdAt || (one.id < other.id ? 1 : -1),
  )
}
