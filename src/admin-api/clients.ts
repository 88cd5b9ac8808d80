import { isDeepStrictEqual } from 'node:util'
import { type Static, Type } from '@sinclair/typebox'
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { describeClient, knownTo } from '../clients/describe.ts'
import {
  addIntegration,
  changeIntegration,
  clientIdPattern,
  lockClient,
  removeClient,
  replaceIntegration,
  requestOf,
  rotateClientSecret,
  unlockClient,
} from '../clients/integration.ts'
import {
  clientMembers,
  readClientMembers,
  readIntegration,
  writeClientMembers,
} from '../clients/integration-members.ts'
import type { AppDeps } from '../deps.ts'
import { auditEvent } from '../domain/audit.ts'
import { check } from '../domain/check.ts'
import { accept, type Decision, withWrites } from '../domain/decision.ts'
import { type Client, clientOrigins, type Seconds } from '../domain/model.ts'
import { secretMatches } from '../domain/secret.ts'
import { RecordExists } from '../storage/store.ts'
import { storedKey, writePage } from './administration.ts'
import { once } from './idempotency.ts'
import { assertMatches, assertWithin, conflict, requireFound, tagOfClient } from './rules.ts'
import { ClientResource, ClientSecret, listQuery, operationSchema, pageOf } from './schema.ts'

const scope = { read: 'admin:clients:read', write: 'admin:clients:write' } as const
const taken = 'another client has this client_id, or trusts this issuer, subject and audience'

const secretMember = Type.String({
  description: 'A secret of 32 to 200 characters that you chose; it is stored as a hash.',
})
const Rotation = Type.Object(
  {
    client_secret: Type.Optional(secretMember),
    keep_old_seconds: Type.Integer({
      minimum: 0,
      maximum: 31_536_000,
      description: 'How long the old secret is accepted, too; 0: not at all.',
    }),
  },
  { title: 'Rotation', additionalProperties: false },
)

const Comparison = Type.Object(
  { client_secret: secretMember },
  { title: 'Comparison', additionalProperties: false },
)
const Compared = Type.Object(
  { client_id: Type.String(), matches: Type.Boolean() },
  { title: 'Compared', additionalProperties: false },
)

