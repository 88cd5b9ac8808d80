import { compareSecret } from '../../admin/operations/client-acts.ts'
import { clientOperations } from '../../admin/operations/clients.ts'
import { listGroups, listMembers } from '../../admin/operations/group-reads.ts'
import { listResources } from '../../admin/operations/resources.ts'
import { compareUpstreamSecret, listUpstreams } from '../../admin/operations/upstreams.ts'
import { listAttributes, listUsers } from '../../admin/operations/users.ts'
import type { OperatorClientMembers } from '../../clients/core-members.ts'
import type { ClientVocabulary } from '../../clients/members.ts'
import { addOperatorClient } from '../../clients/operator-client.ts'
import type { Attribute } from '../../domain/attributes.ts'
import type { Group } from '../../domain/group.ts'
import { isObject } from '../../domain/is-object.ts'
import type { Client, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { parseScope } from '../../domain/scope.ts'
import { hashSecret } from '../../domain/secret.ts'
import { vocabularyOf } from '../../feature/client-vocabulary.ts'
import { openDefinitions } from '../../feature/definitions.ts'
import { declared } from '../../features.ts'
import { CommandFailed } from '../failure.ts'
import type { Json, Operator } from '../operate.ts'
import { secretOf, type Wanted } from './read.ts'
import type { UpstreamEntry } from './schema.ts'
import type { State } from './state.ts'

/**
 * Reads what files can describe.
 * @param entries What the files have; absent: all is read.
 * @param see Receives each object in the form of the files.
 */
export async function readState(
  operator: Operator,
  entries: Wanted | undefined,
  see: (kind: 'group' | 'user' | 'client' | 'upstream', found: Json) => void,
): Promise<State> {
  const { list, store } = operator
  const readsUsers = entries === undefined || entries.users !== undefined
  const readsClients = entries === undefined || entries.clients !== undefined
  const groups = await list(listGroups, {})
  const users = readsUsers ? await list(listUsers, {}) : []
  const memberships = new Map<string, string[]>()
  for (const { group_id } of readsUsers ? groups : [])
    for (const { sub } of await list(listMembers, { group_id: String(group_id) }))
      memberships.set(String(sub), [...(memberships.get(String(sub)) ?? []), String(group_id)])
  const all = readsClients ? await list(clientOperations(declared).list, {}) : []
  const own = all.filter(({ origin }) => origin !== 'registered')
  const others = all.filter(({ origin }) => origin === 'registered')
  for (const group of groups) see('group', group)
  for (const user of users) see('user', user)
  for (const client of own) see('client', client)
  const readsUpstreams = entries === undefined || entries.upstreams !== undefined
  const allUpstreams = readsUpstreams ? await list(listUpstreams, {}) : []
  const upstreams = allUpstreams.filter(({ source }) => source === 'store')
  const otherUpstreams = allUpstreams.filter(({ source }) => source !== 'store')
  for (const upstream of upstreams) see('upstream', upstream)
  return {
    groups: groups.map(groupOf),
    users: users.map(userOf),
    memberships,
    // A store has the hashes of their secrets, too.
    clients:
      store === undefined
        ? await clientsOf(operator, entries, own)
        : (await store.list('client')).filter(({ origin }) => origin !== 'registered'),
    otherClientIds: new Set(others.map((client) => String(client['client_id']))),
    known: await vocabularyFor(operator, readsClients),
    attributes: readsUsers ? (await list(listAttributes, {})).map(attributeOf) : [],
    upstreams: upstreams.map(upstreamOf),
    otherUpstreamIds: new Set(otherUpstreams.map((upstream) => String(upstream['upstream_id']))),
    hasSecret: await comparedSecrets(operator, entries, upstreams),
  }
}

// `as` in what follows: as the operations describe them.

async function vocabularyFor(
  { list, store, config }: Operator,
  readsClients: boolean,
): Promise<ClientVocabulary> {
  if (store !== undefined && config !== undefined) {
    const inForce = await openDefinitions(store, config, declared.scopes)
    return vocabularyOf(inForce.config, declared)
  }
  const resources = readsClients ? await list(listResources, {}) : []
  return {
    scopes: resources.flatMap(({ scopes }) => scopes as string[]),
    resources: resources.map(({ identifier }) => String(identifier)),
    declared,
  }
}

/** Returns the clients of a server, with the secrets of the files that are theirs: the server does not tell a secret. */
async function clientsOf(
  { perform }: Operator,
  entries: Wanted | undefined,
  own: readonly Json[],
): Promise<readonly Client[]> {
  const ids = new Set(own.map((client) => client['client_id']))
  const matching = new Map<unknown, string>()
  for (const placed of entries?.clients ?? []) {
    const { client_id } = placed.entry
    const client_secret = ids.has(client_id) ? readableSecret(placed) : undefined
    if (client_secret === undefined) continue
    const { matches } = await perform(compareSecret, { client_id }, { client_secret })
    if (matches === true) matching.set(client_id, client_secret)
  }
  return own.map((client) => clientOf(client, matching.get(client['client_id'])))
}

/** Compares the secrets of the files with those of upstreams: neither a store nor a server tells one. */
async function comparedSecrets(
  { perform }: Operator,
  entries: Wanted | undefined,
  upstreams: readonly Json[],
): Promise<ReadonlyMap<string, boolean>> {
  const ids = new Set(upstreams.map((upstream) => upstream['upstream_id']))
  const compared = new Map<string, boolean>()
  for (const placed of entries?.upstreams ?? []) {
    const { upstream_id } = placed.entry
    const client_secret = ids.has(upstream_id) ? readableSecret(placed) : undefined
    if (client_secret === undefined) continue
    const { matches } = await perform(compareUpstreamSecret, { upstream_id }, { client_secret })
    compared.set(upstream_id, matches === true)
  }
  return compared
}

function upstreamOf(described: Json): UpstreamEntry {
  const { redirect_uri: _, source: __, created_at: ___, updated_at: ____, ...entry } = described
  return entry as UpstreamEntry
}

/** The plan says what is wrong with one that cannot be read. */
function readableSecret(placed: Parameters<typeof secretOf>[0]): string | undefined {
  try {
    return secretOf(placed)?.text
  } catch (error) {
    if (error instanceof CommandFailed) return undefined
    throw error
  }
}

function attributeOf({ name, type, values = [], visible, editable }: Json): Attribute {
  return { name, type, values, visible, editable } as Attribute
}

function groupOf({ group_id, name, description, parent_id, administrators_id, created_at }: Json): Group {
  return {
    id: String(group_id),
    name: String(name),
    ...(omitUndefined({
      description,
      parentId: parent_id,
      administratorsId: administrators_id,
    }) as Partial<Group>),
    createdAt: Number(created_at),
  }
}

function userOf({ sub, username, locked_at, seeded, created_at, ...described }: Json): User {
  const claims = described['claims'] as User['claims']
  const attributes = described['attributes'] as NonNullable<User['attributes']>
  return {
    id: String(sub),
    username: String(username),
    claims,
    ...(omitUndefined({ email: claims['email'], lockedAt: locked_at }) as Partial<User>),
    ...(Object.keys(attributes).length > 0 && { attributes }),
    seeded: seeded === true,
    createdAt: Number(created_at),
    updatedAt: Number(claims['updated_at']),
  }
}

/** @param secret The one it has, if that is known. */
function clientOf(members: Json, secret: string | undefined): Client {
  const { client_id: id, configured, locked_at: lockedAt } = members
  if (!isObject(configured))
    throw new CommandFailed(
      'the server is older than this command: its admin API does not say what is configured',
    )
  const request = configured as OperatorClientMembers
  // What it refers to may be gone from the configuration by now.
  const known = { scopes: parseScope(request.scope ?? ''), resources: request.resources ?? [], declared }
  const fresh = { id: String(id), secret: secret ?? Buffer.alloc(32) }
  const { client } = addOperatorClient(request, known, fresh, {
    by: 'operator',
    at: Number(members['client_id_issued_at']),
  })
  return {
    ...client,
    ...(client.secretHash !== undefined && secret === undefined && { secretHash: hashSecret('') }),
    ...(typeof lockedAt === 'number' && { lockedAt }),
  }
}
