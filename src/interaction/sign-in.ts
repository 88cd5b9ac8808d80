import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { canonicalLogin } from '../domain/account.ts'
import { addressPrefix } from '../domain/address-prefix.ts'
import type { Account, Seconds } from '../domain/model.ts'
import { bucketsOf, countAttempt, refundAttempt } from '../domain/sign-in-throttle.ts'

/**
 * Checks a user name and password, counted and throttled. An unknown person takes as long as a wrong password, and
 * both look the same.
 * @throws {OAuthError} `temporarily_unavailable`: 429 when throttled, 503 when too many checks are waiting.
 */
export function passwordSignIn(app: FastifyInstance, { config, store, checkPassword }: AppDeps) {
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    username: string,
    password: string,
    now: Seconds,
  ): Promise<Account | undefined> => {
    const login = canonicalLogin(username)
    const account = login === undefined ? undefined : await store.find('accountByLogin', login)
    const device = app.browser.device(request)
    const known = device !== undefined && device.accountId === account?.id ? device.nonce : undefined
    // An alias counts as the account it leads to; a name nobody has counts too, or the throttle would tell.
    const counted = account?.id ?? login ?? ''
    const buckets = bucketsOf(counted, addressPrefix(request.ip), known, config.signInThrottle)
    for (const bucket of buckets) {
      await store.transact('throttle', bucket.key, (throttle) =>
        countAttempt(throttle, bucket, config.signInThrottle, now),
      )
    }
    if (!(await checkPassword(password, account?.passwordHash)) || account === undefined) return undefined
    for (const { key } of buckets) await store.transact('throttle', key, refundAttempt)
    app.browser.keepDevice(reply, account.id)
    return account
  }
}
