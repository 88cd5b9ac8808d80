import type { AuditContext } from '../domain/audit.ts'
import { accept, type Decision, insert, update, type Write, withWrites } from '../domain/decision.ts'
import {
  addMember,
  canonicalGroupName,
  deepestGroup,
  type Group,
  type GroupTree,
  groupKind,
  groupTreeKey,
  groupTreeKind,
  type Membership,
  membershipKind,
  membershipPrefix,
  mostGroups,
  removeMember,
} from '../domain/group.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { RecordKind } from '../domain/record.ts'
import { type FindKind, type Found, RecordExists, type RecordPage, type Store } from '../storage/store.ts'

/** Lists every group, oldest first. For operators' commands, not for requests. */
export function listGroups(store: Pick<Store, 'listKind'>): Promise<readonly Group[]> {
  return store.listKind(groupKind, { madeUntil: Number.MAX_SAFE_INTEGER, limit: mostGroups })
}

/**
 * Returns the groups of a user: those they were added to, and the parents of these. It reads the memberships of the
 * user by their index, and each group by its key.
 */
export async function groupsOf(
  store: Pick<Store, 'find' | 'listOf'>,
  userId: string,
): Promise<readonly Group[]> {
  const memberships = await store.listOf(membershipKind, userId)
  return groupsAbove(
    store,
    memberships.map(({ groupId }) => groupId),
  )
}

/** Returns the groups with these ids that are there, and the parents of these. */
export async function groupsAbove(
  store: Pick<Store, 'find'>,
  ids: readonly string[],
): Promise<readonly Group[]> {
  const byId = new Map<string, Group>()
  let nextIds = ids
  for (let depth = 0; depth < deepestGroup && nextIds.length > 0; depth += 1) {
    const groups = await Promise.all(nextIds.map((id) => store.find(groupKind, id)))
    const fresh = groups.filter((group) => group !== undefined)
    for (const group of fresh) byId.set(group.id, group)
    const parents = fresh.flatMap(({ parentId }) => parentId ?? [])
    nextIds = [...new Set(parents)].filter((id) => !byId.has(id))
  }
  return [...byId.values()]
}

/** Returns a group and the groups above it. */
export function lineOf(groups: readonly Group[], group: Group): readonly Group[] {
  const line = [group]
  // A group that is added is visited later in the same loop; a circle ends it.
  for (const { parentId } of line) {
    const parent = groups.find(({ id }) => id === parentId)
    if (parent !== undefined && !line.includes(parent)) line.push(parent)
  }
  return line
}

/** Returns groups in the order of their names: the same set is always the same list. */
export function inOrder(groups: readonly Group[]): readonly Group[] {
  return groups.toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/** Finds the group with this id, or with this name. */
export function findAmong<T extends Pick<Group, 'id' | 'name'>>(
  groups: readonly T[],
  text: string,
): T | undefined {
  const name = canonicalGroupName(text.trim())
  return groups.find(({ id }) => id === text) ?? groups.find((one) => canonicalGroupName(one.name) === name)
}

/** Returns the name of a group by its id; the id itself if there is none any more. */
export function namesOf(groups: readonly Pick<Group, 'id' | 'name'>[]): (id: string) => string {
  const names = new Map(groups.map(({ id, name }) => [id, name]))
  return (id) => names.get(id) ?? id
}

/** Describes a group to an operator. */
export function describeGroup({ id, name, description, parentId, administratorsId, createdAt }: Group) {
  return {
    group_id: id,
    name,
    ...omitUndefined({ description, parent_id: parentId, administrators_id: administratorsId }),
    created_at: createdAt,
  }
}

/** Decides about a change of groups from all groups. */
type DecideOnGroups<T> = (groups: readonly Group[]) => Decision<T>

/**
 * Changes the groups. Two changes at once could make a circle of parents that neither makes alone, so each counts the
 * revision of the whole, and the later one decides again.
 */
export async function changeGroups<T>(
  store: Pick<Store, 'find' | 'listKind' | 'transact'>,
  decide: DecideOnGroups<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const seen = await store.find(groupTreeKind, groupTreeKey)
    const groups = await listGroups(store)
    try {
      return await store.transact(groupTreeKind, groupTreeKey, (tree) => {
        assertCurrent(tree, seen)
        return withWrites(decide(groups), nextRevision(tree))
      })
    } catch (error) {
      // The first change of all inserts the record, and so may another one.
      const isOvertaken = error instanceof Outdated || (error instanceof RecordExists && seen === undefined)
      if (!isOvertaken || attempt === attempts) throw error
    }
  }
}

