import { type Static, Type } from '@sinclair/typebox'
import { auditEvent } from '../../domain/audit.ts'
import { accept, remove } from '../../domain/decision.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { senderOf } from '../../outbound/mailer.ts'
import { createInvitation } from '../../pages/emails/invitation.ts'
import { waysToSignIn } from '../../users/factors.ts'
import { describeLink, findLinkOf, linksOf } from '../../users/one-time-links.ts'
import { linkKinds } from '../../users/rules/one-time-link.ts'
import { isAwaited } from '../../users/rules/upstream-link.ts'
import { findUser, listed, type Operation, pageOfAll } from './operation.ts'
import { assertSent, conflict, requireFound } from './rules.ts'
import { Invitation, LinkResource, listQuery, nothing, pageOf } from './schema.ts'

const NewLink = Type.Object(
  {
    purpose: Type.Union([Type.Literal('invitation'), Type.Literal('password-reset')]),
    send: Type.Optional(
      Type.Boolean({ description: 'false: the response has the link, even if emails can be sent.' }),
    ),
  },
  { title: 'NewLink', additionalProperties: false },
)

export const listLinks: Operation = {
  operationId: 'listLinks',
  area: 'users',
  kind: 'list',
  url: '/users/:sub/links',
  delegates: false,
  summary: 'List the one-time links of a user that can be used',
  response: pageOf(LinkResource, 'Links'),
  querystring: listQuery({}),
  async perform(call) {
    const { store, clock } = call.deps
    const all = await linksOf(store, (await findUser(call)).id, clock())
    const keyOf = ({ id }: (typeof all)[number]) => id
    return listed(call, async (page) => pageOfAll(all, keyOf, page), keyOf, describeLink)
  },
}

export const createLink: Operation<Static<typeof NewLink>> = {
  operationId: 'createLink',
  area: 'users',
  kind: 'create',
  url: '/users/:sub/links',
  delegates: true,
  personalTokens: 'rejected',
  summary: 'Create a link with which a user sets a passkey or a password; it is sent, or shown once',
  response: Invitation,
  body: NewLink,
  async perform({ param, deps, log, store, isDelegate, body: { purpose, send = true }, context }, keep) {
    const userId = param('sub')
    const invitation = await store.transact(waysToSignIn, userId, (found) => {
      const ways = requireFound(found, 'user')
      const { user } = ways
      if (isDelegate) assertSent(send && senderOf(deps.config) !== undefined && user.email !== undefined)
      if (user.lockedAt !== undefined) throw conflict('the user is locked; unlock them first')
      if (purpose === 'invitation' && !isAwaited(ways))
        throw conflict('the user can sign in already; a link for a password-reset lets them begin again')
      const made = createInvitation(deps, user, send, context, purpose)
      const kept = { status: 201, body: { expires_at: made.expiresAt }, headers: {}, userId }
      return accept(made, ...made.writes, ...keep(kept))
    })
    const { link, ...delivered } = await invitation.deliver(log)
    return { status: 201, body: { ...delivered, ...(!isDelegate && omitUndefined({ link })) }, headers: {} }
  },
}

export const deleteLink: Operation = {
  operationId: 'deleteLink',
  area: 'users',
  kind: 'end',
  url: '/users/:sub/links/:link_id',
  delegates: false,
  summary: 'Delete a link, so that it cannot be used',
  response: nothing,
  async perform({ param, deps, store, context }) {
    const [userId, id] = [param('sub'), param('link_id')]
    const { purpose } = requireFound(await findLinkOf(deps.store, userId, id), 'link')
    await store.transact(linkKinds[purpose], id, (found) => {
      requireFound(found, 'link')
      const event = auditEvent('link-deleted', context, { userId, purpose })
      return accept(undefined, remove(linkKinds[purpose], id), event)
    })
    return undefined
  },
}
