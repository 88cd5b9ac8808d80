import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { accept, endSession, endSessionsOf } from '../../domain/decision.ts'
import type { Seconds, Session } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { ago, placeOf } from '../describe.ts'
import type { AccountModel, AccountPage, Visit } from './account-page.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-sessions': AccountModel & {
      /** The session of this browser first. */
      readonly sessions: readonly KnownSession[]
    }
  }
}

interface KnownSession {
  /** What a form sends to name it. */
  readonly handle: string
  /** Whether it is the session of this browser. */
  readonly here: boolean
  /** "Firefox, Linux"; absent when the browser did not say. */
  readonly browser?: string
  readonly from?: Text
  readonly signedInAgoSeconds: Seconds
  readonly ways: readonly (typeof ways)[number][1][]
}

/** RFC 8176 references, and what users call them. */
const ways = [
  ['pop', 'passkey'],
  ['pwd', 'password'],
  ['otp', 'code'],
] as const

/** Where a user is signed in. Ends one other session, or all others. */
export function sessionsPage(_app: FastifyInstance, { service, store }: PageDeps): AccountPage {
  const describe = (session: Session, visit: Visit): KnownSession => {
    const from = placeOf(session.from, visit.request, service)
    return {
      handle: visit.handleOf(session.id),
      here: session.id === visit.session.id,
      ...(session.browser !== undefined && { browser: session.browser }),
      ...(from !== undefined && { from }),
      signedInAgoSeconds: ago(session.authenticatedAt, visit.now),
      ways: ways.flatMap(([method, way]) => (session.methods.includes(method) ? [way] : [])),
    }
  }

  return {
    path: '/account/sessions',
    section: 'sessions',
    show: async (visit) => {
      const sessions = await store.listOf('session', visit.user.id)
      const live = sessions.filter((session) => isSessionLive(session, visit.now))
      const newestFirst = live.map((session) => describe(session, visit)).reverse()
      return visit.render('account-sessions', {
        sessions: newestFirst.sort((one, other) => Number(other.here) - Number(one.here)),
      })
    },
    submit: async ({ user, session, form, context, handleOf, done }) => {
      const userId = user.id
      const event = (which: 'one' | 'others') => auditEvent('session-ended', context, { userId, which })
      const others = (await store.listOf('session', userId)).filter(({ id }) => id !== session.id)
      if (single(form, 'others') !== undefined) {
        const isNews = others.some((other) => isSessionLive(other, context.at))
        const ends = endSessionsOf(userId, context.at, session.id)
        await store.write(ends, ...(isNews ? [event('others')] : []))
        return done('sessions-ended')
      }
      const wanted = single(form, 'session')
      const other = others.find(({ id }) => handleOf(id) === wanted)
      if (other === undefined) return done('gone')
      const isEnded = await store.transact('session', other.id, (found) =>
        found === undefined ? accept(false) : accept(true, endSession(other.id, context.at), event('one')),
      )
      return done(isEnded ? 'session-ended' : 'gone')
    },
  }
}
