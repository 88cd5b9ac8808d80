import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { revokeGrantsTo } from '../../clients/grants.ts'
import { describeGrant, endGrant, stateOfGrant } from '../../domain/connections.ts'
import { withWrites } from '../../domain/decision.ts'
import type { Grant } from '../../domain/model.ts'
import type { AppDeps } from '../../feature/deps.ts'
import type { Page } from '../operations/operation.ts'
import { requireFound, requireWithin } from '../operations/rules.ts'
import { GrantResource, listQuery, pageOf, Revoked } from '../operations/schema.ts'
import { storedKey } from './administration.ts'
import { pageOfTheirs } from './member-pages.ts'
import { isSeen, operationsOf } from './operation.ts'
import { pageOfWalk } from './walk.ts'

const states = ['approved', 'active', 'revoked', 'expired'] as const

/** `/grants`: what users granted to clients, and clients to themselves; `/clients/…/revoke` ends all of a client. */
export const grantResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { store, clock } = deps
  const { page, read, end } = operationsOf(app, deps, 'users')

  page(
    '/grants',
    {
      operationId: 'listAllGrants',
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
    },
    async (call) => {
      const [sub, client, state] = [call.query('sub'), call.query('client_id'), call.query('state')]
      const userId = sub === undefined ? undefined : storedKey(sub)
      const clientId = client === undefined ? undefined : storedKey(client)
      const describe = async (grant: Grant) =>
        state === undefined || stateOfGrant(grant, clock()) === state
          ? describeGrant(grant, clock())
          : undefined
      if (userId !== undefined && !(await isSeen(call, userId))) return { body: { items: [] } }
      const reach = userId === undefined ? await app.administration.reachFor(call.request) : undefined
      const grantsOf = async (ofUser: string | undefined, { size, after }: Page) => {
        const { grants: rows, next } = await store.grantsFrom({
          userId: ofUser,
          clientId,
          after,
          limit: size,
        })
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
  )
  read(
    '/grants/:grant_id',
    { operationId: 'readGrant', summary: 'Read a grant and its state', response: GrantResource },
    async ({ param }) => ({
      body: describeGrant(requireFound(await store.find('grant', param('grant_id')), 'grant'), clock()),
    }),
  )
  end(
    '/grants/:grant_id',
    { operationId: 'revokeGrant', summary: 'Revoke a grant and its tokens, and forget the consent' },
    async ({ param, context, requireMay, store }) => {
      await store.transact('grant', param('grant_id'), (found) => {
        const { userId } = requireFound(found, 'grant')
        const ended = endGrant(found, { ...context, userId })
        const isEnded = 'result' in ended && ended.result
        requireFound(isEnded || undefined, 'grant that has not ended')
        return withWrites(ended, requireMay({ userId }))
      })
    },
  )

  operationsOf(app, deps, 'clients').act(
    '/clients/:client_id/revoke',
    {
      operationId: 'revokeClient',
      summary: 'Revoke everything that was granted to a client, also what it granted to itself',
      response: Revoked,
    },
    async ({ param, caller, context, store: writing }, keep) => {
      const { id } = requireWithin(await store.find('client', param('client_id')), caller)
      const revoked = await revokeGrantsTo(id, store, writing, context)
      const kept = { status: 200, body: { client_id: id, revoked }, headers: {}, clientId: id }
      await writing.write(...keep(kept))
      return kept
    },
  )
}
