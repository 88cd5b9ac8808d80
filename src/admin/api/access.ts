import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { endConnection } from '../../domain/connections.ts'
import { accept, endSession, remove } from '../../domain/decision.ts'
import type { Session } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { senderOf } from '../../outbound/mailer.ts'
import { createInvitation } from '../../pages/emails/invitation.ts'
import { describeLink, findLinkOf, linksOf } from '../../users/one-time-links.ts'
import { linkKinds } from '../../users/rules/one-time-link.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import type { Page } from '../operations/operation.ts'
import { pageOfAll } from '../operations/operation.ts'
import { assertSent, conflict, requireFound } from '../operations/rules.ts'
import { Invitation, LinkResource, listQuery, pageOf, SessionResource } from '../operations/schema.ts'
import { userActs } from '../operations/user-acts.ts'
import { describeSession, listGrants, listSessions } from '../operations/user-reads.ts'
import { pageOfTheirs } from './member-pages.ts'
import { addOperation, operationsOf } from './operation.ts'
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
  const { list, page, create, end } = operationsOf(app, deps, 'users')
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

  for (const operation of [listSessions, listGrants, ...Object.values(userActs)])
    addOperation(app, deps, operation)
}
