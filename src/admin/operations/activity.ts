import { type Static, Type } from '@sinclair/typebox'
import { describeEvent } from '../../domain/audit.ts'
import { describeDelivery, finishedDeliveryKind, logoutDeliveryKind } from '../../domain/logout-delivery.ts'
import { type AuditEventName, auditEventNames } from '../../domain/model.ts'
import type { RecordKind } from '../../domain/record.ts'
import { cursorOf, readCursor } from '../../http/cursor.ts'
import { explainRejection, explainToken } from '../../observability/explain.ts'
import { listed, listedRows, type Operation } from './operation.ts'
import { requireFound, storedKey } from './rules.ts'
import {
  DeliveryResource,
  EventResource,
  ExplanationResource,
  listQuery,
  pageOf,
  RejectionResource,
  Settings,
} from './schema.ts'

const common = { area: 'audit', delegates: false } as const

export const listEvents: Operation = {
  ...common,
  operationId: 'listEvents',
  kind: 'list',
  url: '/audit',
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
    until: Type.Optional(
      Type.String({ pattern: '^\\d{1,10}$', description: 'Only events of this time or earlier.' }),
    ),
  }),
  async perform({ query, deps }) {
    const [sub, clientId, since] = [query('sub'), query('client_id'), query('since')]
    const until = query('until')
    const { events, next } = await deps.store.auditPage({
      before: readCursor(query('after')),
      limit: Number(query('limit') ?? 50),
      userId: sub === undefined ? undefined : storedKey(sub),
      clientId: clientId === undefined ? undefined : storedKey(clientId),
      name: query('event') as AuditEventName | undefined, // as the schema says
      ...(since !== undefined && { since: Number(since) }),
      ...(until !== undefined && { until: Number(until) }),
    })
    const items = events.map(describeEvent)
    return { body: { items, ...(next !== undefined && { next: cursorOf(next) }) } }
  },
}

export const listRejections: Operation = {
  ...common,
  operationId: 'listRejections',
  kind: 'list',
  url: '/rejections',
  summary: 'List the rejected requests that are kept, newest first, with the rule that each broke',
  response: pageOf(RejectionResource, 'Rejections'),
  querystring: listQuery({}),
  perform: (call) =>
    listedRows(
      call,
      ({ limit, after }) => call.deps.store.rejections({ limit, before: after }),
      (row) => explainRejection(row).json,
    ),
}

export const readRejection: Operation = {
  ...common,
  operationId: 'readRejection',
  kind: 'read',
  url: '/rejections/:request_id',
  summary: 'Read why a request was rejected',
  response: RejectionResource,
  async perform({ deps, param }) {
    const rejection = await deps.store.find('rejection', param('request_id').toLowerCase())
    return { body: explainRejection(requireFound(rejection, 'rejected request')).json }
  },
}

const AskedToken = Type.Object(
  {
    token: Type.String({
      minLength: 1,
      // Longer than any token of this server.
      maxLength: 8000,
      description: 'It is in no log, and not in the URL.',
    }),
  },
  { title: 'Token', additionalProperties: false },
)

export const explainOneToken: Operation<Static<typeof AskedToken>> = {
  ...common,
  operationId: 'explainToken',
  kind: 'read',
  // What the body names must not be in a URL.
  method: 'POST',
  url: '/explain',
  summary: 'Read whether a token, a code, a link or a secret is active, and why not',
  response: ExplanationResource,
  body: AskedToken,
  async perform({ body, deps, server }) {
    const sources = {
      store: deps.store,
      keys: await server.openKeys(),
      service: server.service(),
      now: deps.clock(),
    }
    return { body: (await explainToken(body.token.trim(), sources)).json }
  },
}

export const readSettings: Operation = {
  ...common,
  operationId: 'readSettings',
  kind: 'read',
  url: '/settings',
  summary: 'Read every option in effect and where it comes from; passwords are masked',
  response: Settings,
  perform: async ({ deps, server }) => ({ body: { mode: deps.config.mode, items: server.settings() } }),
}

const ofClients = { area: 'clients', delegates: false } as const

/** Returns the list of a kind of deliveries. */
function deliveries<Delivery extends Parameters<typeof describeDelivery>[0]>(
  kind: RecordKind<Delivery>,
  path: 'pending' | 'finished',
  which: string,
): Operation {
  const title = path === 'pending' ? 'PendingDeliveries' : 'FinishedDeliveries'
  return {
    ...ofClients,
    operationId: `list${title}`,
    kind: 'list',
    url: `/deliveries/${path}`,
    summary: `List the logout tokens ${which}, in the order of their sid`,
    response: pageOf(DeliveryResource, title),
    querystring: listQuery({}),
    perform: (call) =>
      listed(
        call,
        ({ size, after }) => call.deps.store.listFrom(kind, { prefix: '', after, limit: size }),
        ({ sid }) => sid,
        describeDelivery,
      ),
  }
}

export const listPending = deliveries(logoutDeliveryKind, 'pending', 'still to be sent')
export const listFinished = deliveries(finishedDeliveryKind, 'finished', 'that were sent, or failed')
