import { Type } from '@sinclair/typebox'
import { clientMembers, type OperatorClientMembers } from '../../clients/core-members.ts'
import { configuredOf, describeClient } from '../../clients/describe.ts'
import type { ClientVocabulary } from '../../clients/members.ts'
import {
  addOperatorClient,
  changeOperatorClient,
  clientIdPattern,
  lockClient,
  removeClient,
  replaceOperatorClient,
  rotateClientSecret,
  unlockClient,
} from '../../clients/operator-client.ts'
import { isUnusedSince } from '../../clients/use.ts'
import type { AuditContext } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { accept, andThen, type Decision } from '../../domain/decision.ts'
import { type Client, clientOrigins } from '../../domain/model.ts'
import { vocabularyOf } from '../../feature/client-vocabulary.ts'
import type { Declared } from '../../feature/deps.ts'
import { type Call, listedRows, type Operation } from './operation.ts'
import { assertWithin, requireFound, requireWithin, tagOfClient } from './rules.ts'
import { ClientResource, listQuery, nothing, pageOf } from './schema.ts'

/** The member of a request with a secret. */
export const secretMember = Type.String({
  description: 'A secret of 32 to 200 characters that you chose; it is stored as a hash.',
})
interface Replaced {
  readonly client_secret?: string
  readonly locked?: boolean
}
interface NewClient extends Replaced {
  readonly client_id?: string
}

/** What the operations on clients have in common. */
export const common = { area: 'clients', delegates: false, response: ClientResource } as const
export const clientUrl = '/clients/:client_id'
/** What is wrong if two clients would be found by the same. */
export const taken =
  'another client protects this host, or trusts this issuer, subject and audience; an audience of its own tells them apart'

