import { auditEvent } from '../../domain/audit.ts'
import { accept, endSession as endsSession } from '../../domain/decision.ts'
import type { Session } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { Store } from '../../storage/store.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { pageOfTheirs } from './member-pages.ts'
import { findUser, listed, type Operation, type Page, pageOfAll } from './operation.ts'
import { requireFound } from './rules.ts'
import { listQuery, nothing, pageOf, SessionResource } from './schema.ts'
import { pageOfWalk } from './walk.ts'

const idOf = ({ id }: Session) => id

export const listAllSessions: Operation = {
  operationId: 'listAllSessions',
  area: 'users',
  kind: 'list',
  url: '/sessions',
  delegates: true,
  summary: 'List the browsers in which users are signed in, in the order of the ids of the sessions',
  response: pageOf(SessionResource, 'AllSessions'),
  querystring: listQuery({}),
  async perform(call) {
    const { store, clock } = call.deps
    const describe = async (one: Session) =>
      isSessionLive(one, clock()) ? describeSession(store, one) : undefined
    const reach = await call.reach()
    if (reach !== undefined) {
      const sessionsOf = async (userId: string, { after }: Page) => ({
        rows: pageOfAll(await store.listOf('session', userId), idOf, { size: Infinity, after }),
      })
      return pageOfTheirs(call, store, reach, sessionsOf, describe)
    }
    const read = async ({ size, after = '' }: Page) => {
      const rows = await store.sessionsFrom({ after, limit: size })
      const next = rows.length < size ? undefined : rows.at(-1)?.id
      return { rows: rows.map((row) => ({ key: row.id, row })), next }
    }
    return pageOfWalk(call, read, describe)
  },
}

export const readSession: Operation = {
  operationId: 'readSession',
  area: 'users',
  kind: 'read',
  url: '/sessions/:session_id',
  delegates: false,
  summary: 'Read a session: in which browser, and whose',
  response: SessionResource,
  async perform({ deps, param }) {
    const session = await deps.store.find('session', param('session_id'))
    const isLive = session !== undefined && isSessionLive(session, deps.clock())
    return { body: await describeSession(deps.store, requireFound(isLive ? session : undefined, 'session')) }
  },
}

export const listSessions: Operation = {
  operationId: 'listSessions',
  area: 'users',
  kind: 'list',
  url: '/users/:sub/sessions',
  delegates: true,
  summary:
    'List the browsers in which a user is signed in, in the order of their ids; networks, not addresses',
  response: pageOf(SessionResource, 'Sessions'),
  querystring: listQuery({}),
  async perform(call) {
    const { store, clock } = call.deps
    const all = await store.listOf('session', (await findUser(call)).id)
    const live = all.filter((one) => isSessionLive(one, clock()))
    return listed(
      call,
      async (page) => pageOfAll(live, idOf, page),
      idOf,
      (one) => describeSession(store, one),
    )
  },
}

export const endSession: Operation = {
  operationId: 'endSession',
  area: 'users',
  kind: 'end',
  url: '/users/:sub/sessions/:session_id',
  delegates: true,
  summary: 'End a session; grants to clients stay valid',
  response: nothing,
  async perform({ param, store, context }) {
    const [userId, sessionId] = [param('sub'), param('session_id')]
    await store.transact('session', sessionId, (found) => {
      requireFound(found?.userId === userId ? found : undefined, 'session')
      const event = auditEvent('session-ended', context, { userId, which: 'one' })
      return accept(undefined, endsSession(sessionId, context.at), event)
    })
    return undefined
  },
}

/** Describes a session. Its id is the hash of the cookie, and no credential. */
async function describeSession(store: Pick<Store, 'find'>, session: Session) {
  const { id, userId, browser, from, methods, authenticatedAt, createdAt, ...ends } = session
  const { username } = (await store.find('user', userId)) ?? {}
  return {
    session_id: id,
    sub: userId,
    ...omitUndefined({ username, browser, from }),
    authenticated_at: authenticatedAt,
    amr: methods,
    created_at: createdAt,
    ends_at: Math.min(ends.idleExpiresAt, ends.expiresAt),
  }
}
