import { type Static, Type } from '@sinclair/typebox'
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { describeClient, knownTo } from '../clients/describe.ts'
import {
  addIntegration,
  changeIntegration,
  lockClient,
  removeClient,
  rotateClientSecret,
  unlockClient,
} from '../clients/integration.ts'
import { clientMembers, integrationDefaults, readClientMembers } from '../clients/integration-members.ts'
import type { AppDeps } from '../deps.ts'
import { auditEvent } from '../domain/audit.ts'
import { check } from '../domain/check.ts'
import { accept, type Decision, withWrites } from '../domain/decision.ts'
import { type Client, clientOrigins, type Seconds } from '../domain/model.ts'
import { RecordExists } from '../storage/store.ts'
import { storedKey, writePage } from './administration.ts'
import { once } from './idempotency.ts'
import { assertMatches, assertWithin, conflict, requireFound, tagOfClient } from './rules.ts'
import { ClientResource, ClientSecret, listQuery, operationSchema, pageOf } from './schema.ts'

const scope = { read: 'admin:clients:read', write: 'admin:clients:write' } as const
const taken = 'another client trusts this issuer, subject and audience'

const Rotation = Type.Object(
  {
    keep_old_seconds: Type.Integer({
      minimum: 0,
      maximum: 31_536_000,
      description: 'How long the old secret is accepted, too; 0: not at all.',
    }),
  },
  { title: 'Rotation', additionalProperties: false },
)

