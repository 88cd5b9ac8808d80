import {
  bytesOfGroupId,
  canonicalGroupName,
  changeGroup,
  createGroup,
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
  membersOfNew,
  pruningFile,
  resultOf,
  type Setting,
} from './plan.ts'
import type { Placed, Wanted } from './read.ts'
import type { GroupEntry } from './schema.ts'
import { differences, groupEntry } from './state.ts'
import type { Step } from './target.ts'

type Entry = Placed<GroupEntry>

/** Groups after some changes, and what to write for these. */
interface Settled {
  readonly groups: readonly Group[]
  readonly changes: readonly Change[]
  readonly steps: readonly Step<Group>[]
  /** The names that groups had before others could get them, by the ids of the groups. */
  readonly freedNames: ReadonlyMap<string, string>
}

/** Plans what entries say about groups. All of it is written together: two changes may need each other. */
export function planGroups(
  setting: Setting,
  current: readonly Group[],
  entries: readonly Entry[],
): { readonly groups: readonly Group[]; readonly batches: readonly Batch[] } {
  const ordered = parentsFirst(entries)
  let settled: Settled = { groups: current, changes: [], steps: [], freedNames: new Map() }
  const each = (settle: (entry: Entry) => Settled) => {
    for (const entry of ordered) settled = attempt(setting, entry, () => settle(entry)) ?? settled
  }
  each((entry) => freeName(settled, entry, ordered))
  each((entry) => settleOne(settled, entry))
  // Once all are there: a group may be administered by one below it.
  each((entry) => settleAdministrators(settled, entry))
  const { groups, changes, steps } = settled
  const write = () => setting.target.changeGroups(steps)
  return { groups, batches: changes.length === 0 ? [] : [{ changes, write }] }
}

/** The 16 bytes of which the id is made: named by the entry, or fresh. */
function freshOf({ id }: GroupEntry): Buffer {
  return id === undefined ? systemRandom(16) : bytesOfGroupId(id)
}

/** Gives a group another name for now if an entry wants its name, and another entry gives it a new one. */
function freeName(settled: Settled, { entry: { id, name } }: Entry, entries: readonly Entry[]): Settled {
  const { groups, steps, freedNames } = settled
  const holder = findAmong(groups, name)
  const next = entries.find(({ entry }) => entry.id !== undefined && entry.id === holder?.id)
  const isFreed = next !== undefined && canonicalGroupName(next.entry.name) !== canonicalGroupName(name)
  if (holder === undefined || id === undefined || holder.id === id || !isFreed) return settled
  // An id can be a name, and no other group has it.
  const after = resultOf(changeGroup(groups, holder, { name: holder.id }, contextOf(next)))
  return {
    ...settled,
    groups: groups.map((one) => (one.id === after.id ? after : one)),
    steps: [...steps, { before: holder, after, file: next.file }],
    freedNames: new Map(freedNames).set(holder.id, holder.name),
  }
}

function settleOne(settled: Settled, placed: Entry): Settled {
  const { groups, changes, steps, freedNames } = settled
  const { name, id, description = '', parent } = placed.entry
  const before = id === undefined ? findAmong(groups, name) : groups.find((one) => one.id === id)
  const parentId = parent === undefined ? '' : requireAmong(groups, parent, 'parent')
  const context = contextOf(placed)
  const details = { name, description, parentId }
  if (before === undefined) {
    const after = resultOf(createGroup(groups, details, freshOf(placed.entry), context))
    const members = membersOfNew(groupEntry(after, namesOf(groups)))
    return {
      ...settled,
      groups: [...groups, after],
      changes: [...changes, { action: 'add', kind: 'group', name: after.name, members }],
      steps: [...steps, { after, file: placed.file }],
    }
  }
  const entryOf = (group: Group) => groupEntry(group, namesOf(groups))
  const named = { ...before, name: freedNames.get(before.id) ?? before.name }
  const after = resultOf(changeGroup(groups, before, details, context))
  const members = differences(entryOf(named), entryOf(after))
  if (members.length === 0) return settled
  return {
    ...settled,
    groups: groups.map((one) => (one.id === after.id ? after : one)),
    changes: [...changes, { action: 'change', kind: 'group', name: named.name, members }],
    steps: [...steps, { before, after, file: placed.file }],
  }
}

function settleAdministrators(settled: Settled, placed: Entry): Settled {
  const { groups, changes, steps } = settled
  const { name, id, administrators } = placed.entry
  const before = id === undefined ? findAmong(groups, name) : groups.find((one) => one.id === id)
  const administratorsId =
    administrators === undefined ? '' : requireAmong(groups, administrators, 'administrators')
  if (before === undefined || (before.administratorsId ?? '') === administratorsId) return settled
  const after = resultOf(changeGroup(groups, before, { administratorsId }, contextOf(placed)))
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
    steps: [...steps, { before, after, file: placed.file }],
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
  const visit = (entry: Entry, below: readonly Entry[]) => {
    const parent = byName.get(canonicalGroupName(entry.entry.parent ?? ''))
    if (parent !== undefined && !below.includes(parent)) visit(parent, [...below, entry])
    ordered.add(entry)
  }
  for (const one of entries) visit(one, [one])
  return [...ordered]
}

/** Plans the deletion of the groups that no entry describes. */
export function pruneGroups(
  { target }: Setting,
  groups: readonly Group[],
  inFiles: Wanted,
): Batch | undefined {
  const { groups: entries = [] } = inFiles
  const isKept = ({ id, name }: Group) =>
    entries.some(({ entry }) =>
      entry.id === undefined ? canonicalGroupName(entry.name) === canonicalGroupName(name) : entry.id === id,
    )
  const ids = new Set(groups.filter((group) => !isKept(group)).map(({ id }) => id))
  if (ids.size === 0) return undefined
  return {
    changes: groups
      .filter(({ id }) => ids.has(id))
      .map(({ name }) => ({ action: 'delete', kind: 'group', name, members: [] })),
    write: () => target.deleteGroups(lowestFirst(groups, ids), pruningFile(inFiles, 'groups')),
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
