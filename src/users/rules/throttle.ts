import { createHash } from 'node:crypto'
import { accept, type Decision, put, remove, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { KnownBrowser } from '../../domain/known-browser.ts'
import type { Seconds, Throttle } from '../../domain/model.ts'
import { recordKind } from '../../domain/record.ts'

/*
 * Limits of failed sign-ins and of emails. Both count in windows: a counter starts again when its window has ended.
 */

/** Counters, by bucket. */
export const throttleKind = recordKind<Throttle>('throttle', {
  id: ({ key }) => key,
  expiresAt: ({ expiresAt }) => expiresAt,
})

export interface ThrottleLimits {
  readonly failuresPerAccountAndPrefix: number
  readonly failuresPerPrefix: number
  readonly failuresPerPrefixAndUser: number
  readonly failuresPerAccount: number
  readonly failuresInARow: number
  readonly windowSeconds: Seconds
}

/** What a failed sign-in counts against. */
export interface Bucket {
  readonly key: string
  readonly limit: number
  /**
   * `network`: the first three failures of one name count as one. `in-a-row`: it has no window, and a success empties
   * it.
   */
  readonly kind?: 'network' | 'in-a-row'
  /** For how long failures in a row are remembered after the last of them; absent: a year. */
  readonly rowSeconds?: Seconds
  /** What the error says when it is full; absent: it is about sign-ins. */
  readonly error?: readonly [rule: string, description: string]
}

/** Who signs in, from where. */
export interface SignInAttempt {
  /** Canonical, so that case, spaces and an email alias do not make new buckets; the id of a user who exists. */
  readonly login: string
  readonly isUser: boolean
  readonly prefix: string
  /** Users who signed in from this network lately, see `networkRows`. */
  readonly usersOfPrefix: number
  readonly knownBrowser?: KnownBrowser | undefined
}

/**
 * Returns the buckets of one attempt, in order. A browser in which this user has signed in before is counted apart:
 * guesses from elsewhere do not lock its owner out. All such browsers of one user share a second count.
 */
export function bucketsOf(attempt: SignInAttempt, limits: ThrottleLimits): readonly Bucket[] {
  const { login, isUser, prefix, usersOfPrefix, knownBrowser } = attempt
  const limit = limits.failuresPerAccountAndPrefix
  const inARow = { limit: limits.failuresInARow, kind: 'in-a-row' } as const
  if (knownBrowser !== undefined) {
    return [
      { key: failuresOf(login, `device ${countedAs(knownBrowser)}`), limit },
      { key: failuresOf(login, 'devices'), limit: 2 * limit },
      { ...inARow, key: rowKeys(login).knownBrowsers },
    ]
  }
  const perPrefix = limits.failuresPerPrefix + usersOfPrefix * limits.failuresPerPrefixAndUser
  return [
    { key: failuresOf(login, prefix), limit },
    { key: `prefix ${prefix}`, limit: perPrefix, kind: 'network' },
    { key: failuresOf(login, 'all'), limit: limits.failuresPerAccount },
    isUser
      ? { ...inARow, key: rowKeys(login).others }
      : { ...inARow, key: unknownKey(login), rowSeconds: weekSeconds },
  ]
}

/**
 * The buckets of an attempt at a second factor. It is made with the right password, so only a browser that finished a
 * sign-in before counts apart.
 */
export function secondFactorBuckets(
  userId: string,
  knownBrowser: KnownBrowser | undefined,
  limits: ThrottleLimits,
): readonly Bucket[] {
  const limit = limits.failuresPerAccountAndPrefix
  const inARow = { limit: limits.failuresInARow, kind: 'in-a-row' } as const
  if (knownBrowser === undefined)
    return [
      { key: failuresOf(userId, 'second'), limit },
      { ...inARow, key: rowKeys(userId).codes },
    ]
  return [
    { key: failuresOf(userId, `second ${countedAs(knownBrowser)}`), limit },
    { key: failuresOf(userId, 'second devices'), limit: 2 * limit },
    { ...inARow, key: rowKeys(userId).knownBrowserCookies },
  ]
}

/** The keys of a user's failures in a row. */
export function rowKeys(userId: string) {
  return {
    others: `in-a-row ${userId}`,
    knownBrowsers: `in-a-row devices ${userId}`,
    codes: `in-a-row codes ${userId}`,
    knownBrowserCookies: `in-a-row codes of devices ${userId}`,
  } as const
}

/** Returns the key of a counter of one user in a window. All of them begin alike; canonical names have no space. */
export function failuresOf(login: string, counter = ''): string {
  return `failed ${login} ${counter}`
}

/**
 * Returns the writes that reset every counter of one user's failures: after a new password, or by an operator. Those
 * of networks stay: they count other users, too.
 */
export function forgetFailures(userId: string): readonly Write[] {
  const rows = Object.values(rowKeys(userId)).map((key) => remove(throttleKind, key))
  return [{ op: 'deleteRecordsFrom', kind: throttleKind.name, prefix: failuresOf(userId) }, ...rows]
}

const yearSeconds: Seconds = 365 * 86_400

/**
 * Counts an attempt before its password is looked at, so that parallel guesses cannot pass together.
 * @param weight 0: only looks whether the bucket is full.
 * @throws {OAuthError} `temporarily_unavailable` with status 429 when the bucket is full.
 */
export function countAttempt(
  throttle: Throttle | undefined,
  bucket: Bucket,
  limits: ThrottleLimits,
  now: Seconds,
  weight: 0 | 1 = 1,
): Decision<number> {
  const seconds = bucket.kind === 'in-a-row' ? (bucket.rowSeconds ?? yearSeconds) : limits.windowSeconds
  const current = openWindow(throttle, bucket.key, seconds, now)
  if (current.failures >= bucket.limit) throw tooManyFailures(bucket, current.expiresAt - now)
  const failures = current.failures + weight
  if (weight === 0) return accept(failures)
  const expiresAt = bucket.kind === 'in-a-row' ? now + seconds : current.expiresAt
  return accept(failures, put(throttleKind, { key: bucket.key, failures, expiresAt }))
}

/** Returns the counter if its window is open, or else an empty one whose window begins now. */
function openWindow(throttle: Throttle | undefined, key: string, seconds: Seconds, now: Seconds): Throttle {
  const lastEnd = now + seconds
  // A window that ends later than one beginning now was opened by a clock that ran ahead: it would lock users out.
  const isOpen = throttle !== undefined && now < throttle.expiresAt && throttle.expiresAt <= lastEnd
  return isOpen ? throttle : { key, failures: 0, expiresAt: lastEnd }
}

/** Whether a failure counts for its network: of one name the first, and those after its third. */
export function networkWeight(failuresOfName: number): 0 | 1 {
  return failuresOfName === 1 || failuresOfName > 3 ? 1 : 0
}

/** Takes an attempt back that did not fail; with a success, a row of failures ends. */
export function refundAttempt(throttle: Throttle | undefined, isSuccess = false): Decision<void> {
  if (throttle === undefined) return accept(undefined)
  if (isSuccess || throttle.failures <= 1) return accept(undefined, remove(throttleKind, throttle.key))
  return accept(undefined, put(throttleKind, { ...throttle, failures: throttle.failures - 1 }))
}

/** For how long a sign-in raises the limit of its network: this week and the next. */
const weekSeconds: Seconds = 7 * 86_400

/**
 * The rows that count who signs in from a network: one of the user this week, and the number of users of this week and
 * of the one before.
 */
export function networkRows(prefix: string, userId: string, now: Seconds) {
  const week = Math.floor(now / weekSeconds)
  return {
    user: { key: `seen ${prefix} ${week} ${userId}`, expiresAt: (week + 1) * weekSeconds },
    users: { key: `users ${prefix} ${week}`, expiresAt: (week + 2) * weekSeconds },
    before: { key: `users ${prefix} ${week - 1}` },
  }
}

/** One more in a row of `networkRows`. */
export function countUser(
  throttle: Throttle | undefined,
  { key, expiresAt }: Pick<Throttle, 'key' | 'expiresAt'>,
): Decision<void> {
  const failures = (throttle?.failures ?? 0) + 1
  return accept(undefined, put(throttleKind, { key, failures, expiresAt }))
}

/** Cookies made before they were bound to the password are counted as one. */
function countedAs({ isBound, nonce }: KnownBrowser): string {
  return isBound ? nonce : 'unbound'
}

/** Unknown user names are counted like others, in a bounded number of rows. */
function unknownKey(login: string): string {
  return `in-a-row unknown ${createHash('sha256').update(login).digest('hex').slice(0, 4)}`
}

function tooManyFailures({ kind, error }: Bucket, remainingSeconds: Seconds): OAuthError {
  const [rule, description] = error ?? errorOf[kind ?? 'name']
  return new OAuthError('temporarily_unavailable', description, {
    rule,
    status: 429,
    // Failures in a row do not end by waiting.
    ...(kind !== 'in-a-row' && { headers: { 'retry-after': String(remainingSeconds) } }),
  })
}

/** The rules whose pages offer something other than waiting. */
export const networkRule = 'lychgate-sign-in-throttle-network'
export const inARowRule = 'lychgate-failures-in-a-row'

const errorOf = {
  name: ['lychgate-sign-in-throttle', 'too many failed sign-ins; try again later'],
  network: [
    networkRule,
    'too many failed sign-ins from this network (signInThrottle.failuresPerPrefix); try again later',
  ],
  'in-a-row': [
    inARowRule,
    'too many failed sign-ins in a row (signInThrottle.failuresInARow); a new password or an operator ends it',
  ],
} as const

/** The rule of a sign-in that was looked at and failed, and those of one that was rejected unchecked. */
export const signInRule: string = 'lychgate-sign-in'
export const throttleRules: readonly string[] = Object.values(errorOf).map(([rule]) => rule)

const emailWindowSeconds: Seconds = 3600
const emailsPerUser = 5
/** A household or an office shares one network. */
const requestsPerNetwork = 20

/** The key of the counter of a user's emails. */
export function emailBucket(userId: string): string {
  return `letters ${userId}`
}

/** The key of the counter of requests for emails from one network. */
export function requestBucket(prefix: string): string {
  return `letters from ${prefix}`
}

/** Counts an email to a user; false if the limit is reached. */
export function countEmail(throttle: Throttle | undefined, userId: string, now: Seconds): Decision<boolean> {
  const current = openWindow(throttle, emailBucket(userId), emailWindowSeconds, now)
  if (current.failures >= emailsPerUser) return accept(false)
  return accept(true, countUp(current))
}

/**
 * Counts a request for emails from one network.
 * @throws {OAuthError} `temporarily_unavailable` with status 429 after too many.
 */
export function countRequest(throttle: Throttle | undefined, prefix: string, now: Seconds): Decision<void> {
  const current = openWindow(throttle, requestBucket(prefix), emailWindowSeconds, now)
  if (current.failures >= requestsPerNetwork) throw tooManyEmails(current.expiresAt - now)
  return accept(undefined, countUp(current))
}

function countUp(current: Throttle): Write {
  return put(throttleKind, { ...current, failures: current.failures + 1 })
}

/** Returns the error of an email beyond the limit. */
export function tooManyEmails(retryAfterSeconds: Seconds = emailWindowSeconds): OAuthError {
  return new OAuthError('temporarily_unavailable', 'too many emails were requested; try again later', {
    rule: 'lychgate-letter-throttle',
    status: 429,
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
