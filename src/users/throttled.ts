import { auditEvent } from '../domain/audit.ts'
import type { Seconds } from '../domain/model.ts'
import type { Store } from '../storage/store.ts'
import {
  type Bucket,
  countAttempt,
  networkWeight,
  refundAttempt,
  type ThrottleLimits,
  throttleKind,
} from './rules/sign-in-throttle.ts'

/** An attempt and its actor. */
export interface Trial {
  readonly buckets: readonly Bucket[]
  readonly limits: ThrottleLimits
  readonly now: Seconds
  /** For the audit log, where failures in a row reach their limit. */
  readonly userId?: string | undefined
}

/**
 * Runs an attempt that counts against these buckets until it turns out right: undefined is a failed one. An attempt
 * that threw was not evaluated and has not failed.
 * @throws {OAuthError} `temporarily_unavailable` with status 429 when a bucket is full.
 */
export async function throttled<T>(
  store: Store,
  { buckets, limits, now, userId }: Trial,
  attempt: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const counted: Bucket[] = []
  const refund = async (isSuccess: boolean) => {
    for (const { key, kind } of counted) {
      const endsRow = isSuccess && kind === 'in-a-row'
      await store.transact(throttleKind, key, (throttle) => refundAttempt(throttle, endsRow))
    }
  }
  try {
    let failuresOfName = 1
    let isLast = false
    for (const [index, bucket] of buckets.entries()) {
      const weight = bucket.kind === 'network' ? networkWeight(failuresOfName) : 1
      const failures = await store.transact(throttleKind, bucket.key, (throttle) =>
        countAttempt(throttle, bucket, limits, now, weight),
      )
      if (weight === 1) counted.push(bucket)
      if (index === 0) failuresOfName = failures
      if (bucket.kind === 'in-a-row') isLast = failures >= bucket.limit
    }
    const outcome = await attempt()
    if (outcome !== undefined) await refund(true)
    else if (isLast && userId !== undefined) {
      const about = { userId, failuresInARow: limits.failuresInARow }
      await store.write(auditEvent('sign-in-failed', { by: 'server', at: now }, about))
    }
    return outcome
  } catch (error) {
    await refund(false)
    throw error
  }
}
