import type { FastifyInstance, FastifyReply } from 'fastify'
import { endSession, insert, type Write } from '../domain/decision.ts'
import type { Seconds, Session, User, UserCredentials } from '../domain/model.ts'
import type { Needs } from '../feature/deps.ts'
import { addressPrefix } from '../http/address-prefix.ts'
import { beginSession, continueSession, selectSessions } from '../users/rules/session.ts'
import { browserName } from '../users/sessions.ts'

/** Whose session begins, and by which methods, RFC 8176. */
interface Beginning {
  readonly user: Pick<User, 'id'>
  readonly methods: readonly string[]
  /** The session in which the password was typed, if it is stepped up: the new one ends with it at the latest. */
  readonly continues?: Pick<Session, 'authenticatedAt' | 'expiresAt'>
}

/** A session that begins in a browser: what to write, and how the browser gets it once that is written. */
export interface BegunSession {
  readonly session: Session
  readonly writes: readonly Write[]
  keep(current: Omit<UserCredentials, 'sessions'>): Promise<void>
}

/** Begins sessions, each with a new identifier; those of other users in the same browser stay. */
export function sessionBeginner(app: FastifyInstance, { config }: Needs<'config'>) {
  return async (
    reply: FastifyReply,
    { user, methods, continues }: Beginning,
    now: Seconds,
  ): Promise<BegunSession> => {
    const { secret, id } = app.browser.mintSession()
    const fresh = beginSession(id, user.id, methods, config.lifetimes, now, await placeOf(reply))
    const session = continues === undefined ? fresh : continueSession(fresh, continues)
    const { beside, over } = selectSessions(await app.browser.sessions(reply.request, now), user.id)
    return {
      session,
      writes: [
        insert('session', session),
        // A session of the same user goes on in the new one: signing in again signs them out of no app.
        ...over.map((ended) => endSession(ended.id, now, ended.userId === user.id ? session : undefined)),
      ],
      keep: async (current) => {
        app.browser.keepSession(reply, secret, beside)
        app.languageChoice.follow?.(reply, current.user)
        await app.browser.keepKnownBrowser(reply, { ...current, ...current.user })
      },
    }
  }
}

async function placeOf({ request }: FastifyReply): Promise<Pick<Session, 'browser' | 'from'>> {
  const browser = await browserName(request.headers['user-agent'])
  return { from: addressPrefix(request.ip), ...(browser !== undefined && { browser }) }
}
