import type { Seconds } from '../domain/model.ts'
import { type Bucket, countAttempt, refundAttempt, type ThrottleLimits } from '../domain/sign-in-throttle.ts'
import type { Store } from '../storage/store.ts'

/**
 * Runs an attempt that counts against these buckets until it turns out right: undefined is a failed one. An attempt
 * nobody looked at, because it threw, has not failed.
 * @throws {OAuthError} `temporarily_unavailable` with status 429 when a bucket is full.
 */
export async function throttled<T>(
  store: Store,
  buckets: readonly Bucket[],
  limits: ThrottleLimits,
  now: Seconds,
  attempt: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const counted: Bucket[] = []
  const refund = async () => {
    for (const { key } of counted) await store.transact('throttle', key, refundAttempt)
  }
  try {
    for (const bucket of buckets) {
      await store.transact('throttle', bucket.key, (throttle) => countAttempt(throttle, bucket, limits, now))
      counted.push(bucket)
    }
    const outcome = await attempt()
    if (outcome !== undefined) await refund()
    return outcome
  } catch (error) {
    await refund()
    throw error
  }
}
