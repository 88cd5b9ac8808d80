import { type AuditContext, auditEvent } from './audit.ts'
import { check } from './check.ts'
import { isDeceptive } from './deceptive.ts'
import { accept, type Decision, insert, put, remove, update, type Write } from './decision.ts'
import type { Client, Seconds } from './model.ts'
import { omitUndefined } from './omit-undefined.ts'
import { recordKind } from './record.ts'

/** A group of users. Its members are members of its parent, too. */
export interface Group {
  /** Never reassigned: a group keeps it when it is renamed. */
  readonly id: string
  /** What clients see. Unique without regard to case. */
  readonly name: string
  readonly description?: string
  readonly parentId?: string
  /** The id of the group whose members administer this one and those below it. */
  readonly administratorsId?: string
  readonly createdAt: Seconds
}

/** One user in one group, as an operator added them: not in the group's parents. */
export interface Membership {
  readonly groupId: string
  readonly userId: string
  readonly addedAt: Seconds
  /** The issuer of the upstream that gave it; absent: an operator did. */
  readonly upstream?: string
}

/** Changes with every change of a group, so that changes of the tree wait for each other. */
export interface GroupTree {
  readonly revision: number
}

export const groupKind = recordKind<Group>('group', {
  id: ({ id }) => id,
  madeAt: ({ createdAt }) => createdAt,
})

/** The names that are taken. */
export const groupNameKind = recordKind<Pick<Group, 'id' | 'name'>>('groupName', {
  id: ({ name }) => canonicalGroupName(name),
})

export const membershipKind = recordKind<Membership>('membership', {
  id: ({ groupId, userId }) => membershipPrefix(groupId) + userId,
  userId: ({ userId }) => userId,
  madeAt: ({ addedAt }) => addedAt,
})

/** Which groups the members of a group administer: found by that group. */
export const groupAdministrationKind = recordKind<{
  readonly administratorsId: string
  readonly groupId: string
}>('groupAdministration', {
  id: ({ administratorsId, groupId }) => membershipPrefix(administratorsId) + groupId,
})

export const groupTreeKind = recordKind<GroupTree>('groupTree', { id: () => groupTreeKey })

/** The key of the only record of its kind. */
export const groupTreeKey = 'tree'

/** What the keys of the members of a group begin with. */
export function membershipPrefix(groupId: string): string {
  return `${groupId} `
}

/** The form in which names are compared. */
export function canonicalGroupName(name: string): string {
  return name.normalize('NFKC').toLowerCase()
}

const longestName = 100
const longestDescription = 500
/** A group that has no parent has depth 1. */
export const deepestGroup = 10
/** A server has at most this many groups: every change of one reads all. */
export const mostGroups = 10_000

/**
 * Without a comma: proxies join the names to one header, in which it would separate two. And without characters that
 * cannot be seen.
 */
const nameSyntax = /^[\p{L}\p{N}](?:[\p{L}\p{M}\p{N} ._:/@+-]*[\p{L}\p{M}\p{N}])?$/u

/**
 * Returns the ids of the groups whose members may use a client, the member `allowed_groups` of its metadata;
 * undefined if every user may.
 */
export function allowedGroupsOf({ extra }: Pick<Client, 'extra'>): readonly string[] | undefined {
  const ids = extra?.['allowed_groups']
  return Array.isArray(ids) ? ids.map(String) : undefined
}

/** The form of the id of a group: 16 bytes, base64url. */
export const groupIdPattern = '^group_[A-Za-z0-9_-]{21}[AQgw]$'

/** Returns the bytes of an id of this form. */
export function bytesOfGroupId(id: string): Buffer {
  return Buffer.from(id.slice('group_'.length), 'base64url')
}

/** What an operator says about a group. An empty text removes the description, the parent or the administrators. */
export interface GroupChange {
  readonly name?: string | undefined
  readonly description?: string | undefined
  /** The id of its new parent. */
  readonly parentId?: string | undefined
  /** The id of the group whose members administer it. */
  readonly administratorsId?: string | undefined
}

