import { isDeepStrictEqual } from 'node:util'
import { methodOf } from '../../admin/operations/operation.ts'
import type { OperatorClientMembers } from '../../clients/core-members.ts'
import { addOperatorClient } from '../../clients/operator-client.ts'
import type { Attribute } from '../../domain/attributes.ts'
import type { AuditContext } from '../../domain/audit.ts'
import type { Group } from '../../domain/group.ts'
import { isObject } from '../../domain/is-object.ts'
import type { Client, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { parseScope } from '../../domain/scope.ts'
import { hashSecret } from '../../domain/secret.ts'
import { declared } from '../../features.ts'
import { CommandFailed, TryAgain } from '../failure.ts'
import type { AdminApi } from './admin-api.ts'
import { clientTarget } from './client-target.ts'
import { secretOf } from './clients.ts'
import { differences } from './plan.ts'
import type { Wanted } from './read.ts'
import { userEntry } from './state.ts'
import type { State, Step, Target } from './target.ts'

type Json = Readonly<Record<string, unknown>>

/** A running server, by its admin API: each object is a request or some, and the server decides each of them. */
export function apiTarget(api: AdminApi, isPrinted: boolean): Target {
  /** What the plan is based on, by its path. */
  const seen = new Map<string, Json>()
  const list = async (path: string, idOf: (one: Json) => unknown) => {
    const items = await api.list(path)
    for (const one of items) seen.set(`${path}/${encodeURIComponent(String(idOf(one)))}`, one)
    return items
  }
  /** Changes what the plan saw. @throws {TryAgain} if it is another by now. */
  const change = async (method: string, path: string, what: string, context: AuditContext, body?: object) => {
    const { body: now, etag } = await api.send('GET', path, what)
    if (!isDeepStrictEqual(lasting(now), lasting(seen.get(path) ?? {})))
      throw new TryAgain(`${what} was changed in the meantime; run the command again`)
    const { body: after } = await api.send(method, path, what, {
      ifMatch: etag,
      context,
      ...(body && { body }),
    })
    seen.set(path, after)
  }
  const act = async (path: string, name: string, what: string, context: AuditContext) => {
    const { body: after } = await api.send('POST', `${path}/${name}`, what, { body: {}, context })
    if (seen.has(path)) seen.set(path, after)
  }
  const groupPath = ({ id }: Group) => `/groups/${id}`
  const userPath = ({ id }: User) => `/users/${id}`
  const clientPath = ({ id }: Client) => `/clients/${encodeURIComponent(id)}`

  return {
    callerId: api.callerId,
    async readState(wanted) {
      const readsUsers = wanted === undefined || wanted.users !== undefined
      const readsClients = wanted === undefined || wanted.clients !== undefined
      const groups = (await list('/groups', (one) => one['group_id'])).map(groupOf)
      const users = readsUsers ? (await list('/users', (one) => one['sub'])).map(userOf) : []
      const memberships = new Map<string, string[]>()
      for (const { id } of readsUsers ? groups : [])
        for (const { sub } of await api.list(`/groups/${id}/members`))
          memberships.set(String(sub), [...(memberships.get(String(sub)) ?? []), id])
      const all = readsClients ? await list('/clients', (one) => one['client_id']) : []
      const own = all.filter(({ origin }) => origin !== 'registered')
      const resources = readsClients ? await api.list('/resources') : []
      const matching = await compareSecrets(wanted, own)
      return {
        groups,
        users,
        memberships,
        clients: own.map((one) => clientOf(one, matching.get(String(one['client_id'])))),
        otherClientIds: new Set(
          all.filter((one) => !own.includes(one)).map((one) => String(one['client_id'])),
        ),
        known: {
          // `as`: as the description of the API says.
          scopes: resources.flatMap(({ scopes }) => scopes as string[]),
          resources: resources.map(({ identifier }) => String(identifier)),
          declared,
        },
        attributes: readsUsers ? (await api.list('/attributes')).map(attributeOf) : [],
      } satisfies State
    },

    async changeGroups(steps) {
      for (const step of steps) {
        const what = `group ${step.after.name}`
        const body = groupBody(step)
        const { before, context } = step
        const path = groupPath(step.after)
        if (before !== undefined) await change('PATCH', path, what, context, body)
        else seen.set(path, (await api.send('POST', '/groups', what, { body, context })).body)
      }
    },
    async deleteGroups(groups, _, context) {
      for (const group of groups) await change('DELETE', groupPath(group), `group ${group.name}`, context)
    },

    async addUser(user, context) {
      const { id: sub, username, email, lockedAt, attributes } = user
      const { claims } = userEntry(user, [])
      const body = {
        ...omitUndefined({ email, claims, attributes }),
        ...{ sub, username, send: !isPrinted, locked: lockedAt !== undefined },
        email_verified: user.claims['email_verified'] === true,
      }
      const { body: added } = await api.send('POST', '/users', `user ${username}`, { body, context })
      const { invitation } = added
      if (isObject(invitation)) return invitation
      // A repeated request: the response to the first one was lost, and had the link.
      return lockedAt === undefined ? { link: 'was lost with a response; make another one' } : undefined
    },
    async changeUser({ before, after, context }) {
      const what = `user ${after.username}`
      const body = userBody(before, after)
      if (Object.keys(body).length > 0) await change('PATCH', userPath(after), what, context, body)
      const [was, is] = [before.lockedAt !== undefined, after.lockedAt !== undefined]
      if (was !== is) await act(userPath(after), is ? 'lock' : 'unlock', what, context)
    },
    async addMember(group, { id: sub, username }, context) {
      await api.send('POST', `${groupPath(group)}/members`, `user ${username}`, { body: { sub }, context })
    },
    async removeMember(group, { id, username }, context) {
      await api.send('DELETE', `${groupPath(group)}/members/${id}`, `user ${username}`, { context })
    },
    deleteUser: (user, context) => change('DELETE', userPath(user), `user ${user.username}`, context),

    ...clientTarget(async (operation, client, context, body) => {
      const what = `client ${client.id}`
      if (operation.kind === 'create')
        await api.send('POST', operation.url, what, { context, ...(body && { body }) })
      else await change(methodOf(operation), clientPath(client), what, context, body)
    }),
  }

  /** Returns the secrets of the files that are those of the clients: the server does not tell a secret. */
  async function compareSecrets(wanted: Wanted | undefined, clients: readonly Json[]) {
    const ids = new Set(clients.map((one) => one['client_id']))
    const matching = new Map<string, string>()
    for (const placed of wanted?.clients ?? []) {
      const { client_id: id } = placed.entry
      const secret = ids.has(id) ? readableSecret(placed) : undefined
      if (secret === undefined) continue
      const path = `/clients/${encodeURIComponent(id)}/secret/compare`
      const { body } = await api.send('POST', path, `client ${id}`, { body: { client_secret: secret } })
      if (body['matches'] === true) matching.set(id, secret)
    }
    return matching
  }
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

/** What only the use of a client changes. */
const fleeting = ['last_used_at', 'secret_used_at', 'previous_secret_used_at', 'previous_secret_expires_at']

function lasting(one: Json): Json {
  return Object.fromEntries(Object.entries(one).filter(([name]) => !fleeting.includes(name)))
}

// `as` in what follows: as the description of the API says.

function attributeOf({ name, type, values = [], visible, editable }: Json): Attribute {
  return { name, type, values, visible, editable } as Attribute
}

function groupOf(one: Json): Group {
  return {
    id: String(one['group_id']),
    name: String(one['name']),
    ...(omitUndefined({
      description: one['description'],
      parentId: one['parent_id'],
      administratorsId: one['administrators_id'],
    }) as Partial<Group>),
    createdAt: Number(one['created_at']),
  }
}

/** An empty text removes what a group had. */
function groupBody({ before, after }: Step<Group>) {
  const members = ({ name, description, parentId, administratorsId }: Group) => ({
    name,
    description,
    parent_id: parentId,
    administrators_id: administratorsId,
  })
  if (before === undefined) return { group_id: after.id, ...omitUndefined(members(after)) }
  return bodyOfDifferences(members(before), members(after))
}

function bodyOfDifferences(before: object, after: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    differences(before, after).map(({ member, after: value = '' }) => [member, value]),
  )
}

function userOf(one: Json): User {
  const claims = one['claims'] as User['claims']
  const attributes = one['attributes'] as NonNullable<User['attributes']>
  return {
    id: String(one['sub']),
    username: String(one['username']),
    claims,
    ...(omitUndefined({ email: claims['email'], lockedAt: one['locked_at'] }) as Partial<User>),
    ...(Object.keys(attributes).length > 0 && { attributes }),
    seeded: one['seeded'] === true,
    createdAt: Number(one['created_at']),
    updatedAt: Number(claims['updated_at']),
  }
}

function userBody(before: User, after: User): object {
  const body: Record<string, unknown> = {}
  for (const { member, after: value } of differences(userEntry(before, []), userEntry(after, []))) {
    const [name = '', ...rest] = member.split('.')
    if (name === 'locked') continue
    if (name === 'email_verified') body[name] = value === true
    else if (rest.length === 0) body[name] = value ?? ''
    else body[name] = { ...(body[name] as object | undefined), [rest.join('.')]: value ?? '' }
  }
  return body
}

/** @param secret The one it has, if that is known. */
function clientOf(one: Json, secret: string | undefined): Client {
  const { client_id: id, configured, locked_at: lockedAt } = one
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
    at: Number(one['client_id_issued_at']),
  })
  return {
    ...client,
    ...(client.secretHash !== undefined && secret === undefined && { secretHash: hashSecret('') }),
    ...(typeof lockedAt === 'number' && { lockedAt }),
  }
}
