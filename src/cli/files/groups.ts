import type { AuditContext } from '../../domain/audit.ts'
import { accept, type Decision, type Write } from '../../domain/decision.ts'
import {
  bytesOfGroupId,
  canonicalGroupName,
  changeGroup,
  createGroup,
  deleteGroup,
  type Group,
} from '../../domain/group.ts'
import { systemRandom } from '../../system/system.ts'
import { findAmong, namesOf } from '../../users/groups.ts'
import { CommandFailed } from '../failure.ts'
import {
  attempt,
  type Batch,
  type Change,
  contextOf,
  differences,
  membersOfNew,
  pruningContext,
  resultOf,
  type Setting,
} from './plan.ts'
import type { Placed, Wanted } from './read.ts'
import type { GroupEntry } from './schema.ts'
import { groupEntry } from './state.ts'
import type { Step } from './target.ts'

type Entry = Placed<GroupEntry>

/** Groups after some changes, and what to write for these. */
interface Settled {
  readonly groups: readonly Group[]
  readonly changes: readonly Change[]
  readonly steps: readonly Step<Group>[]
  readonly writes: readonly Write[]
  /** The names that groups had before others could get them, by the ids of the groups. */
  readonly given: ReadonlyMap<string, string>
}

/** Plans what entries say about groups. All of it is one transaction: two changes may need each other. */
export function planGroups(
  setting: Setting,
  known: readonly Group[],
  entries: readonly Entry[],
): { readonly groups: readonly Group[]; readonly batches: readonly Batch[] } {
  const ordered = parentsFirst(entries)
  const fresh = new Map(ordered.map((one) => [one, freshOf(one.entry)]))
  const settle = (
    before: readonly Group[],
    each: (entry: Entry, step: () => Settled) => Settled | undefined,
  ) => {
    let settled: Settled = { groups: before, changes: [], steps: [], writes: [], given: new Map() }
    for (const one of ordered) settled = each(one, () => freeName(settled, one, ordered)) ?? settled
    for (const one of ordered) {
      const step = () => settleOne(settled, one, fresh.get(one) ?? systemRandom(16))
      settled = each(one, step) ?? settled
    }
    // Once all are there: a group may be administered by one below it.
    for (const one of ordered) settled = each(one, () => settleAdministrators(settled, one)) ?? settled
    return settled
  }
  const { groups, changes, steps } = settle(known, (one, step) => attempt(setting, one, step))
  const decide = (current: readonly Group[]) =>
    accept(undefined, ...settle(current, (_, step) => step()).writes)
  const write = () => setting.target.changeGroups(steps, decide)
  return { groups, batches: changes.length === 0 ? [] : [{ changes, write }] }
}

/** The 16 bytes of which the id is made: named by the entry, or fresh. */
function freshOf({ id }: GroupEntry): Buffer {
  return id === undefined ? systemRandom(16) : bytesOfGroupId(id)
}

/** Gives a group another name for now if an entry wants its name, and another entry gives it a new one. */
function freeName(settled: Settled, { entry: { id, name } }: Entry, entries: readonly Entry[]): Settled {
  const { groups, steps, writes, given } = settled
  const holder = findAmong(groups, name)
  const next = entries.find(({ entry }) => entry.id !== undefined && entry.id === holder?.id)
  const isFreed = next !== undefined && canonicalGroupName(next.entry.name) !== canonicalGroupName(name)
  if (holder === undefined || id === undefined || holder.id === id || !isFreed) return settled
  const context = contextOf(next)
  // An id can be a name, and no other group has it.
  const decision = changeGroup(groups, holder, { name: holder.id }, context)
  const after = resultOf(decision)
  return {
    ...settled,
    groups: groups.map((one) => (one.id === after.id ? after : one)),
    steps: [...steps, { before: holder, after, context }],
    writes: [...writes, ...decision.writes],
    given: new Map(given).set(holder.id, holder.name),
  }
}

function settleOne(settled: Settled, placed: Entry, fresh: Buffer): Settled {
  const { groups, changes, steps, writes, given } = settled
  const { name, id, description = '', parent } = placed.entry
  const before = id === undefined ? findAmong(groups, name) : groups.find((one) => one.id === id)
  const parentId = parent === undefined ? '' : requireAmong(groups, parent, 'parent')
  const context = contextOf(placed)
  const wanted = { name, description, parentId }
  if (before === undefined) {
    const decision = createGroup(groups, wanted, fresh, context)
    const after = resultOf(decision)
    const members = membersOfNew(groupEntry(after, namesOf(groups)))
    return {
      ...settled,
      groups: [...groups, after],
      changes: [...changes, { action: 'add', kind: 'group', name: after.name, members }],
      steps: [...steps, { after, context }],
      writes: [...writes, ...decision.writes],
    }
  }
  const entryOf = (group: Group) => groupEntry(group, namesOf(groups))
  const named = { ...before, name: given.get(before.id) ?? before.name }
  const members = differences(entryOf(named), entryOf(resultOf(changeGroup(groups, before, wanted, context))))
  if (members.length === 0) return settled
  const differs = (member: string) => members.some((one) => one.member === member)
  const decision = changeGroup(
    groups,
    before,
    {
      ...(differs('name') && { name }),
      ...(differs('description') && { description }),
      ...(differs('parent') && { parentId }),
    },
    context,
  )
  const after = resultOf(decision)
  return {
    ...settled,
    groups: groups.map((one) => (one.id === after.id ? after : one)),
    changes: [...changes, { action: 'change', kind: 'group', name: named.name, members }],
    steps: [...steps, { before, after, context }],
    writes: [...writes, ...decision.writes],
  }
}

