import { isDeepStrictEqual } from 'node:util'
import { configuredOf } from '../../clients/describe.ts'
import type { ClientVocabulary } from '../../clients/members.ts'
import type { Attribute } from '../../domain/attributes.ts'
import { textClaims } from '../../domain/claims.ts'
import type { Group } from '../../domain/group.ts'
import { isObject } from '../../domain/is-object.ts'
import type { Client, User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { inOrder, namesOf } from '../../users/groups.ts'
import { mapRoles } from '../client-access.ts'
import type { ClientEntry, Entries, GroupEntry, UpstreamEntry, UserEntry } from './schema.ts'

/** What a server or its store has of what files describe. */
export interface State {
  readonly groups: readonly Group[]
  readonly users: readonly User[]
  /** Those that an operator added. */
  readonly clients: readonly Client[]
  /** The client ids that others have: of clients that registered themselves, or publish their metadata. */
  readonly otherClientIds: ReadonlySet<string>
  /** The ids of the groups that a user was added to, by the `sub` of the user. */
  readonly memberships: ReadonlyMap<string, readonly string[]>
  /** What clients may refer to. */
  readonly known: ClientVocabulary
  /** The attributes of users that are declared. */
  readonly attributes: readonly Attribute[]
  /** Those that an operator added, as entries without secrets. */
  readonly upstreams: readonly UpstreamEntry[]
  /** The ids of those that the configuration has. */
  readonly otherUpstreamIds: ReadonlySet<string>
  /** Whether a secret is the one that the server has for an upstream, by its id; absent: no file names one. */
  readonly hasSecret: ReadonlyMap<string, boolean>
}

/** A member of an entry before and after; absent: the entry has none. */
export interface Difference {
  readonly member: string
  readonly before?: unknown
  readonly after?: unknown
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
  const textMembers = textClaims.flatMap((name) => {
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
    ...(textMembers.length > 0 && { claims: Object.fromEntries(textMembers) }),
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
export function entriesOf({ groups, users, clients, memberships, upstreams }: State): {
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
    upstreams: upstreams.toSorted(by((upstream) => upstream.upstream_id)),
  }
}

/** Returns what two entries differ in. Members of objects, such as claims, are compared one by one. */
export function differences(before: object, after: object): readonly Difference[] {
  const [old, wanted] = [membersOf(before), membersOf(after)]
  return [...new Set([...wanted.keys(), ...old.keys()])].flatMap((member) => {
    const [from, to] = [old.get(member), wanted.get(member)]
    if (isDeepStrictEqual(from, to)) return []
    return [{ member, ...(from !== undefined && { before: from }), ...(to !== undefined && { after: to }) }]
  })
}

function membersOf(entry: object): ReadonlyMap<string, unknown> {
  return new Map(
    Object.entries(entry).flatMap(([name, value]): [string, unknown][] =>
      isObject(value)
        ? Object.entries(value).map(([inner, one]) => [`${name}.${inner}`, one])
        : [[name, value]],
    ),
  )
}
