import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { canonicalLogin } from '../domain/account.ts'
import { auditEvent } from '../domain/audit.ts'
import type { Account, Seconds } from '../domain/model.ts'
import { passwordAttempts } from '../http/password-attempts.ts'

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
export function passwordSignIn(app: FastifyInstance, deps: AppDeps) {
  const { store } = deps
  const isPassword = passwordAttempts(app, deps)
  return async (
    request: FastifyRequest,
    { username, password, ...client }: Credentials,
    now: Seconds,
  ): Promise<Account | undefined> => {
    const login = canonicalLogin(username)
    const account = login === undefined ? undefined : await store.find('accountByLogin', login)
    const isRight = await isPassword(request, { account, login, password }, now)
    if (!isRight || account === undefined) {
      // Not the name: people type their password into that field.
      const who = { ...client, ...(account && { accountId: account.id }) }
      await store.write(auditEvent('sign-in-failed', { by: 'person', at: now, from: request.ip }, who))
      return undefined
    }
    return account
  }
}