function settleAdministrators(settled: Settled, placed: Entry): Settled {
  const { groups, changes, steps, writes } = settled
  const { name, id, administrators } = placed.entry
  const before = id === undefined ? findAmong(groups, name) : groups.find((one) => one.id === id)
  const administratorsId =
    administrators === undefined ? '' : requireAmong(groups, administrators, 'administrators')
  if (before === undefined || (before.administratorsId ?? '') === administratorsId) return settled
  const context = contextOf(placed)
  const decision = changeGroup(groups, before, { administratorsId }, context)
  const after = resultOf(decision)
  const nameOf = namesOf(groups)
  const members = differences(groupEntry(before, nameOf), groupEntry(after, nameOf))
  const isNamed = changes.some((change) => change.name === before.name)
  return {
    ...settled,
    groups: groups.map((one) => (one.id === after.id ? after : one)),
    changes: isNamed
      ? changes.map((change) =>
          change.name === before.name ? { ...change, members: [...change.members, ...members] } : change,
        )
      : [...changes, { action: 'change', kind: 'group', name: before.name, members }],
    steps: [...steps, { before, after, context }],
    writes: [...writes, ...decision.writes],
  }
}

/** Returns the id of a group that an entry names. @throws {CommandFailed} if there is none. */
export function requireAmong(groups: readonly Group[], name: string, member: string): string {
  const found = findAmong(groups, name)
  if (found === undefined) throw new CommandFailed(`${member}: there is no group ${name}`)
  return found.id
}

/** Orders entries so that each parent is there before its children. A circle is left to the domain. */
function parentsFirst(entries: readonly Entry[]): readonly Entry[] {
  const byName = new Map(entries.map((one) => [canonicalGroupName(one.entry.name), one]))
  const ordered = new Set<Entry>()
  const visit = (one: Entry, below: readonly Entry[]) => {
    const parent = byName.get(canonicalGroupName(one.entry.parent ?? ''))
    if (parent !== undefined && !below.includes(parent)) visit(parent, [...below, one])
    ordered.add(one)
  }
  for (const one of entries) visit(one, [one])
  return [...ordered]
}

/** Plans the deletion of the groups that no entry describes. */
export function pruneGroups(
  { target }: Setting,
  groups: readonly Group[],
  wanted: Wanted,
): Batch | undefined {
  const { groups: entries = [] } = wanted
  const isKept = ({ id, name }: Group) =>
    entries.some(({ entry }) =>
      entry.id === undefined ? canonicalGroupName(entry.name) === canonicalGroupName(name) : entry.id === id,
    )
  const ids = new Set(groups.filter((group) => !isKept(group)).map(({ id }) => id))
  if (ids.size === 0) return undefined
  const context = pruningContext(wanted, 'groups')
  return {
    changes: groups
      .filter(({ id }) => ids.has(id))
      .map(({ name }) => ({ action: 'delete', kind: 'group', name, members: [] })),
    write: () =>
      target.deleteGroups(lowestFirst(groups, ids), (current) => deleteAll(current, ids, context), context),
  }
}

/** One that has groups below it cannot be deleted. */
function lowestFirst(groups: readonly Group[], ids: ReadonlySet<string>): readonly Group[] {
  const ordered: Group[] = []
  let due = groups.filter(({ id }) => ids.has(id))
  for (;;) {
    const next = due.find(({ id }) => !due.some(({ parentId }) => parentId === id))
    if (next === undefined) return ordered
    ordered.push(next)
    due = due.filter(({ id }) => id !== next.id)
  }
}

function deleteAll(
  groups: readonly Group[],
  ids: ReadonlySet<string>,
  context: AuditContext,
): Decision<void> {
  const writes: Write[] = []
  let left = groups
  for (const next of lowestFirst(groups, ids)) {
    const decision = deleteGroup(left, next, context)
    resultOf(decision)
    writes.push(...decision.writes)
    left = left.filter(({ id }) => id !== next.id)
  }
  return accept(undefined, ...writes)
}
