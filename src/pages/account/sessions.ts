import type { FastifyInstance } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import { accept, remove } from '../../domain/decision.ts'
import type { Session } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import { addressPrefix, userContext } from '../../http/address-prefix.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { fromPlace } from '../i18n/place.ts'
import { ownPages, type Visit } from '../own-pages.ts'
import type { KnownSession, WayIn } from './models.ts'

/** Where a user is signed in, and ending it: one other browser, or all others. Signing out here is its own page. */
export function ownSessions(app: FastifyInstance, { service, store, clock }: AppDeps): void {
  const { visit, submission, back } = ownPages(app, { service, store, clock })
  const action = `${service.prefix}/account/sessions`

  app.get('/account/sessions', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, { section: 'sessions' })
    if (here === undefined) return reply
    const { user, now, frame, hidden } = here
    const live = (await store.listOf('session', user.id)).filter((session) => isSessionLive(session, now))
    const described = live.map((session) => describe(session, here, request.ip))
    // This one first, then the newest.
    const sessions = described.reverse().sort((one, other) => Number(other.here) - Number(one.here))
    return reply.page('account-sessions', { frame, action, hidden, sessions })
  })

  app.post('/account/sessions', { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply, { section: 'sessions' })
    if (here === undefined) return reply
    const { user, session, now, form } = here
    const { id: userId } = user
    const event = (which: string) => auditEvent('session-ended', userContext(request, now), { userId, which })
    if (single(form, 'others') !== undefined) {
      await store.write({ op: 'deleteSessionsOf', userId, except: session.id }, event('others'))
      return back(reply, 'sessions-ended')
    }
    const wanted = single(form, 'session')
    const others = (await store.listOf('session', userId)).filter(({ id }) => id !== session.id)
    const other = others.find(({ id }) => here.handleOf(id) === wanted)
    if (other === undefined) return back(reply, 'gone')
    const ended = await store.transact('session', other.id, (found) =>
      found === undefined ? accept(false) : accept(true, remove('session', other.id), event('one')),
    )
    return back(reply, ended ? 'session-ended' : 'gone')
  })

  const describe = (session: Session, visitor: Visit, address: string): KnownSession => {
    const from =
      session.from === undefined ? undefined : fromPlace(session.from, addressPrefix(address), !service.https)
    return {
      handle: visitor.handleOf(session.id),
      here: session.id === visitor.session.id,
      ...(session.browser !== undefined && { browser: session.browser }),
      ...(from !== undefined && { from }),
      signedInAgoSeconds: Math.max(1, visitor.now - session.authenticatedAt),
      ways: waysOf(session.methods),
    }
  }
}

/** RFC 8176 references as users know them. */
function waysOf(methods: readonly string[]): readonly WayIn[] {
  const ways: readonly (readonly [string, WayIn])[] = [
    ['pop', 'passkey'],
    ['pwd', 'password'],
    ['otp', 'code'],
  ]
  return ways.flatMap(([method, way]) => (methods.includes(method) ? [way] : []))
}