/** `/clients`: list, add, read, change, lock, unlock, delete, and rotate the secret. */
export const clientResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, store, random, declared } = deps
  const admin = app.administration
  const known = knownTo(config, declared)
  const describe = (client: Client) => ({ ...describeClient(client, known), client_id: client.id })
  /** Finds the client under its lock, if the caller may change it. */
  const requireWithin = (request: FastifyRequest, found: Client | undefined): Client => {
    const client = requireFound(found, 'client')
    assertWithin(client, admin.callerOf(request))
    return client
  }
  const body = {
    bodyLimit: config.limits.registrationBodyBytes,
    setting: { bodyLimitSetting: 'limits.registrationBodyBytes' } as const,
  }

  app.get(
    '/clients',
    {
      ...admin.allow(scope.read),
      schema: operationSchema({
        operationId: 'listClients',
        summary: 'List clients, in the order in which they were added',
        scope: scope.read,
        kind: 'list',
        response: pageOf(ClientResource, 'Clients'),
        querystring: listQuery({
          origin: Type.Optional(Type.Union(clientOrigins.map((origin) => Type.Literal(origin)))),
        }),
      }),
    },
    async (request) => {
      const { origin } = request.query as { readonly origin?: Client['origin'] } // as the schema says
      const { size, ...page } = admin.pageOf(request)
      return writePage(await store.page('client', { ...page, only: origin }), size, describe)
    },
  )

  const { onRequest, config: writing } = admin.allow(scope.write)
  app.post(
    '/clients',
    {
      onRequest,
      config: { ...writing, ...body.setting },
      bodyLimit: body.bodyLimit,
      schema: operationSchema({
        operationId: 'addClient',
        summary: 'Add a client; the response has its secret, which is shown once',
        scope: scope.write,
        kind: 'create',
        response: ClientResource,
        body: clientMembers(declared, 'NewClient', ['client_name']),
      }),
    },
    async (request, reply) => {
      const { name = '', ...wanted } = readClientMembers(request.body as Record<string, unknown>)
      const context = admin.contextOf(request)
      return once(request, reply, deps, taken, async (keep) => {
        const added = addIntegration(
          { ...integrationDefaults, ...wanted, name } as Parameters<typeof addIntegration>[0], // nothing is undefined
          known,
          { id: random(16), secret: random(32) },
          context.at,
        )
        const { client, secret, writes } = added
        assertWithin(client, admin.callerOf(request))
        const event = auditEvent('client-added', context, { clientId: client.id, name })
        const headers = { location: `${request.url}/${client.id}`, etag: tagOfClient(client) }
        const kept = { status: 201, body: describe(client), headers, clientId: client.id }
        await admin.storeFor(request).write(...writes, event, ...keep(kept))
        return { ...kept, body: { ...kept.body, ...(secret !== undefined && { client_secret: secret }) } }
      })
    },
  )

  app.get(
    '/clients/:client_id',
    {
      ...admin.allow(scope.read),
      schema: operationSchema({
        operationId: 'readClient',
        summary: 'Read a client',
        scope: scope.read,
        kind: 'read',
        response: ClientResource,
        id: 'client_id',
      }),
    },
    async ({ params }, reply) => {
      const client = requireFound(await store.find('client', idOf(params)), 'client')
      reply.header('etag', tagOfClient(client))
      return describe(client)
    },
  )

  app.patch(
    '/clients/:client_id',
    {
      onRequest,
      config: { ...writing, ...body.setting },
      bodyLimit: body.bodyLimit,
      schema: operationSchema({
        operationId: 'changeClient',
        summary: 'Change a client that an operator added; what is not named stays',
        scope: scope.write,
        kind: 'change',
        response: ClientResource,
        id: 'client_id',
        body: clientMembers(declared, 'ChangedClient'),
      }),
    },
    async (request, reply) => {
      const clientId = idOf(request.params)
      const change = readClientMembers(request.body as Record<string, unknown>)
      const context = admin.contextOf(request)
      const changed = Object.keys(change).join(' ')
      const client = await admin
        .storeFor(request)
        .transact('client', clientId, (found) => {
          const current = requireWithin(request, found)
          assertByOperator(current)
          assertMatches(request.headers['if-match'], tagOfClient(current))
          const decision = changeIntegration(current, change, known)
          if ('result' in decision) assertWithin(decision.result, admin.callerOf(request))
          return withWrites(decision, auditEvent('client-changed', context, { clientId, changed }))
        })
        .catch((error: unknown) => {
          throw error instanceof RecordExists ? conflict(taken) : error
        })
      reply.header('etag', tagOfClient(client))
      return describe(client)
    },
  )

  app.delete(
    '/clients/:client_id',
    {
      ...admin.allow(scope.write),
      schema: operationSchema({
        operationId: 'deleteClient',
        summary: 'Delete a client with its tokens',
        scope: scope.write,
        kind: 'delete',
        response: Type.Null(),
        id: 'client_id',
      }),
    },
    async (request, reply) => {
      const context = admin.contextOf(request)
      await admin.storeFor(request).transact('client', idOf(request.params), (found) => {
        const client = requireWithin(request, found)
        assertMatches(request.headers['if-match'], tagOfClient(client))
        return removeClient(client, context)
      })
      return reply.code(204).send()
    },
  )

  app.post(
    '/clients/:client_id/secret',
    {
      ...admin.allow(scope.write),
      schema: operationSchema({
        operationId: 'rotateClientSecret',
        summary: 'Replace the secret of a client; the response has the new one, which is shown once',
        scope: scope.write,
        kind: 'act',
        response: ClientSecret,
        id: 'client_id',
        body: Rotation,
      }),
    },
    async (request, reply) => {
      const clientId = idOf(request.params)
      const { keep_old_seconds: keepOld } = request.body as Static<typeof Rotation> // as the schema says
      const context = admin.contextOf(request)
      const keepUntil = keepOld > 0 ? context.at + keepOld : undefined
      const fresh = random(32)
      return once(request, reply, deps, taken, async (keep) => {
        const until = { ...(keepUntil !== undefined && { previous_secret_expires_at: keepUntil }) }
        const kept = { status: 200, body: { client_id: clientId, ...until }, headers: {}, clientId }
        const secret = await admin.storeFor(request).transact('client', clientId, (found) => {
          const facts = { clientId, ...(keepUntil !== undefined && { oldWorksUntil: keepUntil }) }
          const event = auditEvent('client-secret-changed', context, facts)
          return withWrites(
            rotateClientSecret(requireWithin(request, found), fresh, keepUntil),
            event,
            ...keep(kept),
          )
        })
        return { ...kept, body: { ...kept.body, client_secret: secret } }
      })
    },
  )

  const acts = {
    lock: {
      name: 'client-locked',
      decide: lockClient,
      summary: 'Lock a client: its tokens are invalid while it is locked',
    },
    unlock: { name: 'client-unlocked', decide: unlockClient, summary: 'Unlock a client' },
  } as const satisfies Record<
    string,
    { name: string; decide: (client: Client, now: Seconds) => Decision<Client>; summary: string }
  >
  for (const [act, { name, decide, summary }] of Object.entries(acts)) {
    app.post(
      `/clients/:client_id/${act}`,
      {
        ...admin.allow(scope.write),
        schema: operationSchema({
          operationId: `${act}Client`,
          summary,
          scope: scope.write,
          kind: 'act',
          response: ClientResource,
          id: 'client_id',
        }),
      },
      async (request, reply) => {
        const clientId = idOf(request.params)
        const context = admin.contextOf(request)
        return once(request, reply, deps, taken, async (keep) => {
          return admin.storeFor(request).transact('client', clientId, (found) => {
            const current = requireWithin(request, found)
            const decision = decide(current, context.at)
            const client = 'result' in decision ? decision.result : current
            const kept = {
              status: 200,
              body: describe(client),
              headers: { etag: tagOfClient(client) },
              clientId,
            }
            const event = auditEvent(name, context, { clientId })
            return accept(kept, ...decision.writes, event, ...keep(kept))
          })
        })
      },
    )
  }
}

function idOf(params: unknown): string {
  return storedKey((params as { readonly client_id: string }).client_id) // as the path says
}

/** A client that registered itself changes itself, RFC 7592 §2.2. */
function assertByOperator({ origin }: Client): void {
  check(
    origin !== 'registered',
    'lychgate-integration-known',
    'conflict',
    'a client that registered itself changes itself, RFC 7592 section 2.2',
    { status: 409, stored: origin },
  )
}
