import type { FastifyInstance, FastifyRequest } from 'fastify'
import { endSession } from '../domain/decision.ts'
import type { Seconds, Session, User } from '../domain/model.ts'
import type { AppDeps } from '../feature/deps.ts'

/** The user of a browser, and their session. */
export interface SignedIn {
  readonly session: Session
  readonly user: User
}

/**
 * Finds who is signed in; undefined if the user has to sign in. A session that outlived its user is ended, because it
 * would only lead to the same page again.
 */
export async function findSignedIn(
  app: FastifyInstance,
  { store }: Pick<AppDeps, 'store'>,
  request: FastifyRequest,
  now: Seconds,
): Promise<SignedIn | undefined> {
  const session = await app.browser.session(request, now)
  if (session === undefined) return undefined
  const user = await store.find('user', session.userId)
  if (user !== undefined && user.lockedAt === undefined) return { session, user }
  await store.write(endSession(session.id, now))
  return undefined
}
