import type { HandleKey } from '../domain/handle.ts'
import { actingKey, isRetired, type KeyTerm, signingAlgorithms } from '../domain/key-term.ts'
import type { Seconds, SigningAlgorithm } from '../domain/model.ts'
import type { OpenedHandleKey, PublicJwk, SigningKey } from './opened-key.ts'
import { type RecentHandles, recentHandles } from './recent-handles.ts'

/** Every key of the ring that is not retired, opened. */
export interface OpenedKeys {
  readonly signing: readonly SigningKey[]
  readonly handle: readonly OpenedHandleKey[]
}

/** The state of the keys from one beginning or end of a term to the next: requests only look up. */
export interface Snapshot {
  readonly from: Seconds
  readonly until: Seconds
  readonly algorithms: readonly SigningAlgorithm[]
  /** By algorithm: the key that signs. */
  readonly signers: ReadonlyMap<SigningAlgorithm, SigningKey>
  /** By kid: the keys that verify. */
  readonly verifiers: ReadonlyMap<string, SigningKey>
  /** The key that seals. */
  readonly sealer: HandleKey | undefined
  /** By id: the keys that open. */
  readonly openers: ReadonlyMap<number, HandleKey>
  /** What they opened lately. */
  readonly opened: RecentHandles
  readonly jwks: { readonly keys: readonly PublicJwk[] }
}

/**
 * The state of these keys at this moment.
 * @param before The snapshot this one replaces: as long as the same keys are published, the JWK Set stays the same
 * object, and its endpoint need not serialise it again.
 */
export function takeSnapshot({ signing, handle }: OpenedKeys, now: Seconds, before?: Snapshot): Snapshot {
  const [verifying, opening] = [kept(signing, now), kept(handle, now)]
  const signers = new Map<SigningAlgorithm, SigningKey>()
  for (const algorithm of signingAlgorithms) {
    const signer = acting(
      verifying.filter((key) => key.algorithm === algorithm),
      now,
    )
    if (signer !== undefined) signers.set(algorithm, signer)
  }
  // RS256 first, the default algorithm, and the key that signs before others: some clients take the first key.
  const keys = signingAlgorithms.flatMap((algorithm) => {
    const isSigner = (key: SigningKey) => Number(key === signers.get(algorithm))
    const own = verifying.filter((key) => key.algorithm === algorithm)
    return own.sort((one, other) => isSigner(other) - isSigner(one)).map(({ publicJwk }) => publicJwk)
  })
  const isSame = before?.jwks.keys.map(({ kid }) => kid).join() === keys.map(({ kid }) => kid).join()
  return {
    ...boundaries([...signing, ...handle], now),
    algorithms: [...signers.keys()],
    signers,
    verifiers: new Map(verifying.map((key) => [key.term.id, key])),
    sealer: acting(opening, now)?.handleKey,
    openers: new Map(opening.map(({ handleKey }) => [handleKey.id, handleKey])),
    opened: recentHandles(),
    jwks: isSame ? before.jwks : { keys },
  }
}

interface Termed {
  readonly term: KeyTerm
}

function kept<K extends Termed>(keys: readonly K[], now: Seconds): readonly K[] {
  return keys.filter(({ term }) => !isRetired(term, now))
}

function acting<K extends Termed>(keys: readonly K[], now: Seconds): K | undefined {
  const term = actingKey(
    keys.map((key) => key.term),
    now,
  )
  return keys.find((key) => key.term === term)
}

/** The last instant up to now at which a term began or ended, and the next one: in between nothing changes. */
function boundaries(keys: readonly Termed[], now: Seconds): Pick<Snapshot, 'from' | 'until'> {
  const instants = keys.flatMap(({ term: { activeAt, retiredAt = activeAt } }) => [activeAt, retiredAt])
  return {
    from: Math.max(Number.NEGATIVE_INFINITY, ...instants.filter((at) => at <= now)),
    until: Math.min(Number.POSITIVE_INFINITY, ...instants.filter((at) => at > now)),
  }
}
