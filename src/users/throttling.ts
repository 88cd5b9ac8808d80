import type { FastifyInstance, FastifyRequest } from 'fastify'
import { auditEvent } from '../domain/audit.ts'
import { accept, remove } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Seconds, User } from '../domain/model.ts'
import type { Needs } from '../feature/deps.ts'
import { addressPrefix } from '../http/address-prefix.ts'
import type { Store } from '../storage/store.ts'
import { PasswordQueueFull } from './passwords.ts'
import {
  type Bucket,
  bucketsOf,
  countAttempt,
  countUser,
  networkRows,
  networkWeight,
  refundAttempt,
  rowKeys,
  type ThrottleLimits,
  throttleKind,
} from './rules/throttle.ts'

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
 * @throws {OAuthError} `temporarily_unavailable`: 429 when throttled, 503 when too many checks are waiting.
 */
export function passwordAttempts(
  app: FastifyInstance,
  { config, store, checkPassword }: Needs<'config' | 'store' | 'checkPassword'>,
) {
  const networks = networkUsers(store)
  /** A right password ends failures in a row, also those made elsewhere. */
  const succeeded = async (userId: string, prefix: string, now: Seconds): Promise<void> => {
    const { others, knownBrowsers } = rowKeys(userId)
    for (const key of [others, knownBrowsers]) {
      if ((await store.find(throttleKind, key)) !== undefined) await store.write(remove(throttleKind, key))
    }
    await networks.add(prefix, userId, now)
  }

  return async (
    request: FastifyRequest,
    { user, login, password }: PasswordAttempt,
    now: Seconds,
  ): Promise<boolean> => {
    const limits = config.signInThrottle
    const prefix = addressPrefix(request.ip)
    const knownBrowser = user && (await app.browser.knownBrowser(request, user))
    const who = {
      // An alias counts as the account it leads to.
      login: user?.id ?? login ?? '',
      isUser: user !== undefined,
      prefix,
      usersOfPrefix: knownBrowser === undefined ? await networks.usersOf(prefix, now) : 0,
      knownBrowser,
    }
    const trial = { buckets: bucketsOf(who, limits), limits, now, userId: user?.id }
    const isRight = await throttled(store, trial, async () => {
      try {
        return (await checkPassword(password, user?.passwordHash)) || undefined
      } catch (error) {
        throw error instanceof PasswordQueueFull ? busy(error) : error
      }
    })
    if (isRight && user !== undefined) await succeeded(user.id, prefix, now)
    return isRight ?? false
  }
}

/** How many users signed in from a network lately: where many are right, some more may be wrong. */
function networkUsers(store: Store) {
  return {
    usersOf: async (prefix: string, now: Seconds): Promise<number> => {
      const { users, before } = networkRows(prefix, '', now)
      const [here, earlier] = await Promise.all([
        store.find(throttleKind, users.key),
        store.find(throttleKind, before.key),
      ])
      return Math.max(here?.failures ?? 0, earlier?.failures ?? 0)
    },
    add: async (prefix: string, userId: string, now: Seconds): Promise<void> => {
      const { user, users } = networkRows(prefix, userId, now)
      const isNew = await store.transact(throttleKind, user.key, (throttle) =>
        throttle === undefined ? accept(true, ...countUser(throttle, user).writes) : accept(false),
      )
      if (isNew) await store.transact(throttleKind, users.key, (throttle) => countUser(throttle, users))
    },
  }
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