/** `/clients`: list, add, read, change, lock, unlock, delete, and rotate the secret. */
export const clientResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, store, random, declared } = deps
  const admin = app.administration
  const known = knownTo(config, declared)
  const describe = (client: Client) => ({
    ...describeClient(client, known),
    client_id: client.id,
    ...(client.origin !== 'registered' && { configured: writeClientMembers(requestOf(client)) }),
  })
  const newClient = clientMembers(declared, 'NewClient', ['client_name'])
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
        summary: 'Add a client; the response has a secret that was made, which is shown once',
        scope: scope.write,
        kind: 'create',
        response: ClientResource,
        body: {
          ...newClient,
          properties: {
            ...newClient['properties'],
            client_id: Type.String({
              pattern: clientIdPattern,
              description: 'The client id, if you choose one.',
            }),
            client_secret: secretMember,
          },
        },
      }),
    },
    async (request, reply) => {
      const { client_id: id = random(16), client_secret: given, ...body } = request.body as NewClient // as the schema says
      const wanted = readIntegration(body)
      const context = admin.contextOf(request)
      return once(request, reply, deps, taken, async (keep) => {
        const added = addIntegration(wanted, known, { id, secret: given ?? random(32) }, context.at)
        const { client, secret, writes } = added
        assertWithin(client, admin.callerOf(request))
        if (given !== undefined) assertSecretUsed(secret)
        const event = auditEvent('client-added', context, { clientId: client.id, name: wanted.name })
        const headers = { location: `${request.url}/${client.id}`, etag: tagOfClient(client) }
        const kept = { status: 201, body: describe(client), headers, clientId: client.id }
        await admin.storeFor(request).write(...writes, event, ...keep(kept))
        const shown = given === undefined && secret !== undefined && { client_secret: secret }
        return { ...kept, body: { ...kept.body, ...shown } }
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

  const changes = {
    PATCH: {
      operationId: 'changeClient',
      summary: 'Change a client that an operator added; what is not named stays',
      body: clientMembers(declared, 'ChangedClient'),
      decide: (client: Client, body: Record<string, unknown>) =>
        changeIntegration(client, readClientMembers(body), known),
    },
    PUT: {
      operationId: 'replaceClient',
      summary: 'Replace the metadata of a client that an operator added; what is not named has its default',
      body: clientMembers(declared, 'ReplacedClient', ['client_name']),
      decide: (client: Client, body: Record<string, unknown>) =>
        replaceIntegration(client, readIntegration(body), known),
    },
  }
  for (const [method, { decide, ...described }] of Object.entries(changes)) {
    app.route({
      method,
      url: '/clients/:client_id',
      onRequest,
      config: { ...writing, ...body.setting },
      bodyLimit: body.bodyLimit,
      schema: operationSchema({
        ...described,
        scope: scope.write,
        kind: 'change',
        response: ClientResource,
        id: 'client_id',
      }),
      handler: async (request, reply) => {
        const clientId = idOf(request.params)
        const context = admin.contextOf(request)
        const client = await admin
          .storeFor(request)
          .transact('client', clientId, (found) => {
            const current = requireWithin(request, found)
            assertByOperator(current)
            assertMatches(request.headers['if-match'], tagOfClient(current))
            const decision = decide(current, request.body as Record<string, unknown>) // as the schema says
            if ('rejection' in decision) return decision
            assertWithin(decision.result, admin.callerOf(request))
            const changed = changedMembers(current, decision.result)
            return withWrites(decision, auditEvent('client-changed', context, { clientId, changed }))
          })
          .catch((error: unknown) => {
            throw error instanceof RecordExists ? conflict(taken) : error
          })
        reply.header('etag', tagOfClient(client))
        return describe(client)
      },
    })
  }

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
        summary: 'Replace the secret of a client; the response has one that was made, which is shown once',
        scope: scope.write,
        kind: 'act',
        response: ClientSecret,
        id: 'client_id',
        body: Rotation,
      }),
    },
    async (request, reply) => {
      const clientId = idOf(request.params)
      const { keep_old_seconds: keepOld, client_secret: given } = request.body as Static<typeof Rotation> // as the schema says
      const context = admin.contextOf(request)
      const keepUntil = keepOld > 0 ? context.at + keepOld : undefined
      const fresh = given ?? random(32)
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
        return { ...kept, body: { ...kept.body, ...(given === undefined && { client_secret: secret }) } }
      })
    },
  )

  app.post(
    '/clients/:client_id/secret/compare',
    {
      ...admin.allow(scope.write),
      schema: operationSchema({
        operationId: 'compareClientSecret',
        summary: 'Compare a secret with the one of a client, and change nothing',
        scope: scope.write,
        kind: 'act',
        response: Compared,
        id: 'client_id',
        body: Comparison,
      }),
    },
    async (request) => {
      const client = requireFound(await store.find('client', idOf(request.params)), 'client')
      const { client_secret: secret } = request.body as Static<typeof Comparison> // as the schema says
      return { client_id: client.id, matches: secretMatches(secret, client.secretHash) }
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

type NewClient = Record<string, unknown> & { readonly client_id?: string; readonly client_secret?: string }

/** A secret that would be ignored is an error. */
function assertSecretUsed(secret: string | undefined): void {
  check(
    secret !== undefined,
    'rfc8252-8.5-shared-secret-not-proof',
    'invalid_client_metadata',
    'a public client has no secret',
  )
}

/** Names what a change made different, for the audit log. */
function changedMembers(before: Client, after: Client): string {
  const [old, now] = [writeClientMembers(requestOf(before)), writeClientMembers(requestOf(after))]
  return Object.keys({ ...old, ...now })
    .filter((name) => !isDeepStrictEqual(old[name], now[name]))
    .join(' ')
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