const attempts = 10

/** What changes of groups read and write. */
type Groups = Pick<Store, 'find' | 'listKind' | 'transact'>

/**
 * Makes several changes of the groups in one transaction: each reads what the earlier ones wrote.
 * @param change Makes them in a store that keeps their writes until all are made.
 * @param decideOn Adds what the changes depend on as a whole.
 * @throws {Outdated} if the groups were changed at the same time.
 */
export async function changeGroupsTogether(
  store: Groups,
  change: (groups: Groups) => Promise<void>,
  decideOn: (decision: Decision<void>) => Decision<void>,
): Promise<void> {
  const seen = await store.find(groupTreeKind, groupTreeKey)
  const groups = new Map((await listGroups(store)).map((group) => [group.id, group]))
  const writes: Write[] = []
  let tree = seen
  const isOfGroups = (kind: FindKind) => kind === groupTreeKind || kind === groupKind
  const recordOf = <K extends FindKind>(kind: K, key: string) =>
    (kind === groupKind ? groups.get(key) : tree) as Found<K> | undefined // what the kind says
  await change({
    find: async (kind, key) => (isOfGroups(kind) ? recordOf(kind, key) : store.find(kind, key)),
    listKind: async <T>(kind: RecordKind<T>, page: RecordPage) =>
      kind.name === groupKind.name
        ? ([...groups.values()] as readonly unknown[] as readonly T[]) // what the kind says
        : store.listKind(kind, page),
    async transact(kind, key, decide) {
      if (!isOfGroups(kind)) throw new TypeError('only groups can be changed together')
      const decision = decide(recordOf(kind, key))
      if ('rejection' in decision) throw decision.rejection
      for (const write of decision.writes) {
        if (write.op === 'deleteRecord' && write.kind === groupKind.name) groups.delete(write.key)
        if (!('record' in write) || write.kind !== 'record') continue
        const { kind, id, body } = write.record
        if (kind === groupKind.name) groups.set(id, groupKind.parse(body))
        if (kind === groupTreeKind.name) tree = groupTreeKind.parse(body)
      }
      writes.push(...decision.writes)
      return decision.result
    },
  })
  await store.transact(groupTreeKind, groupTreeKey, (tree) => {
    assertCurrent(tree, seen)
    return decideOn(accept(undefined, ...writes))
  })
}

/** Another change of the groups came first. */
export class Outdated extends Error {
  constructor() {
    super('the groups were changed at the same time; try again')
    this.name = 'Outdated'
  }
}

function assertCurrent(tree: GroupTree | undefined, seen: GroupTree | undefined): void {
  if (tree?.revision !== seen?.revision) throw new Outdated()
}

function nextRevision(tree: GroupTree | undefined) {
  return tree === undefined
    ? insert(groupTreeKind, { revision: 1 })
    : update(groupTreeKind, { revision: tree.revision + 1 })
}

/** Adds a user to a group. @returns Whether they were not in it; undefined if the group no longer exists. */
export function addToGroup(
  store: Pick<Store, 'find' | 'transact'>,
  { id: groupId }: Group,
  userId: string,
  context: AuditContext,
): Promise<boolean | undefined> {
  return changeMembership(store, groupId, userId, (group, known) => addMember(group, userId, known, context))
}

/**
 * Removes a user from a group.
 * @param decideOn Adds further conditions, such as that an administrator is left.
 * @returns Whether they were in it; undefined if the group no longer exists.
 */
export function removeFromGroup(
  store: Pick<Store, 'find' | 'transact'>,
  { id: groupId }: Group,
  userId: string,
  context: AuditContext,
  decideOn?: (decision: Decision<boolean | undefined>) => Decision<boolean | undefined>,
): Promise<boolean | undefined> {
  const change = (group: Group, membership: Membership | undefined) =>
    membership === undefined ? [] : removeMember(group, membership, context)
  return changeMembership(store, groupId, userId, change, decideOn)
}

/** Decides under the lock of the group, which its deletion takes, too. */
async function changeMembership(
  store: Pick<Store, 'find' | 'transact'>,
  groupId: string,
  userId: string,
  change: (group: Group, membership: Membership | undefined) => readonly Write[],
  decideOn = (decision: Decision<boolean | undefined>) => decision,
): Promise<boolean | undefined> {
  const known = await store.find(membershipKind, membershipPrefix(groupId) + userId)
  return store.transact(groupKind, groupId, (group) => {
    const writes = group === undefined ? [] : change(group, known)
    return decideOn(accept(group === undefined ? undefined : writes.length > 0, ...writes))
  })
}
