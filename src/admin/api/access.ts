import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { endConnection } from '../../domain/connections.ts'
import { accept, type Decision, endSession, remove, withWrites } from '../../domain/decision.ts'
import type { Session, User, UserCredentials } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { senderOf } from '../../outbound/mailer.ts'
import { createInvitation } from '../../pages/emails/invitation.ts'
import { keepAdministrator } from '../../users/administrators.ts'
import { userCredentials } from '../../users/factors.ts'
import { describeLink, findLinkOf, linksOf } from '../../users/one-time-links.ts'
import {
  endAllAccess,
  endSessions,
  everyConnection,
  removeCodes,
  removePasskeys,
} from '../../users/rules/access.ts'
import { linkKinds } from '../../users/rules/one-time-link.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { pageOfTheirs } from './member-pages.ts'
import { type Call, operationsOf, type Page, pageOfAll } from './operation.ts'
import { assertSent, conflict, describeFor, requireFound, tagOfUser } from './rules.ts'
import {
  ConnectionResource,
  Invitation,
  LinkResource,
  listQuery,
  pageOf,
  SessionResource,
  UserResource,
} from './schema.ts'
import { pageOfWalk } from './walk.ts'

const NewLink = Type.Object(
  {
    purpose: Type.Union([Type.Literal('invitation'), Type.Literal('password-reset')]),
    send: Type.Optional(
      Type.Boolean({ description: 'false: the response has the link, even if emails can be sent.' }),
    ),
  },
  { title: 'NewLink', additionalProperties: false },
)
/** The sessions, links and grants of a user, and what ends all of a kind. */
export const accessResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, store, clock } = deps
  const { list, page, create, act, end } = operationsOf(app, deps, 'users')
  const requireUser = async (id: string) => requireFound(await store.find('user', id), 'user')
  const querystring = listQuery({})

  page(
    '/sessions',
    {
      operationId: 'listAllSessions',
      delegates: true,
      summary: 'List the browsers in which users are signed in, in the order of the ids of the sessions',
      response: pageOf(SessionResource, 'AllSessions'),
      querystring,
    },
    async (call) => {
      const describe = async (one: Session) =>
        isSessionLive(one, clock()) ? describeSession(one) : undefined
      const reach = await app.administration.reachFor(call.request)
      if (reach !== undefined) {
        const sessionsOf = async (userId: string, { after }: Page) => {
          const rows = pageOfAll(await store.listOf('session', userId), ({ id }) => id, {
            size: Infinity,
            after,
          })
          return { rows }
        }
        return pageOfTheirs(call, store, reach, sessionsOf, describe)
      }
      const read = async ({ size, after = '' }: Page) => {
        const rows = await store.sessionsFrom({ after, limit: size })
        const next = rows.length < size ? undefined : rows.at(-1)?.id
        return { rows: rows.map((row) => ({ key: row.id, row })), next }
      }
      return pageOfWalk(call, read, describe)
    },
  )
  list(
    '/users/:sub/sessions',
    {
      operationId: 'listSessions',
      delegates: true,
      summary:
        'List the browsers in which a user is signed in, in the order of their ids; networks, not addresses',
      response: pageOf(SessionResource, 'Sessions'),
      querystring,
    },
    async (page, { param }) => {
      const { id } = await requireUser(param('sub'))
      const live = (await store.listOf('session', id)).filter((one) => isSessionLive(one, clock()))
      return pageOfAll(live, (one) => one.id, page)
    },
    ({ id }) => id,
    describeSession,
  )
  end(
    '/users/:sub/sessions/:session_id',
    { operationId: 'endSession', delegates: true, summary: 'End a session; grants to clients stay valid' },
    async ({ param, store, context }) => {
      const [userId, sessionId] = [param('sub'), param('session_id')]
      await store.transact('session', sessionId, (found) => {
        requireFound(found?.userId === userId ? found : undefined, 'session')
        const event = auditEvent('session-ended', context, { userId, which: 'one' })
        return accept(undefined, endSession(sessionId, context.at), event)
      })
    },
  )

  list(
    '/users/:sub/grants',
    {
      operationId: 'listGrants',
      delegates: true,
      summary: 'List the clients that have valid grants of a user, or a remembered consent',
      response: pageOf(ConnectionResource, 'Grants'),
      querystring,
    },
    async (page, { param }) => {
      const { id } = await requireUser(param('sub'))
      const { page: all } = await store.connections(id, { now: clock(), limit: everyConnection, offset: 0 })
      return pageOfAll(all, (one) => one.clientId, page)
    },
    ({ clientId }) => clientId,
    ({ clientId, grants, remembered }) => ({ client_id: clientId, grants, remembered }),
  )
  end(
    '/users/:sub/grants/:client_id',
    {
      operationId: 'revokeGrants',
      delegates: true,
      summary: 'Revoke everything that a user granted to a client',
    },
    async ({ param, store, context }) => {
      const [userId, clientId] = [param('sub'), param('client_id')]
      await store.transact('user', userId, (user) => {
        requireFound(user, 'user')
        return accept(undefined, ...endConnection({ clientId }, { ...context, userId }))
      })
    },
  )

  list(
    '/users/:sub/links',
    {
      operationId: 'listLinks',
      summary: 'List the one-time links of a user that can be used',
      response: pageOf(LinkResource, 'Links'),
      querystring,
    },
    async (page, { param }) => {
      const { id } = await requireUser(param('sub'))
      return pageOfAll(await linksOf(store, id, clock()), (one) => one.id, page)
    },
    ({ id }) => id,
    describeLink,
  )
  create(
    '/users/:sub/links',
    {
      operationId: 'createLink',
      delegates: true,
      summary: 'Create a link with which a user sets a password; it is sent, or shown once',
      response: Invitation,
      body: NewLink,
    },
    async ({ param, request, store, isDelegate, body: { purpose, send = true }, context }, keep) => {
      const userId = param('sub')
      const invitation = await store.transact('user', userId, (found) => {
        const user = requireFound(found, 'user')
        if (isDelegate) assertSent(send && senderOf(config) !== undefined && user.email !== undefined)
        if (user.lockedAt !== undefined) throw conflict('the user is locked; unlock them first')
        if (purpose === 'invitation' && user.passwordHash !== undefined)
          throw conflict('the user has a password; a link for a password-reset sets a new one')
        const made = createInvitation(deps, user, send, context, purpose)
        const kept = { status: 201, body: { expires_at: made.expiresAt }, headers: {}, userId }
        return accept(made, ...made.writes, ...keep(kept))
      })
      const { link, ...delivered } = await invitation.deliver(request.log)
      return { status: 201, body: { ...delivered, ...(!isDelegate && omitUndefined({ link })) }, headers: {} }
    },
  )
  end(
    '/users/:sub/links/:link_id',
    { operationId: 'deleteLink', summary: 'Delete a link, so that it cannot be used' },
    async ({ param, store: writing, context }) => {
      const [userId, id] = [param('sub'), param('link_id')]
      const link = requireFound(await findLinkOf(store, userId, id), 'link')
      const facts = { userId, purpose: link.purpose }
      await writing.write(remove(linkKinds[link.purpose], id), auditEvent('link-deleted', context, facts))
    },
  )

  onUser(
    'sign-out',
    {
      operationId: 'signOutUser',
      delegates: true,
      summary: 'End every session of a user; grants to clients stay valid',
    },
    async ({ context, param }) => {
      const sessions = await store.listOf('session', param('sub'))
      return ({ user }) => endSessions(user, sessions, context)
    },
  )
  onUser(
    'remove-codes',
    { operationId: 'removeCodes', summary: 'Remove the one-time codes of a user, and end every session' },
    async ({ context }) =>
      ({ user }) =>
        removeCodes(user, context),
  )
  onUser(
    'remove-passkeys',
    { operationId: 'removePasskeys', summary: 'Remove every passkey of a user, and end every session' },
    async ({ context }) =>
      (current) =>
        keepAdministrator(removePasskeys(current, context), config.admin.group, context.at),
  )
  onUser(
    'revoke',
    {
      operationId: 'revokeUser',
      delegates: true,
      summary: 'End every session of a user, and revoke everything they granted',
    },
    async ({ context, param }) => {
      const now = clock()
      const sub = param('sub')
      const { page } = await store.connections(sub, { now, limit: everyConnection, offset: 0 })
      const sessions = await store.listOf('session', sub)
      return ({ user }) => endAllAccess(user, sessions, page, context)
    },
  )

  /** Adds what ends all of a kind for a user, who may sign in again. */
  function onUser(
    path: string,
    described: { readonly operationId: string; readonly summary: string; readonly delegates?: true },
    decideFor: (call: Call) => Promise<(current: UserCredentials) => Decision<unknown>>,
  ): void {
    act(`/users/:sub/${path}`, { ...described, response: UserResource }, async (call, keep) => {
      const userId = call.param('sub')
      const decide = await decideFor(call)
      return call.store.transact(userCredentials, userId, (found) => {
        const current = requireFound(found, 'user')
        const kept = responseOf(call, current.user)
        return accept(kept, ...withWrites(decide(current), ...keep(kept)).writes)
      })
    })
  }
}

function responseOf(call: { readonly isDelegate: boolean }, user: User) {
  return { status: 200, body: describeFor(call, user), headers: { etag: tagOfUser(user) }, userId: user.id }
}

/** Describes a session. Its id is the hash of the cookie, and no credential. */
function describeSession({
  id,
  userId,
  browser,
  from,
  methods,
  authenticatedAt,
  createdAt,
  ...ends
}: Session) {
  return {
    session_id: id,
    sub: userId,
    ...omitUndefined({ browser, from }),
    authenticated_at: authenticatedAt,
    amr: methods,
    created_at: createdAt,
    ends_at: Math.min(ends.idleExpiresAt, ends.expiresAt),
  }
}
