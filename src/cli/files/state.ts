import { configuredOf } from '../../clients/describe.ts'
import { textClaims } from '../../domain/claims.ts'
import type { Group } from '../../domain/group.ts'
import type { Client, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { inOrder, namesOf } from '../../users/groups.ts'
import { mapRoles } from '../client-access.ts'
import type { ClientEntry, Entries, GroupEntry, UserEntry } from './schema.ts'
import type { State } from './target.ts'

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
  const { allowed_groups: allowed, token_claims: rules, ...members } = configuredOf(client)
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
