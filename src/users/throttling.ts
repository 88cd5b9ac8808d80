import type { FastifyInstance, FastifyRequest } from 'fastify'
import { auditEvent } from '../domain/audit.ts'
import { accept } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Seconds, Throttle, User } from '../domain/model.ts'
import type { Needs } from '../feature/deps.ts'
import { addressPrefix } from '../http/address-prefix.ts'
import { keysOf, type RecordSet, type Store } from '../storage/store.ts'
import { PasswordQueueFull } from './passwords.ts'
import { type CounterChange, countAttempts, refundOf, signedIn } from './rules/attempts.ts'
import { type Bucket, bucketsOf, networkRows, type ThrottleLimits, throttleKind } from './rules/throttle.ts'

/** A typed password, and its user. */
export interface PasswordAttempt {
  readonly user: User | undefined
  /** What was typed for a user there is not: it counts too, or the throttle would tell. */
  readonly login?: string | undefined
  readonly password: string
}

/**
 * Checks a password, counted and throttled wherever one is typed; only what was looked at and wrong stays
 * counted. A user there is not takes as long as a wrong password.
 * @returns What a right password changes in counters, for the caller to commit.
 * @throws {OAuthError} `temporarily_unavailable`: 429 when throttled, 503 when too many checks are waiting.
 */
export function passwordAttempts(
  app: FastifyInstance,
  { config, store, checkPassword }: Needs<'config' | 'store' | 'checkPassword'>,
) {
  return async (
    request: FastifyRequest,
    { user, login, password }: PasswordAttempt,
    now: Seconds,
  ): Promise<CounterChange | undefined> => {
    const limits = config.signInThrottle
    const prefix = addressPrefix(request.ip)
    const rows = networkRows(prefix, user?.id ?? '', now)
    const keys = [rows.user.key, rows.users.key, rows.before.key]
    const [knownBrowser, network] = await Promise.all([
      user && app.browser.knownBrowser(request, user),
      store.find(throttles, keysOf(keys)),
    ])
    const [seen, here = 0, earlier = 0] = keys.map((key) => network?.get(key)?.failures)
    const who = {
      // An alias counts as the account it leads to.
      login: user?.id ?? login ?? '',
      isUser: user !== undefined,
      prefix,
      usersOfPrefix: knownBrowser === undefined ? Math.max(here, earlier) : 0,
      knownBrowser,
    }
    const trial = {
      buckets: bucketsOf(who, limits),
      limits,
      now,
      userId: user?.id,
      ...(user !== undefined && { onSuccess: signedIn(user.id, seen === undefined ? rows : undefined) }),
    }
    const right = await counted(store, trial, async () => {
      try {
        return (await checkPassword(password, user?.passwordHash)) || undefined
      } catch (error) {
        throw error instanceof PasswordQueueFull ? busy(error) : error
      }
    })
    return user && right?.refund
  }
}

/** Several counters, which are changed together. */
export const throttles: RecordSet<Throttle> = { name: 'throttles', each: throttleKind }

/** Commits a change of counters. */
export async function changeCounters(
  store: Pick<Store, 'transact'>,
  { keys, writes }: CounterChange,
): Promise<void> {
  await store.transact(throttles, keysOf(keys), (found = none) => accept(undefined, ...writes(found)))
}

function busy(cause: PasswordQueueFull): OAuthError {
  const headers = { 'retry-after': '2' }
  return new OAuthError('temporarily_unavailable', 'too many sign-ins are waiting; try again shortly', {
    rule: 'lychgate-password-queue',
    headers,
    cause,
  })
}

/** An attempt and its actor. */
export interface Trial {
  readonly buckets: readonly Bucket[]
  readonly limits: ThrottleLimits
  readonly now: Seconds
  /** For the audit log, where failures in a row reach their limit. */
  readonly userId?: string | undefined
  /** What else a success changes. */
  readonly onSuccess?: CounterChange
}

/** A right attempt, which counts until its caller takes it back. */
interface RightAttempt<T> {
  readonly outcome: T
  readonly refund: CounterChange
}

/**
 * Runs an attempt that counts against these buckets until it turns out right: undefined is a failed one. An attempt
 * that threw was not evaluated and has not failed. The count is committed before the attempt: what is tried at the same
 * time is counted together, and all buckets count or none.
 * @throws {OAuthError} `temporarily_unavailable` with status 429 when a bucket is full.
 */
export async function throttled<T>(
  store: Store,
  trial: Trial,
  attempt: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const right = await counted(store, trial, attempt)
  if (right === undefined) return undefined
  await changeCounters(store, right.refund)
  return right.outcome
}

/** The same for a caller that takes a right attempt back together with what follows from it. */
async function counted<T>(
  store: Store,
  { buckets, limits, now, userId, onSuccess = success }: Trial,
  attempt: () => Promise<T | undefined>,
): Promise<RightAttempt<T> | undefined> {
  const { counted, isLast } = await store.transact(
    throttles,
    keysOf(buckets.map(({ key }) => key)),
    (found = none) => countAttempts(found, buckets, limits, now),
  )
  let outcome: T | undefined
  try {
    outcome = await attempt()
  } catch (error) {
    await changeCounters(store, refundOf(counted))
    throw error
  }
  if (outcome !== undefined) return { outcome, refund: refundOf(counted, onSuccess) }
  if (isLast && userId !== undefined) {
    const about = { userId, failuresInARow: limits.failuresInARow }
    await store.write(auditEvent('sign-in-failed', { by: 'server', at: now }, about))
  }
  return undefined
}

const none: ReadonlyMap<string, Throttle> = new Map()
const success: CounterChange = { keys: [], writes: () => [] }
