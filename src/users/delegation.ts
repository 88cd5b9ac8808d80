import type { FindableKind, Reading, RecordReads } from '../domain/decision.ts'
import {
  deepestGroup,
  type Group,
  groupAdministrationKind,
  groupKind,
  type Membership,
  membershipKind,
  membershipPrefix,
} from '../domain/group.ts'
import type { RecordKind } from '../domain/record.ts'
import { isAdministrator } from './administrators.ts'

/*
 * Administrators of groups. A group names another group whose members administer it, and the groups below it. They see
 * and change its members, except those who may do more than they do themselves: administrators of the server, and
 * administrators of groups that they do not administer.
 */

/** What these rules read. */
type GroupReads = Pick<RecordReads, 'find' | 'listOf' | 'listFrom'>

/** The ids of the groups of a user who administers groups, with those above them. */
export type OwnGroups = ReadonlySet<string>

/**
 * Reads the groups of a user, with those above them. In a transaction the memberships and the groups stay as they are
 * until it ends.
 */
export function* readGroupsOf(read: GroupReads, userId: string): Reading<readonly Group[]> {
  const groups = new Map<string, Group>()
  let nextIds: string[] = []
  for (const { groupId } of yield* read.listOf(membershipKind, userId)) {
    // By its key, which locks it: a list would not notice that the membership ends at the same time.
    const membership = yield* read.find(membershipKind, membershipPrefix(groupId) + userId)
    if (membership !== undefined) nextIds.push(groupId)
  }
  for (let depth = 0; depth < deepestGroup && nextIds.length > 0; depth += 1) {
    const parents: string[] = []
    for (const id of nextIds) {
      const group = groups.has(id) ? undefined : yield* read.find(groupKind, id)
      if (group === undefined) continue
      groups.set(id, group)
      if (group.parentId !== undefined) parents.push(group.parentId)
    }
    nextIds = parents
  }
  return [...groups.values()]
}

/** Reads a group and the groups above it. Empty if there is no such group. */
export function* readLineOf(read: GroupReads, groupId: string): Reading<readonly Group[]> {
  const line: Group[] = []
  let next: string | undefined = groupId
  while (next !== undefined && line.length < deepestGroup) {
    const group: Group | undefined = yield* read.find(groupKind, next)
    if (group !== undefined) line.push(group)
    next = group?.parentId
  }
  return line
}

/** Whether the members of one of these groups administer some group. */
export function* administersAny(read: GroupReads, own: OwnGroups): Reading<boolean> {
  for (const id of own) if ((yield* administeredBy(read, id, 1)).length > 0) return true
  return false
}

/** Whether a user can be seen and changed by those who are in these groups. */
export function* mayAdministerUser(
  read: GroupReads,
  own: OwnGroups,
  userId: string,
  administrators: string,
): Reading<boolean> {
  return yield* isInReach(read, own, yield* readGroupsOf(read, userId), administrators)
}

/** Whether a group can be seen, and its members changed, by those who are in these groups. */
export function* mayAdministerGroup(
  read: GroupReads,
  own: OwnGroups,
  groupId: string,
  administrators: string,
): Reading<boolean> {
  return yield* isInReach(read, own, yield* readLineOf(read, groupId), administrators)
}

/** One who is in a group has what it and the groups above it give: a group is judged like a user who is in it. */
function* isInReach(
  read: GroupReads,
  own: OwnGroups,
  groups: readonly Group[],
  administrators: string,
): Reading<boolean> {
  if (!isAdministered(groups, own) || isAdministrator(groups, administrators)) return false
  for (const { id } of groups) {
    const administered = yield* administeredBy(read, id, mostAdministered + 1)
    if (administered.length > mostAdministered) return false
    for (const groupId of administered)
      if (!isAdministered(yield* readLineOf(read, groupId), own)) return false
  }
  return true
}

/** One whose group administers more groups than that may do more than anyone who is no administrator of the server. */
const mostAdministered = 100

function isAdministered(groups: readonly Group[], own: OwnGroups): boolean {
  return groups.some(({ administratorsId }) => administratorsId !== undefined && own.has(administratorsId))
}

function* administeredBy(read: GroupReads, id: string, limit: number): Reading<readonly string[]> {
  const prefix = membershipPrefix(id)
  const found = yield* read.listFrom(groupAdministrationKind, { prefix, after: prefix, limit })
  return found.map(({ groupId }) => groupId)
}

/** All groups in memory, with what those who are in some of them can see. For lists: they judge many users at once. */
export interface Reach {
  /** The groups whose members they administer, in the order of their ids. */
  readonly groups: readonly Group[]
  /** Whether a user with these memberships can be seen. */
  includes(memberships: readonly Membership[]): boolean
}

/** Returns what those who are in some groups can see, by the same rules. */
export function reachOf(all: readonly Group[], own: OwnGroups, administrators: string): Reach {
  const byId = new Map(all.map((group) => [group.id, group]))
  const administered = Map.groupBy(all, ({ administratorsId }) => administratorsId ?? '')
  const readsOf = (memberships: readonly Membership[]): GroupReads => {
    const at = function* (value: unknown): Reading<never> {
      return (yield value) as never // a record of the kind
    }
    return {
      find: (kind: FindableKind | RecordKind<unknown>, key: string) =>
        at(
          kind === groupKind
            ? byId.get(key)
            : // Of the user without an id, below.
              memberships.find(({ groupId }) => membershipPrefix(groupId) === key),
        ),
      listOf: () => at(memberships),
      listFrom: (_, { prefix, limit }) =>
        at((administered.get(prefix.trimEnd()) ?? []).slice(0, limit).map(({ id }) => ({ groupId: id }))),
    }
  }
  const reads = readsOf([])
  return {
    groups: all
      .filter(({ id }) => resultOf(mayAdministerGroup(reads, own, id, administrators)))
      .toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    includes: (memberships) => resultOf(mayAdministerUser(readsOf(memberships), own, '', administrators)),
  }
}

/** Runs a reading that waits for nothing: it gets what it yields. */
function resultOf<T>(reading: Reading<T>): T {
  let step = reading.next()
  while (step.done !== true) step = reading.next(step.value)
  return step.value
}
