import { isDeepStrictEqual } from 'node:util'
import { clientOperations } from '../../admin/operations/clients.ts'
import { readGroup } from '../../admin/operations/group-reads.ts'
import { addGroup, editGroup, joinGroup, leaveGroup, removeGroup } from '../../admin/operations/groups.ts'
import type { Operation } from '../../admin/operations/operation.ts'
import { addUpstream, editUpstream, readUpstream, removeUpstream } from '../../admin/operations/upstreams.ts'
import { userActs } from '../../admin/operations/user-acts.ts'
import { changeUser, inviteUser } from '../../admin/operations/user-changes.ts'
import { readUser } from '../../admin/operations/users.ts'
import { configuredOf } from '../../clients/describe.ts'
import type { Group } from '../../domain/group.ts'
import { isObject } from '../../domain/is-object.ts'
import type { Client, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { declared } from '../../features.ts'
import { codeOf, ifFound, TryAgain } from '../failure.ts'
import type { Json, Operator } from '../operate.ts'
import { visible } from '../print.ts'
import type { Wanted } from './read.ts'
import { readState } from './read-state.ts'
import { differences, type State, userEntry } from './state.ts'

/** One object before and after, and the file that says so; without `before` it is added. */
export interface Step<T> {
  readonly before?: T
  readonly after: T
  readonly file: string
}

/** Where files are applied: a store, or a running server. Both perform the same operations, each a transaction. */
export type Target = ReturnType<typeof targetOf>

const clients = clientOperations(declared)
/** What reads, changes and deletes a kind of object, by the part of the path that names it. */
const kinds = {
  group: { id: 'group_id', read: readGroup, change: editGroup, remove: removeGroup },
  user: { id: 'sub', read: readUser, change: changeUser, remove: userActs.remove },
  client: { id: 'client_id', read: clients.read, change: clients.replace, remove: clients.remove },
  upstream: { id: 'upstream_id', read: readUpstream, change: editUpstream, remove: removeUpstream },
} as const

/** @param isPrinted Whether invitations are printed, also if there is a mail server. */
export function targetOf(operator: Operator, isPrinted: boolean) {
  /** What the plan is based on, by its id. */
  const seen = new Map<string, Json>()
  const see = (kind: keyof typeof kinds, found: Json) =>
    void seen.set(`${kind} ${found[kinds[kind].id]}`, found)
  /** Deletes what the plan saw, or changes it if there is a body. @throws {TryAgain} if it is another by now. */
  async function settle(from: Operator, kind: keyof typeof kinds, what: string, id: string, body?: object) {
    const { id: part, read, change, remove } = kinds[kind]
    const changed = `${what} was changed in the meantime; run the command again`
    const by: Operation = body === undefined ? remove : change
    const settled = from.edit(read, by, { [part]: id }, (found) => {
      if (isDeepStrictEqual(lasting(found), lasting(seen.get(`${kind} ${id}`) ?? {}))) return body
      throw new TryAgain(changed)
    })
    const after = await settled.catch((error: unknown) => {
      throw codeOf(error) === 'not_found' ? new TryAgain(changed) : error
    })
    if (body !== undefined) see(kind, after)
  }
  const onUser = (file: string, { username }: User) => operator.from({ file, what: `user ${username}` })
  const onUpstream = (file: string, id: string) => operator.from({ file, what: `upstream ${id}` })
  const onClient = (file: string, { id }: Client) => operator.from({ file, what: `client ${id}` })

  return {
    /** The client that a server is called with. */
    callerId: operator.callerId,
    /** @param wanted What the files have; absent: all is read. */
    readState: (wanted?: Wanted): Promise<State> => readState(operator, wanted, see),

    /** Makes the steps in their order; a store makes all of them in one transaction. */
    async changeGroups(steps: readonly Step<Group>[]) {
      await operator.together(async (together) => {
        for (const { before, after, file } of steps) {
          const what = `group ${after.name}`
          const from = together.from({ file, what })
          if (before === undefined)
            see('group', await from.perform(addGroup, {}, { group_id: after.id, ...membersOf(after) }))
          else await settle(from, 'group', what, after.id, bodyOf(membersOf(before), membersOf(after)))
        }
      })
    },
    /** Deletes groups, the lowest first. */
    async deleteGroups(groups: readonly Group[], file: string) {
      await operator.together(async (together) => {
        for (const { id, name } of groups) {
          const what = `group ${name}`
          await settle(together.from({ file, what }), 'group', what, id)
        }
      })
    },

    /** Returns where the invitation went; a locked user gets none. */
    async addUser(user: User, file: string): Promise<Json | undefined> {
      const { id: sub, username, email, lockedAt, attributes } = user
      const { claims } = userEntry(user, [])
      const body = {
        ...omitUndefined({ email, claims, attributes }),
        ...{ sub, username, send: !isPrinted, locked: lockedAt !== undefined },
        email_verified: user.claims['email_verified'] === true,
      }
      const from = onUser(file, user)
      const { invitation } = await from.perform(inviteUser, {}, body)
      if (from.unsent !== undefined)
        process.stderr.write(`lychgate: ${visible(from.unsent)}; give the link to ${username} yourself\n`)
      if (isObject(invitation)) {
        // Printed in this order: the link is what an operator looks for.
        const { sent_to, link, ...rest } = invitation
        return omitUndefined({ sent_to, link, ...rest })
      }
      // A repeated request: the response to the first one was lost, and had the link.
      return lockedAt === undefined ? { link: 'was lost with a response; make another one' } : undefined
    },
    async changeUser({ before, after, file }: Required<Step<User>>) {
      const body = userBody(before, after)
      if (Object.keys(body).length === 0) return
      await settle(onUser(file, after), 'user', `user ${after.username}`, after.id, body)
    },
    async addMember({ id: group_id }: Group, user: User, file: string) {
      await onUser(file, user).perform(joinGroup, { group_id }, { sub: user.id })
    },
    async removeMember({ id: group_id }: Group, user: User, file: string) {
      await ifFound(onUser(file, user).perform(leaveGroup, { group_id, sub: user.id }))
    },
    deleteUser: (user: User, file: string) =>
      settle(onUser(file, user), 'user', `user ${user.username}`, user.id),

    async addClient(client: Client, secret: string | undefined, file: string) {
      await onClient(file, client).perform(
        clients.create,
        {},
        {
          client_id: client.id,
          ...(secret !== undefined && { client_secret: secret }),
          ...(client.lockedAt !== undefined && { locked: true }),
          ...configuredOf(client),
        },
      )
    },
    /** @param secret The new one, if it is replaced. */
    async changeClient({ before, after, file }: Required<Step<Client>>, secret: string | undefined) {
      const [was, is] = [before, after].map(({ lockedAt }) => lockedAt !== undefined)
      await settle(onClient(file, after), 'client', `client ${after.id}`, after.id, {
        ...configuredOf(after),
        ...(was !== is && { locked: is }),
        ...(secret !== undefined && { client_secret: secret }),
      })
    },
    deleteClient: (client: Client, file: string) =>
      settle(onClient(file, client), 'client', `client ${client.id}`, client.id),

    async addUpstream(id: string, body: object, file: string) {
      await onUpstream(file, id).perform(addUpstream, {}, body)
    },
    /** @param body What changes; absent: it is deleted. */
    settleUpstream: (id: string, file: string, body?: object) =>
      settle(onUpstream(file, id), 'upstream', `upstream ${id}`, id, body),
  }
}

/** What only the use of a client changes. */
const fleeting = [
  'last_used_at',
  'pkce_learned_at',
  'secret_used_at',
  'previous_secret_used_at',
  'previous_secret_expires_at',
]

function lasting(described: Json): Json {
  return Object.fromEntries(Object.entries(described).filter(([name]) => !fleeting.includes(name)))
}

function membersOf({ name, description, parentId, administratorsId }: Group) {
  return omitUndefined({ name, description, parent_id: parentId, administrators_id: administratorsId })
}

/** An empty text removes what was there. */
function bodyOf(before: object, after: object): Json {
  return Object.fromEntries(
    differences(before, after).map(({ member, after: value = '' }) => [member, value]),
  )
}

function userBody(before: User, after: User): object {
  const body: Record<string, unknown> = {}
  for (const [member, value] of Object.entries(bodyOf(userEntry(before, []), userEntry(after, [])))) {
    const [name = '', ...rest] = member.split('.')
    if (['email_verified', 'locked'].includes(name)) body[name] = value === true
    // `as`: only this line sets it.
    else if (rest.length > 0) body[name] = { ...(body[name] as object | undefined), [rest.join('.')]: value }
    else body[name] = value
  }
  return body
}
