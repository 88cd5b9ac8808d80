import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import { accept, insert, remove, update } from '../../domain/decision.ts'
import { interactionKind } from '../../domain/interaction.ts'
import type { Seconds, Session, User, UserCredentials } from '../../domain/model.ts'
import { addressPrefix, userContext } from '../../http/address-prefix.ts'
import { userCredentials } from '../../users/factors.ts'
import { beginSession, continueSession, selectSessions } from '../../users/rules/session.ts'
import { browserName } from '../../users/sessions.ts'
import { clientOf, interactionExpired, type Pending } from './pending.ts'

/** What a sign-in rests on. It counts only if all of it still stands once the session is there. */
export interface LoginProof {
  /** The user, with the password hash that was met or was there when the rest was shown. */
  readonly user: User
  /** RFC 8176 references of all that was shown. */
  readonly methods: readonly string[]
  readonly passkeyId?: string
  /** The seal of the one-time codes' secret. */
  readonly sealedSecret?: string
  /** The session the password was shown in, where that was not now: this one ends with it at the latest. */
  readonly continues?: Pick<Session, 'authenticatedAt' | 'expiresAt'>
}

/**
 * Begins the login of a user: a new session identifier at every sign-in, beside those of other people in this
 * browser. False, and no session, when something it rests on ended after it was looked at, or the user is locked
 * out: what ends a factor ends its sessions, and this one would outlive it.
 */
export function sessionStarter(app: FastifyInstance, deps: AppDeps) {
  const { config, store } = deps

  return async (pending: Pending, proof: LoginProof, reply: FastifyReply, now: Seconds): Promise<boolean> => {
    const { user, methods, continues } = proof
    const { secret, id } = app.browser.mintSession()
    const fresh = beginSession(id, user.id, methods, config.lifetimes, now, await placeOf(reply))
    const session = continues === undefined ? fresh : continueSession(fresh, continues)
    const signedIn = await app.browser.sessions(reply.request, now)
    const { beside, over } = selectSessions(signedIn, user.id)
    await insertSession(pending, session, over)
    const context = userContext(reply.request, now)
    const who = { userId: user.id, ...clientOf(pending) }
    const isKept = await store.transact(userCredentials, user.id, (current) =>
      isCurrent(proof, current)
        ? accept(true, auditEvent('sign-in', context, { ...who, methods: methods.join(' ') }))
        : accept(false),
    )
    if (isKept) {
      app.browser.keepSession(reply, secret, beside)
      await app.browser.keepKnownBrowser(reply, user)
      return true
    }
    await store.write(remove('session', id), auditEvent('sign-in-failed', context, who))
    return false
  }

  async function insertSession({ interaction }: Pending, session: Session, over: readonly Session[]) {
    await store.transact(interactionKind, interaction.id, (current) => {
      if (current === undefined) throw interactionExpired()
      const { pendingSecondFactor: _, challenge: __, ...rest } = current
      const next = { ...rest, authenticatedSessionId: session.id, userChosen: true }
      return accept(
        undefined,
        insert('session', session),
        update(interactionKind, next),
        ...over.map(({ id }) => remove('session', id)),
      )
    })
  }
}

/**
 * Whether the user is not locked and still has every factor of the sign-in. What removes a factor ends the sessions that
 * exist by then, under the same lock, so the session has to be inserted before this is asked.
 */
function isCurrent(proof: LoginProof, current: UserCredentials | undefined): boolean {
  const { user, passkeyId, sealedSecret } = proof
  if (current === undefined || current.user.lockedAt !== undefined) return false
  if (current.user.passwordHash !== user.passwordHash) return false
  if (passkeyId !== undefined && !current.passkeys.some(({ id }) => id === passkeyId)) return false
  return sealedSecret === undefined || current.secondFactor?.sealedSecret === sealedSecret
}

async function placeOf({ request }: FastifyReply): Promise<Pick<Session, 'browser' | 'from'>> {
  const browser = await browserName(request.headers['user-agent'])
  return { from: addressPrefix(request.ip), ...(browser !== undefined && { browser }) }
}
