import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { canonicalLogin } from '../domain/account.ts'
import { addressPrefix } from '../domain/address-prefix.ts'
import { auditEvent } from '../domain/audit.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Account, Seconds } from '../domain/model.ts'
import { type Bucket, bucketsOf, countAttempt, refundAttempt } from '../domain/sign-in-throttle.ts'
import { PasswordQueueFull } from '../passwords.ts'

/** What somebody typed, and the client that asked them to, if one did. */
export interface Credentials {
  readonly username: string
  readonly password: string
  readonly clientId?: string
}

/**
 * Checks a user name and password, counted and throttled. An unknown person takes as long as a wrong password, and
 * both look the same.
 * @throws {OAuthError} `temporarily_unavailable`: 429 when throttled, 503 when too many checks are waiting.
 */
export function passwordSignIn(app: FastifyInstance, { config, store, checkPassword }: AppDeps) {
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    { username, password, ...client }: Credentials,
    now: Seconds,
  ): Promise<Account | undefined> => {
    const login = canonicalLogin(username)
    const account = login === undefined ? undefined : await store.find('accountByLogin', login)
    const device = app.browser.device(request)
    const known = device !== undefined && device.accountId === account?.id ? device.nonce : undefined
    // An alias counts as the account it leads to; a name nobody has counts too, or the throttle would tell.
    const name = account?.id ?? login ?? ''
    const buckets = bucketsOf(name, addressPrefix(request.ip), known, config.signInThrottle)
    const counted: Bucket[] = []
    const refund = async () => {
      for (const { key } of counted) await store.transact('throttle', key, refundAttempt)
    }
    let isRight: boolean
    try {
      for (const bucket of buckets) {
        await store.transact('throttle', bucket.key, (throttle) =>
          countAttempt(throttle, bucket, config.signInThrottle, now),
        )
        counted.push(bucket)
      }
      isRight = await checkPassword(password, account?.passwordHash)
    } catch (error) {
      // An attempt nobody looked at has not failed.
      await refund()
      throw error instanceof PasswordQueueFull ? busy(error) : error
    }
    if (!isRight || account === undefined) {
      // Not the name: people type their password into that field.
      const who = { ...client, ...(account && { accountId: account.id }) }
      await store.write(auditEvent('sign-in-failed', { by: 'person', at: now, from: request.ip }, who))
      return undefined
    }
    await refund()
    app.browser.keepDevice(reply, account.id)
    return account
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
