import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import type { Seconds, User } from '../../domain/model.ts'
import { userContext } from '../../http/address-prefix.ts'
import { canonicalLogin } from '../../users/rules/user.ts'
import { passwordAttempts } from '../../users/throttling.ts'

/** What the user typed, and the client that requested the sign-in, if any. */
export interface Credentials {
  readonly username: string
  readonly password: string
  readonly clientId?: string
}

/**
 * Checks a user name and password, counted and throttled. An unknown user takes as long as a wrong password, and
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
  ): Promise<User | undefined> => {
    const login = canonicalLogin(username)
    const user = login === undefined ? undefined : await store.find('userByLogin', login)
    const isRight = await isPassword(request, { user, login, password }, now)
    if (!isRight || user === undefined) {
      // Not the name: users type their password into that field.
      const who = { ...client, ...(user && { userId: user.id }) }
      await store.write(auditEvent('sign-in-failed', userContext(request, now), who))
      return undefined
    }
    return user
  }
}
