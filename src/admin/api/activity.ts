import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { describeEvent } from '../../domain/audit.ts'
import { type AuditEventName, auditEventNames } from '../../domain/model.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { cursorOf, readCursor } from '../../http/cursor.ts'
import { explainRejection, explainToken } from '../../observability/explain.ts'
import { requireFound, storedKey } from '../operations/rules.ts'
import {
  EventResource,
  ExplanationResource,
  listQuery,
  pageOf,
  RejectionResource,
  Settings,
} from '../operations/schema.ts'
import { writePage } from './administration.ts'
import { operationsOf } from './operation.ts'

/** Longer than any token of this server. */
const longestToken = 8000

/**
 * `/audit`: what users, clients and operators did. `/rejections`: which requests were rejected, and why. `/settings`:
 * what the server does. `/explain`: whether a token works, and why not.
 */
export const activityResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, service, store, keys, clock, settings } = deps
  const { ask, page, read } = operationsOf(app, deps, 'audit')

  page(
    '/audit',
    {
      operationId: 'listEvents',
      summary: 'List the events of the audit log, newest first',
      response: pageOf(EventResource, 'Events'),
      querystring: listQuery({
        sub: Type.Optional(Type.String({ description: 'Only events about this user.' })),
        client_id: Type.Optional(Type.String({ description: 'Only events about this client.' })),
        event: Type.Optional(
          Type.Unsafe<AuditEventName>({
            type: 'string',
            enum: [...auditEventNames],
            description: 'Only these.',
          }),
        ),
        since: Type.Optional(
          Type.String({
            pattern: '^\\d{1,10}$',
            description: 'Only events of this time or later, in seconds since 1970.',
          }),
        ),
      }),
    },
    async ({ query }) => {
      const [sub, clientId, since] = [query('sub'), query('client_id'), query('since')]
      const limit = Number(query('limit') ?? 50)
      const { events, next } = await store.auditPage({
        before: readCursor(query('after')),
        limit,
        userId: sub === undefined ? undefined : storedKey(sub),
        clientId: clientId === undefined ? undefined : storedKey(clientId),
        name: query('event') as AuditEventName | undefined, // as the schema says
        ...(since !== undefined && { since: Number(since) }),
      })
      const items = events.map(describeEvent)
      return { body: { items, ...(next !== undefined && { next: cursorOf(next) }) } }
    },
  )

  page(
    '/rejections',
    {
      operationId: 'listRejections',
      summary: 'List the rejected requests that are kept, newest first, with the rule that each broke',
      response: pageOf(RejectionResource, 'Rejections'),
      querystring: listQuery({}),
    },
    async ({ request }) => {
      const { size, limit, after } = app.administration.pageOf(request)
      const rows = await store.rejections({ limit, before: after })
      return { body: writePage(rows, size, (row) => explainRejection(row).json) }
    },
  )
  read(
    '/rejections/:request_id',
    {
      operationId: 'readRejection',
      summary: 'Read why a request was rejected',
      response: RejectionResource,
    },
    async ({ param }) => {
      const rejection = await store.find('rejection', param('request_id').toLowerCase())
      return { body: explainRejection(requireFound(rejection, 'rejected request')).json }
    },
  )
  ask(
    '/explain',
    {
      operationId: 'explainToken',
      summary: 'Read whether a token, a code, a link or a secret is active, and why not',
      response: ExplanationResource,
      body: Type.Object(
        {
          token: Type.String({
            minLength: 1,
            maxLength: longestToken,
            description: 'It is in no log, and not in the URL.',
          }),
        },
        { title: 'Token', additionalProperties: false },
      ),
    },
    async ({ body: { token } }) => ({
      body: (await explainToken(token.trim(), { store, keys, service, now: clock() })).json,
    }),
  )

  read(
    '/settings',
    {
      operationId: 'readSettings',
      summary: 'Read every setting in effect and where it comes from; passwords are masked',
      response: Settings,
    },
    async () => ({ body: { mode: config.mode, items: settings() } }),
  )
}
