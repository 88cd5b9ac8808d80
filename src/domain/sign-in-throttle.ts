import { accept, type Decision } from './decision.ts'
import { OAuthError } from './errors.ts'
import type { Seconds, Throttle } from './model.ts'

export interface ThrottleLimits {
  readonly failuresPerAccountAndPrefix: number
  readonly failuresPerPrefix: number
  readonly failuresPerAccount: number
  readonly windowSeconds: Seconds
}

/** What a failed sign-in counts against. */
export interface Bucket {
  readonly key: string
  readonly limit: number
}

/**
 * The buckets of one attempt, in the order they are asked. A browser that signed in to this account before counts by
 * itself: whoever guesses from elsewhere cannot lock its owner out.
 * @param login Canonical, so that case, spaces and an e-mail alias do not make new buckets.
 */
export function bucketsOf(
  login: string,
  prefix: string,
  knownDevice: string | undefined,
  limits: ThrottleLimits,
): readonly Bucket[] {
  if (knownDevice !== undefined) {
    return [{ key: `device ${knownDevice} ${login}`, limit: limits.failuresPerAccountAndPrefix }]
  }
  return [
    { key: `prefix ${prefix}`, limit: limits.failuresPerPrefix },
    { key: `account ${prefix} ${login}`, limit: limits.failuresPerAccountAndPrefix },
    { key: `account ${login}`, limit: limits.failuresPerAccount },
  ]
}

/**
 * The bucket of an attempt at a second factor. Whoever makes one knows the password, so only a browser that finished a
 * sign-in before counts by itself.
 */
export function secondFactorBuckets(
  accountId: string,
  knownDevice: string | undefined,
  limits: ThrottleLimits,
): readonly Bucket[] {
  const whose = knownDevice === undefined ? accountId : `${knownDevice} ${accountId}`
  return [{ key: `second ${whose}`, limit: limits.failuresPerAccountAndPrefix }]
}

/**
 * Counts an attempt before its password is looked at, so that parallel guesses cannot pass together.
 * @throws {OAuthError} `temporarily_unavailable` with status 429 when the bucket is full.
 */
export function countAttempt(
  throttle: Throttle | undefined,
  bucket: Bucket,
  limits: ThrottleLimits,
  now: Seconds,
): Decision<void> {
  // A window that ends later than one beginning now was opened by a clock that ran ahead: it would lock people out.
  const lastEnd = now + limits.windowSeconds
  const isOpen = throttle !== undefined && now < throttle.expiresAt && throttle.expiresAt <= lastEnd
  const current = isOpen ? throttle : undefined
  if (current !== undefined && current.failures >= bucket.limit) {
    throw new OAuthError('temporarily_unavailable', 'too many failed sign-ins; try again later', {
      rule: 'lychgate-sign-in-throttle',
      status: 429,
      headers: { 'retry-after': String(current.expiresAt - now) },
    })
  }
  const failures = (current?.failures ?? 0) + 1
  const expiresAt = current?.expiresAt ?? lastEnd
  return accept(undefined, { op: 'putThrottle', throttle: { key: bucket.key, failures, expiresAt } })
}

/** Takes an attempt back that did not fail. */
export function refundAttempt(throttle: Throttle | undefined): Decision<void> {
  if (throttle === undefined) return accept(undefined)
  if (throttle.failures <= 1) return accept(undefined, { op: 'deleteThrottle', key: throttle.key })
  return accept(undefined, { op: 'putThrottle', throttle: { ...throttle, failures: throttle.failures - 1 } })
}
