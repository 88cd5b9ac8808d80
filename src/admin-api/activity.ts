import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { describeEvent } from '../domain/audit.ts'
import { cursorOf, readCursor } from '../http/cursor.ts'
import { storedKey } from './administration.ts'
import { operationsOf } from './operation.ts'
import { EventResource, listQuery, pageOf } from './schema.ts'

/** `/audit`: what users, clients and operators did. */
export const activityResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { store } = deps
  const { page } = operationsOf(app, deps, 'audit')

  page(
    '/audit',
    {
      operationId: 'listEvents',
      summary: 'List the events of the audit log, newest first',
      response: pageOf(EventResource, 'Events'),
      querystring: listQuery({
        sub: Type.Optional(Type.String({ description: 'Only events about this user.' })),
      }),
    },
    async ({ query }) => {
      const sub = query('sub')
      const limit = Number(query('limit') ?? 50)
      const { events, next } = await store.auditPage({
        before: readCursor(query('after')),
        limit,
        userId: sub === undefined ? undefined : storedKey(sub),
      })
      const items = events.map(describeEvent)
      return { body: { items, ...(next !== undefined && { next: cursorOf(next) }) } }
    },
  )
}