/** What an operator does with clients; client-acts.ts has what changes no metadata by its members. */
export function clientOperations(declared: Declared) {
  const vocabularyFor = ({ deps }: Call): ClientVocabulary => vocabularyOf(deps.config, declared)
  const body = { bodyLimit: 'registrationBodyBytes', taken } as const

  const create: Operation<OperatorClientMembers & NewClient> = {
    ...common,
    ...body,
    operationId: 'addClient',
    kind: 'create',
    url: '/clients',
    summary: 'Add a client; the response has a secret that was made, which is shown once',
    taken:
      'another client protects this host, trusts this issuer, subject and audience, or has this client_id',
    body: clientMembers<NewClient>(declared, 'NewClient', ['client_name'], {
      client_id: Type.String({ pattern: clientIdPattern, description: 'The client id, if you choose one.' }),
      client_secret: secretMember,
      locked: Type.Boolean({ description: 'true: it is locked from the beginning.' }),
    }),
    async perform(call, keep) {
      const { deps, context, address, caller } = call
      const { client_id: id = deps.random(16), client_secret: chosenSecret, locked, ...members } = call.body
      const vocabulary = vocabularyFor(call)
      const fresh = { id, secret: chosenSecret ?? deps.random(32) }
      const { client: added, secret, writes } = addOperatorClient(members, vocabulary, fresh, context)
      const lock = locked ? lockClient(added, context) : accept(added)
      const client = 'result' in lock ? lock.result : added
      assertWithin(client, caller)
      if (chosenSecret !== undefined) assertSecretUsed(secret)
      const headers = { location: `${address}/${client.id}`, etag: tagOfClient(client) }
      const result = { status: 201, body: describe(client, vocabulary), headers, clientId: client.id }
      await call.store.write(...writes, ...lock.writes, ...keep(result))
      const once = chosenSecret === undefined && secret !== undefined && { client_secret: secret }
      return { ...result, body: { ...result.body, ...once } }
    },
  }

  /** Changes a client that an operator added. */
  const changing =
    <Body>(decide: (...args: [Client, Body, ClientVocabulary, AuditContext]) => Decision<Client>) =>
    async (call: Call<Body>) => {
      const vocabulary = vocabularyFor(call)
      const client = await call.store.transact('client', call.param('client_id'), (found) => {
        const current = requireWithin(found, call.caller)
        assertByOperator(current)
        call.assertSeen(tagOfClient(current), current)
        return andThen(decide(current, call.body, vocabulary, call.context), (after) => {
          assertWithin(after, call.caller)
          return accept(after)
        })
      })
      return { body: describe(client, vocabulary), tag: tagOfClient(client) }
    }
  const change: Operation<OperatorClientMembers> = {
    ...common,
    ...body,
    operationId: 'changeClient',
    kind: 'change',
    url: clientUrl,
    summary: 'Change a client that an operator added; what is not named stays',
    body: clientMembers(declared, 'ChangedClient'),
    perform: changing(changeOperatorClient),
  }
  const replace: Operation<OperatorClientMembers & Replaced> = {
    ...common,
    ...body,
    operationId: 'replaceClient',
    kind: 'change',
    method: 'PUT',
    url: clientUrl,
    summary: 'Replace the metadata of a client that an operator added; what is not named has its default',
    body: clientMembers<Replaced>(declared, 'ReplacedClient', ['client_name'], {
      client_secret: Type.String({
        description: 'Another secret that you chose; the old one is invalid at once. Absent: it stays.',
      }),
      locked: Type.Boolean({
        description: 'Locks or unlocks it together with the change. Absent: it stays.',
      }),
    }),
    perform: changing(replaceAll),
  }

  return {
    list: {
      ...common,
      operationId: 'listClients',
      kind: 'list',
      url: '/clients',
      summary: 'List clients, in the order in which they were added',
      response: pageOf(ClientResource, 'Clients'),
      querystring: listQuery({
        origin: Type.Optional(Type.Union(clientOrigins.map((origin) => Type.Literal(origin)))),
      }),
      perform: (call) => {
        const only = call.query('origin') as Client['origin'] | undefined // as the schema says
        const vocabulary = vocabularyFor(call)
        return listedRows(
          call,
          (rows) => call.deps.store.page('client', { ...rows, only }),
          (client) => describe(client, vocabulary),
        )
      },
    },
    create,
    read: {
      ...common,
      operationId: 'readClient',
      kind: 'read',
      url: clientUrl,
      summary: 'Read a client',
      perform: async (call) => {
        const client = requireFound(await call.deps.store.find('client', call.param('client_id')), 'client')
        return { body: describe(client, vocabularyFor(call)), tag: tagOfClient(client) }
      },
    },
    change,
    replace,
    remove: {
      ...common,
      operationId: 'deleteClient',
      kind: 'delete',
      url: clientUrl,
      summary: 'Delete a client with its tokens',
      response: nothing,
      querystring: Type.Object({
        unused_since: Type.Optional(
          Type.String({
            pattern: '^\\d{1,12}$',
            description: 'Only if it got no token since this time, in seconds since 1970; otherwise 409.',
          }),
        ),
      }),
      async perform(call) {
        const since = call.query('unused_since')
        await call.store.transact('client', call.param('client_id'), (found) => {
          const client = requireWithin(found, call.caller)
          call.assertSeen(tagOfClient(client), client)
          if (since !== undefined) assertUnused(client, Number(since))
          return removeClient(client, call.context)
        })
        return undefined
      },
    },
  } as const satisfies Readonly<Record<string, Operation>>
}

/** Replaces the metadata, and in the same transaction the lock and the secret if the body has them. */
function replaceAll(
  current: Client,
  { locked, client_secret: secret, ...members }: OperatorClientMembers & Replaced,
  vocabulary: ClientVocabulary,
  context: AuditContext,
): Decision<Client> {
  const settled = andThen(replaceOperatorClient(current, members, vocabulary, context), (client) => {
    if (locked === undefined || locked === (client.lockedAt !== undefined)) return accept(client)
    return (locked ? lockClient : unlockClient)(client, context)
  })
  if (secret === undefined) return settled
  const rotated = andThen(settled, (client) => rotateClientSecret(client, secret, context))
  return andThen(rotated, ({ client }) => accept(client))
}

/** Returns a client as operators see it. */
export function describe(client: Client, vocabulary: ClientVocabulary) {
  return {
    ...describeClient(client, vocabulary),
    client_id: client.id,
    ...(client.origin !== 'registered' && { configured: configuredOf(client) }),
  }
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
export function assertByOperator({ origin }: Client): void {
  check(
    origin !== 'registered',
    'lychgate-integration-known',
    'conflict',
    'a client that registered itself changes itself, RFC 7592 section 2.2',
    { status: 409, stored: origin },
  )
}

/** The use of a client does not change its entity tag. */
function assertUnused(client: Client, since: number): void {
  check(
    isUnusedSince(client, since),
    'lychgate-client-unused',
    'conflict',
    'the client got a token since then',
    { status: 409, stored: client.usedAt, received: since },
  )
}
