import { accept, type Decision, remove, type Write } from '../../domain/decision.ts'
import type { Seconds, Throttle } from '../../domain/model.ts'
import {
  type Bucket,
  countAttempt,
  countUser,
  type networkRows,
  networkWeight,
  refundAttempt,
  rowKeys,
  type ThrottleLimits,
  throttleKind,
} from './throttle.ts'

/** An attempt that was counted. */
export interface CountedAttempt {
  /** What is taken back unless it fails. */
  readonly counted: readonly Bucket[]
  /** Whether its failure is the last one in a row. */
  readonly isLast: boolean
}

/**
 * Counts an attempt in all its buckets, or in none.
 * @throws {OAuthError} as `countAttempt`, for the first bucket that is full.
 */
export function countAttempts(
  throttles: ReadonlyMap<string, Throttle>,
  buckets: readonly Bucket[],
  limits: ThrottleLimits,
  now: Seconds,
): Decision<CountedAttempt> {
  const writes: Write[] = []
  const counted: Bucket[] = []
  let failuresOfName = 1
  let isLast = false
  for (const [index, bucket] of buckets.entries()) {
    const weight = bucket.kind === 'network' ? networkWeight(failuresOfName) : 1
    const decision = countAttempt(throttles.get(bucket.key), bucket, limits, now, weight)
    const failures = 'result' in decision ? decision.result : 0
    writes.push(...decision.writes)
    if (weight === 1) counted.push(bucket)
    if (index === 0) failuresOfName = failures
    if (bucket.kind === 'in-a-row') isLast = failures >= bucket.limit
  }
  return accept({ counted, isLast }, ...writes)
}

/** Changes that a success makes to counters in which it was not counted. */
export interface CounterChange {
  readonly keys: readonly string[]
  readonly writes: (throttles: ReadonlyMap<string, Throttle>) => readonly Write[]
}

/**
 * Returns what takes an attempt back that did not fail.
 * @param success Set if it succeeded: then a row of failures ends, too.
 */
export function refundOf(counted: readonly Bucket[], success?: CounterChange): CounterChange {
  const isEnd = ({ kind }: Bucket) => success !== undefined && kind === 'in-a-row'
  return {
    keys: [...counted.map(({ key }) => key), ...(success?.keys ?? [])],
    writes: (throttles) => [
      ...counted.flatMap((bucket) => refundAttempt(throttles.get(bucket.key), isEnd(bucket)).writes),
      ...(success?.writes(throttles) ?? []),
    ],
  }
}

/**
 * Returns what a right password changes: failures in a row end, also those made elsewhere, and the user counts for their
 * network.
 * @param network The rows of the network, unless the user counts there already.
 */
export function signedIn(userId: string, network?: Omit<NetworkRows, 'before'>): CounterChange {
  const { others, knownBrowsers } = rowKeys(userId)
  const inARow = [others, knownBrowsers]
  return {
    keys: [...inARow, ...(network === undefined ? [] : [network.user.key, network.users.key])],
    writes(throttles) {
      const ended = inARow.filter((key) => throttles.has(key)).map((key) => remove(throttleKind, key))
      if (network === undefined || throttles.has(network.user.key)) return ended
      const counted = [network.user, network.users].flatMap(
        (row) => countUser(throttles.get(row.key), row).writes,
      )
      return [...ended, ...counted]
    },
  }
}

type NetworkRows = ReturnType<typeof networkRows>
