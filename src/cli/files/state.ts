import { requestOf } from '../../clients/integration.ts'
import { writeClientMembers } from '../../clients/integration-members.ts'
import { textClaims } from '../../domain/claims.ts'
import { type Group, membershipKind } from '../../domain/group.ts'
import type { Client, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { Store } from '../../storage/store.ts'
import { inOrder, listGroups, namesOf } from '../../users/groups.ts'
import { mapRoles } from '../client-access.ts'
import type { ClientEntry, Entries, GroupEntry, UserEntry } from './schema.ts'

/** What a store has of what files describe. */
export interface State {
  readonly groups: readonly Group[]
  readonly users: readonly User[]
  /** Those that an operator added. */
  readonly clients: readonly Client[]
  /** The client ids that others have: of clients that registered themselves, or publish their metadata. */
  readonly otherClientIds: ReadonlySet<string>
  /** The ids of the groups that a user was added to, by the `sub` of the user. */
  readonly memberships: ReadonlyMap<string, readonly string[]>
}

const pageSize = 10_000

/** Reads everything that files can describe. */
export async function readState(store: Store): Promise<State> {
  const [groups, users, all] = await Promise.all([
    listGroups(store),
    store.list('user'),
    store.list('client'),
  ])
  const memberships = new Map<string, string[]>()
  let after: string | undefined
  for (;;) {
    const page = await store.listFrom(membershipKind, { prefix: '', after, limit: pageSize })
    for (const { userId, groupId } of page) {
      const known = memberships.get(userId)
      if (known === undefined) memberships.set(userId, [groupId])
      else known.push(groupId)
    }
    const last = page.at(-1)
    if (page.length < pageSize || last === undefined) break
    after = membershipKind.rowOf(last).id
  }
  const isOwn = ({ origin }: Client) => origin !== 'registered'
  return {
    groups,
    users,
    clients: all.filter(isOwn),
    otherClientIds: new Set(all.filter((client) => !isOwn(client)).map(({ id }) => id)),
    memberships,
  }
}

/** Writes a group as an entry of a file. */
export function groupEntry(
  { id, name, description, parentId, administratorsId }: Group,
  nameOf: (id: string) => string,
): GroupEntry {
  const parent = parentId === undefined ? undefined : nameOf(parentId)
  const administrators = administratorsId === undefined ? undefined : nameOf(administratorsId)
  return { name, id, ...omitUndefined({ description, parent, administrators }) }
}

/** Writes a user as an entry of a file. */
export function userEntry(
  { id, username, email, lockedAt, claims, attributes }: User,
  groups: readonly string[],
): UserEntry {
  const known = textClaims.flatMap((name) => {
    const value = claims[name]
    return typeof value === 'string' && value !== '' ? [[name, value] as const] : []
  })
  return {
    username,
    sub: id,
    ...omitUndefined({ email }),
    ...(email !== undefined && claims['email_verified'] === true && { email_verified: true }),
    ...(lockedAt !== undefined && { locked: true }),
    ...(groups.length > 0 && { groups: groups.toSorted() }),
    ...(known.length > 0 && { claims: Object.fromEntries(known) }),
    ...omitUndefined({ attributes }),
  }
}

/** Writes a client as an entry of a file, without its secret. */
export function clientEntry(client: Client, nameOf: (id: string) => string): ClientEntry {
  const { allowed_groups: allowed, token_claims: rules, ...members } = writeClientMembers(requestOf(client))
  return {
    client_id: client.id,
    ...members,
    ...(client.lockedAt !== undefined && { locked: true }),
    ...(Array.isArray(allowed) && { allowed_groups: allowed.map((id) => nameOf(String(id))) }),
    ...(Array.isArray(rules) && { token_claims: mapRoles(rules, nameOf) }),
  }
}

/** Writes all of it as entries, in the order of their names: the same state is always the same text. */
export function entriesOf({ groups, users, clients, memberships }: State): {
  [K in keyof Entries]: Entries[K][]
} {
  const nameOf = namesOf(groups)
  const by =
    <T>(name: (one: T) => string) =>
    (one: T, other: T) =>
      name(one) < name(other) ? -1 : 1
  const groupsOf = ({ id }: User) => (memberships.get(id) ?? []).map(nameOf)
  return {
    groups: inOrder(groups).map((group) => groupEntry(group, nameOf)),
    users: users.toSorted(by(({ username }) => username)).map((user) => userEntry(user, groupsOf(user))),
    clients: clients.toSorted(by(({ id }) => id)).map((client) => clientEntry(client, nameOf)),
  }
}
