import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { addressPrefix } from '../domain/address-prefix.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Account, Seconds } from '../domain/model.ts'
import { bucketsOf } from '../domain/sign-in-throttle.ts'
import { PasswordQueueFull } from '../passwords.ts'
import { throttled } from './throttled.ts'

/** A password somebody typed, and whose it should be. */
export interface PasswordAttempt {
  readonly account: Account | undefined
  /** What was typed for a person there is not: it counts too, or the throttle would tell. */
  readonly login?: string | undefined
  readonly password: string
}

/**
 * Checks a password, counted and throttled wherever somebody types one; only what was looked at and wrong stays
 * counted. A person there is not takes as long as a wrong password.
 * @throws {OAuthError} `temporarily_unavailable`: 429 when throttled, 503 when too many checks are waiting.
 */
export function passwordAttempts(
  app: FastifyInstance,
  { config, store, checkPassword }: Pick<AppDeps, 'config' | 'store' | 'checkPassword'>,
) {
  return async (
    request: FastifyRequest,
    { account, login, password }: PasswordAttempt,
    now: Seconds,
  ): Promise<boolean> => {
    const device = app.browser.device(request)
    const known = device !== undefined && device.accountId === account?.id ? device.nonce : undefined
    // An alias counts as the account it leads to.
    const name = account?.id ?? login ?? ''
    const buckets = bucketsOf(name, addressPrefix(request.ip), known, config.signInThrottle)
    const isRight = await throttled(store, buckets, config.signInThrottle, now, async () => {
      try {
        return (await checkPassword(password, account?.passwordHash)) || undefined
      } catch (error) {
        throw error instanceof PasswordQueueFull ? busy(error) : error
      }
    })
    return isRight ?? false
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
