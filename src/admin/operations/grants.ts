import { Type } from '@sinclair/typebox'
import { revokeGrantsTo } from '../../clients/grants.ts'
import { describeGrant, endConnection, endGrant } from '../../domain/connections.ts'
import { isLoss } from '../../domain/current-grant.ts'
import { accept, withWrites } from '../../domain/decision.ts'
import type { Grant } from '../../domain/model.ts'
import { leftOfSubjects } from '../../http/token-reader.ts'
import { everyConnection } from '../../users/rules/operator-acts.ts'
import { isSeen, pageOfTheirs } from './member-pages.ts'
import { type Call, findUser, listed, type Operation, type Page, pageOfAll } from './operation.ts'
import { requireFound, requireWithin, storedKey } from './rules.ts'
import { ConnectionResource, GrantResource, listQuery, nothing, pageOf, Revoked } from './schema.ts'
import { pageOfWalk } from './walk.ts'

const states = ['approved', 'active', 'revoked', 'expired'] as const

export const listAllGrants: Operation = {
  operationId: 'listAllGrants',
  area: 'users',
  kind: 'list',
  url: '/grants',
  delegates: true,
  summary: 'List grants in the order in which they were approved, until they are deleted after their end',
  response: pageOf(GrantResource, 'AllGrants'),
  querystring: listQuery({
    sub: Type.Optional(Type.String({ description: 'Only those of this user.' })),
    client_id: Type.Optional(Type.String({ description: 'Only those to this client.' })),
    state: Type.Optional(
      Type.Unsafe<(typeof states)[number]>({
        type: 'string',
        enum: [...states],
        description: 'Only these.',
      }),
    ),
  }),
  async perform(call) {
    const { store } = call.deps
    const [sub, client, state] = [call.query('sub'), call.query('client_id'), call.query('state')]
    const userId = sub === undefined ? undefined : storedKey(sub)
    const clientId = client === undefined ? undefined : storedKey(client)
    const describe = async (grant: Grant) => {
      const described = await describeNow(grant, call)
      return state === undefined || described.state === state ? described : undefined
    }
    if (userId !== undefined && !(await isSeen(call, userId))) return { body: { items: [] } }
    const reach = userId === undefined ? await call.reach() : undefined
    const grantsOf = async (ofUser: string | undefined, { size, after }: Page) => {
      const { grants: rows, next } = await store.grantsFrom({ userId: ofUser, clientId, after, limit: size })
      return { rows, next }
    }
    if (reach !== undefined) return pageOfTheirs(call, store, reach, grantsOf, describe)
    const readPart = async (at: Page) => {
      const { rows, next } = await grantsOf(userId, at)
      // Few were found: it has looked at many.
      const looked = rows.length < at.size ? Number.POSITIVE_INFINITY : rows.length
      return { rows: rows.map((row) => ({ key: row.id, row })), looked, next }
    }
    return pageOfWalk(call, readPart, describe)
  },
}

export const listGrants: Operation = {
  operationId: 'listGrants',
  area: 'users',
  kind: 'list',
  url: '/users/:sub/grants',
  delegates: true,
  summary: 'List the clients that have valid grants of a user, or a remembered consent',
  response: pageOf(ConnectionResource, 'Grants'),
  querystring: listQuery({}),
  async perform(call) {
    const { store, clock } = call.deps
    const { id } = await findUser(call)
    const { page: all } = await store.connections(id, { now: clock(), limit: everyConnection, offset: 0 })
    const keyOf = ({ clientId }: { readonly clientId: string }) => clientId
    return listed(
      call,
      async (page) => pageOfAll(all, keyOf, page),
      keyOf,
      ({ clientId, grants, remembered }) => ({ client_id: clientId, grants, remembered }),
    )
  },
}

export const readGrant: Operation = {
  operationId: 'readGrant',
  area: 'users',
  kind: 'read',
  url: '/grants/:grant_id',
  delegates: false,
  summary: 'Read a grant and its state',
  response: GrantResource,
  async perform(call) {
    const grant = requireFound(await call.deps.store.find('grant', call.param('grant_id')), 'grant')
    return { body: await describeNow(grant, call) }
  },
}

export const revokeGrant: Operation = {
  operationId: 'revokeGrant',
  area: 'users',
  kind: 'end',
  url: '/grants/:grant_id',
  delegates: false,
  summary: 'Revoke a grant and its tokens, and forget the consent',
  response: nothing,
  async perform({ param, context, requireMay, store }) {
    await store.transact('grant', param('grant_id'), (found) => {
      const { userId } = requireFound(found, 'grant')
      const ended = endGrant(found, { ...context, userId })
      const isEnded = 'result' in ended && ended.result
      requireFound(isEnded || undefined, 'grant that has not ended')
      return withWrites(ended, ...requireMay({ userId }))
    })
    return undefined
  },
}

export const revokeGrants: Operation = {
  operationId: 'revokeGrants',
  area: 'users',
  kind: 'end',
  url: '/users/:sub/grants/:client_id',
  delegates: true,
  summary: 'Revoke everything that a user granted to a client',
  response: nothing,
  async perform({ param, store, context }) {
    const [userId, clientId] = [param('sub'), param('client_id')]
    await store.transact('user', userId, (user) => {
      requireFound(user, 'user')
      return accept(undefined, ...endConnection({ clientId }, { ...context, userId }))
    })
    return undefined
  },
}

/** Describes a grant as it is now: an exchanged one ends with the token that it was exchanged for. */
async function describeNow(grant: Grant, { deps: { clock, store }, server }: Call) {
  const { username } = (grant.userId === undefined ? undefined : await store.find('user', grant.userId)) ?? {}
  const described = describeGrant({ ...grant, username }, clock())
  if (grant.exchangedFrom === undefined || described.state !== 'active') return described
  const left = await leftOfSubjects(grant.exchangedFrom, grant, { store, service: server.service() })
  return isLoss(left) ? { ...described, state: 'revoked', revoked_by: left.rule } : described
}

/** Not in one transaction, because a client may have any number of grants. */
export const revokeClient: Operation = {
  operationId: 'revokeClient',
  area: 'clients',
  kind: 'act',
  url: '/clients/:client_id/revoke',
  delegates: false,
  summary: 'Revoke everything that was granted to a client, also what it granted to itself',
  response: Revoked,
  async perform({ param, caller, context, deps, store }, keep) {
    const { id } = requireWithin(await deps.store.find('client', param('client_id')), caller)
    const revoked = await revokeGrantsTo(id, deps.store, store, context)
    const kept = { status: 200, body: { client_id: id, revoked }, headers: {}, clientId: id }
    await store.write(...keep(kept))
    return kept
  },
}
