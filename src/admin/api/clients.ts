import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { clientMembers, type IntegrationMembers } from '../../clients/core-members.ts'
import { configuredOf, describeClient } from '../../clients/describe.ts'
import {
  addIntegration,
  changeIntegration,
  clientIdPattern,
  lockClient,
  removeClient,
  replaceIntegration,
  rotateClientSecret,
  unlockClient,
} from '../../clients/integration.ts'
import type { AuditContext } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { type Decision, withWrites } from '../../domain/decision.ts'
import { type Client, clientOrigins } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { secretMatches } from '../../domain/secret.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { knownTo } from '../../feature/known-to.ts'
import { listedRows, responding } from '../operations/operation.ts'
import { assertWithin, requireFound, requireWithin, tagOfClient } from '../operations/rules.ts'
import { ClientResource, ClientSecret, listQuery, pageOf } from '../operations/schema.ts'
import { type HttpCall, operationsOf } from './operation.ts'

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
export const clientResource: FastifyPluginAsync<PageDeps> = async (app, deps) => {
  const { config, store, random, declared } = deps
  const { page, create, read, change, replace, delete: remove, act } = operationsOf(app, deps, 'clients')
  const known = knownTo(config, declared)
  const describe = (client: Client) => ({
    ...describeClient(client, known),
    client_id: client.id,
    ...(client.origin !== 'registered' && { configured: configuredOf(client) }),
  })
  const shown = (client: Client) => ({ body: describe(client), tag: tagOfClient(client) })
  const one = '/clients/:client_id'
  const response = ClientResource
  const body = { taken, bodyLimit: 'registrationBodyBytes' } as const

  page(
    '/clients',
    {
      operationId: 'listClients',
      summary: 'List clients, in the order in which they were added',
      response: pageOf(response, 'Clients'),
      querystring: listQuery({
        origin: Type.Optional(Type.Union(clientOrigins.map((origin) => Type.Literal(origin)))),
      }),
    },
    (call) => {
      const only = call.query('origin') as Client['origin'] | undefined // as the schema says
      return listedRows(call, (rows) => store.page('client', { ...rows, only }), describe)
    },
  )

  create(
    '/clients',
    {
      ...body,
      operationId: 'addClient',
      summary: 'Add a client; the response has a secret that was made, which is shown once',
      response,
      body: clientMembers<NewClient>(declared, 'NewClient', ['client_name'], {
        client_id: Type.String({
          pattern: clientIdPattern,
          description: 'The client id, if you choose one.',
        }),
        client_secret: secretMember,
      }),
    },
    async ({ body, caller, context, request, store: writing }, keep) => {
      const { client_id: id = random(16), client_secret: given, ...members } = body
      const added = addIntegration(members, known, { id, secret: given ?? random(32) }, context)
      const { client, secret, writes } = added
      assertWithin(client, caller)
      if (given !== undefined) assertSecretUsed(secret)
      const headers = { location: `${request.url}/${client.id}`, etag: tagOfClient(client) }
      const kept = { status: 201, body: describe(client), headers, clientId: client.id }
      await writing.write(...writes, ...keep(kept))
      const once = given === undefined && secret !== undefined && { client_secret: secret }
      return { ...kept, body: { ...kept.body, ...once } }
    },
  )

  read(one, { operationId: 'readClient', summary: 'Read a client', response }, async ({ param }) =>
    shown(requireFound(await store.find('client', param('client_id')), 'client')),
  )

  /** Changes a client that an operator added. */
  const changing =
    (decide: (client: Client, body: IntegrationMembers, context: AuditContext) => Decision<Client>) =>
    async ({ param, body, caller, context, assertSeen, store }: HttpCall<IntegrationMembers>) => {
      const clientId = param('client_id')
      const client = await store.transact('client', clientId, (found) => {
        const current = requireWithin(found, caller)
        assertByOperator(current)
        assertSeen(tagOfClient(current), current)
        const decision = decide(current, body, context)
        if ('rejection' in decision) return decision
        assertWithin(decision.result, caller)
        return decision
      })
      return shown(client)
    }
  change(
    one,
    {
      ...body,
      operationId: 'changeClient',
      summary: 'Change a client that an operator added; what is not named stays',
      response,
      body: clientMembers(declared, 'ChangedClient'),
    },
    changing((client, members, context) => changeIntegration(client, members, known, context)),
  )
  replace(
    one,
    {
      ...body,
      operationId: 'replaceClient',
      summary: 'Replace the metadata of a client that an operator added; what is not named has its default',
      response,
      body: clientMembers(declared, 'ReplacedClient', ['client_name']),
    },
    changing((client, members, context) => replaceIntegration(client, members, known, context)),
  )

  remove(
    one,
    { operationId: 'deleteClient', summary: 'Delete a client with its tokens' },
    ({ param, caller, context, assertSeen, store }) =>
      store.transact('client', param('client_id'), (found) => {
        const client = requireWithin(found, caller)
        assertSeen(tagOfClient(client), client)
        return removeClient(client, context)
      }),
  )

  act(
    `${one}/secret`,
    {
      operationId: 'rotateClientSecret',
      summary: 'Replace the secret of a client; the response has one that was made, which is shown once',
      response: ClientSecret,
      body: Rotation,
    },
    async ({ param, body, caller, context, store }, keep) => {
      const { keep_old_seconds: keepOld, client_secret: given } = body
      const clientId = param('client_id')
      const keepUntil = keepOld > 0 ? context.at + keepOld : undefined
      const until = omitUndefined({ previous_secret_expires_at: keepUntil })
      const kept = { status: 200, body: { client_id: clientId, ...until }, headers: {}, clientId }
      const fresh = given ?? random(32)
      const secret = await store.transact('client', clientId, (found) =>
        withWrites(
          rotateClientSecret(requireWithin(found, caller), fresh, context, keepUntil),
          ...keep(kept),
        ),
      )
      return { ...kept, body: { ...kept.body, ...(given === undefined && { client_secret: secret }) } }
    },
  )
  act(
    `${one}/secret/compare`,
    {
      operationId: 'compareClientSecret',
      summary: 'Compare a secret with the one of a client, and change nothing',
      response: Compared,
      body: Comparison,
    },
    async ({ param, body, caller }) => {
      const { id, secretHash } = requireWithin(await store.find('client', param('client_id')), caller)
      const matches = secretMatches(body.client_secret, secretHash)
      return { status: 200, body: { client_id: id, matches }, headers: {} }
    },
  )

  for (const [name, decide, summary] of [
    ['lock', lockClient, 'Lock a client: its tokens are invalid while it is locked'],
    ['unlock', unlockClient, 'Unlock a client'],
  ] as const)
    act(
      `${one}/${name}`,
      { operationId: `${name}Client`, summary, response },
      async ({ param, caller, context, store }, keep) => {
        const clientId = param('client_id')
        return store.transact('client', clientId, (found) =>
          responding(
            decide(requireWithin(found, caller), context),
            (client) => ({
              status: 200,
              body: describe(client),
              headers: { etag: tagOfClient(client) },
              clientId,
            }),
            keep,
          ),
        )
      },
    )
}

interface NewClient {
  readonly client_id?: string
  readonly client_secret?: string
}

/** A secret that would be ignored is an error. */
function assertSecretUsed(secret: string | undefined): void {
  check(
    secret !== undefined,
    'rfc8252-8.5-shared-secret-not-proof',
    'invalid_client_metadata',
    'a public client has no secret',
  )
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