/** Creates a group, and returns it with its writes. @param fresh 16 random bytes. */
export function createGroup(
  groups: readonly Group[],
  { name = '', description, parentId, administratorsId }: GroupChange,
  fresh: Buffer,
  context: AuditContext,
): Decision<Group> {
  const group: Group = {
    id: `group_${fresh.toString('base64url')}`,
    name: requireName(name),
    ...omitUndefined({
      description: requireDescription(description),
      parentId: parentId || undefined,
      administratorsId: administratorsId || undefined,
    }),
    createdAt: context.at,
  }
  assertFree(groups, group)
  check(
    groups.length < mostGroups,
    'lychgate-groups-limit',
    'invalid_request',
    `there are ${mostGroups} groups already, and a server has no more`,
  )
  assertTree([...groups, group], group)
  const event = auditEvent('group-created', context, { group: group.id, name: group.name })
  return accept(
    group,
    insert(groupKind, group),
    insert(groupNameKind, group),
    ...administration(undefined, group),
    event,
  )
}

/** Finds the group with a name, or creates it. @param fresh 16 random bytes. */
export function ensureGroup(
  groups: readonly Group[],
  name: string,
  fresh: Buffer,
  context: AuditContext,
): Decision<Group> {
  const wanted = canonicalGroupName(name)
  const known = groups.find((group) => canonicalGroupName(group.name) === wanted)
  return known === undefined ? createGroup(groups, { name }, fresh, context) : accept(known)
}

/** Changes a group: it keeps its id and its members. */
export function changeGroup(
  groups: readonly Group[],
  before: Group,
  change: GroupChange,
  context: AuditContext,
): Decision<Group> {
  const { description: _, parentId: __, administratorsId: ___, ...rest } = before
  const description = requireDescription(change.description ?? before.description)
  const parentId = (change.parentId ?? before.parentId) || undefined
  const administratorsId = (change.administratorsId ?? before.administratorsId) || undefined
  const name = change.name === undefined ? before.name : requireName(change.name)
  const group: Group = { ...rest, name, ...omitUndefined({ description, parentId, administratorsId }) }
  const others = groups.filter(({ id }) => id !== group.id)
  assertFree(others, group)
  assertTree([...others, group], group)
  const isRenamed = canonicalGroupName(name) !== canonicalGroupName(before.name)
  const renaming = isRenamed
    ? [remove(groupNameKind, canonicalGroupName(before.name)), insert(groupNameKind, group)]
    : [put(groupNameKind, group)]
  const names = Object.entries({
    name,
    description,
    parent_id: parentId,
    administrators_id: administratorsId,
  })
  const former = [before.name, before.description, before.parentId, before.administratorsId]
  const changed = names.flatMap(([member, now], index) => (now === former[index] ? [] : [member])).join(' ')
  const facts = { group: group.id, name, changed, ...(name !== before.name && { before: before.name }) }
  return accept(
    group,
    update(groupKind, group),
    ...renaming,
    ...administration(before, group),
    ...(changed === '' ? [] : [auditEvent('group-changed', context, facts)]),
  )
}

/** Returns the writes by which the administrators of a group are found, and no longer those it had. */
function administration(before: Group | undefined, after: Group | undefined): readonly Write[] {
  if (before?.administratorsId === after?.administratorsId) return []
  const of = ({ id: groupId, administratorsId }: Group) =>
    administratorsId === undefined ? undefined : { administratorsId, groupId }
  const [old, fresh] = [before && of(before), after && of(after)]
  return [
    ...(old === undefined ? [] : [remove(groupAdministrationKind, groupAdministrationKind.rowOf(old).id)]),
    ...(fresh === undefined ? [] : [put(groupAdministrationKind, fresh)]),
  ]
}

/**
 * Deletes a group with its memberships. One that has groups below it stays. The groups that its members administered
 * have no administrators of their own then.
 */
export function deleteGroup(groups: readonly Group[], group: Group, context: AuditContext): Decision<Group> {
  check(
    !groups.some(({ parentId }) => parentId === group.id),
    'lychgate-group-has-children',
    'invalid_request',
    'the group is the parent of another one; give that another parent first',
  )
  const administered = groups.filter(
    ({ id, administratorsId }) => administratorsId === group.id && id !== group.id,
  )
  const orphaned = administered.flatMap(
    (one) => changeGroup(groups, one, { administratorsId: '' }, context).writes,
  )
  return accept(
    group,
    ...orphaned,
    // The group first: who adds a member locks it, and has committed then.
    remove(groupKind, group.id),
    remove(groupNameKind, canonicalGroupName(group.name)),
    { op: 'deleteRecordsFrom', kind: membershipKind.name, prefix: membershipPrefix(group.id) },
    ...administration(group, undefined),
    auditEvent('group-deleted', context, { group: group.id, name: group.name }),
  )
}

/**
 * Adds a user to a group; nothing happens if they are in it. What an upstream gave, an operator who adds them gives
 * for good.
 * @param upstream The issuer of the upstream that gives it; absent: an operator does.
 */
export function addMember(
  { id: groupId, name }: Group,
  userId: string,
  membership: Membership | undefined,
  context: AuditContext,
  upstream?: string,
): readonly Write[] {
  if (membership !== undefined && (membership.upstream === undefined || upstream !== undefined)) return []
  const origin = upstream === undefined ? {} : { upstream }
  return [
    put(membershipKind, { groupId, userId, addedAt: context.at, ...origin }),
    auditEvent('group-member-added', context, { userId, group: groupId, name, ...origin }),
  ]
}

/** Removes a user from a group. */
export function removeMember(
  { id, name }: Group,
  { groupId, userId, upstream }: Membership,
  context: AuditContext,
): readonly Write[] {
  const origin = upstream === undefined ? {} : { upstream }
  return [
    remove(membershipKind, membershipPrefix(groupId) + userId),
    auditEvent('group-member-removed', context, { userId, group: id, name, ...origin }),
  ]
}

/** Whether a group can have this name. */
export function isGroupName(name: string): boolean {
  return name.length <= longestName && nameSyntax.test(name)
}

function requireName(text: string): string {
  const name = text.normalize('NFKC').trim()
  check(
    isGroupName(name),
    'lychgate-group-name',
    'invalid_request',
    `the name of a group has 1 to ${longestName} characters: alphabetic ones, digits, spaces and . _ : / @ + -; the first and the last are alphabetic or digits`,
  )
  return name
}

function requireDescription(text: string | undefined): string | undefined {
  const description = text?.trim() ?? ''
  check(
    description.length <= longestDescription && !isDeceptive(description),
    'lychgate-group-description',
    'invalid_request',
    `the description of a group has at most ${longestDescription} characters, and none that is invisible`,
  )
  return description === '' ? undefined : description
}

function assertFree(others: readonly Group[], { name }: Group): void {
  const isTaken = others.some((other) => canonicalGroupName(other.name) === canonicalGroupName(name))
  check(!isTaken, 'lychgate-group-name-unique', 'invalid_request', 'another group has this name')
}

/** Rejects a parent or administrators that do not exist, and a parent that is below the group or lies too deep. */
function assertTree(groups: readonly Group[], group: Group): void {
  const byId = new Map(groups.map((one) => [one.id, one]))
  check(
    group.parentId === undefined || byId.has(group.parentId),
    'lychgate-group-parent',
    'invalid_request',
    'there is no such parent',
  )
  check(
    group.administratorsId === undefined || byId.has(group.administratorsId),
    'lychgate-group-administrators',
    'invalid_request',
    'there is no such group of administrators',
  )
  check(
    !ancestorsOf(group, byId).includes(group),
    'lychgate-group-no-cycle',
    'invalid_request',
    'the parent is the group itself, or below it',
  )
  const depths = groups.map((one) => 1 + ancestorsOf(one, byId).length)
  check(
    Math.max(...depths) <= deepestGroup,
    'lychgate-group-depth',
    'invalid_request',
    `groups lie at most ${deepestGroup} deep`,
  )
}

/** Returns the parent of a group, its parent, and so on; up to the group itself if they form a circle. */
function ancestorsOf({ parentId }: Group, byId: ReadonlyMap<string, Group>): readonly Group[] {
  const members: Group[] = []
  let next = parentId === undefined ? undefined : byId.get(parentId)
  while (next !== undefined && !members.includes(next)) {
    members.push(next)
    next = next.parentId === undefined ? undefined : byId.get(next.parentId)
  }
  return members
}
