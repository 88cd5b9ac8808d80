import { type Group, type Membership, membershipKind, membershipPrefix } from '../../domain/group.ts'
import { cursorOf } from '../../http/cursor.ts'
import type { Store } from '../../storage/store.ts'
import type { Reach } from '../../users/delegation.ts'
import type { Call, Page } from './operation.ts'
import { type Part, pageOfWalk } from './walk.ts'

/** In front of the key of a member: the group in which the page ended. No identifier contains it. */
const separator = '/'
/** After every key of a member. */
const end = '~'

type Members = Pick<Store, 'listFrom' | 'listOf'>

/** Returns the cursor after this member of a group. */
export function cursorAfter(groupId: string, sub: string): string {
  return cursorOf(groupId + separator + sub)
}

/** Whether the caller can see a user that the path does not name. */
export async function isSeen(
  { deps, reach }: Pick<Call, 'deps' | 'reach'>,
  userId: string,
): Promise<boolean> {
  const seen = await reach()
  return seen === undefined || seen.includes(await deps.store.listOf(membershipKind, userId))
}

/**
 * Returns a page of the members of some groups, group by group.
 * @param groups In the order of their ids.
 * @param describe Returns undefined for a member who is not shown.
 */
export function pageOfMembers(
  call: Pick<Call, 'query'>,
  store: Pick<Store, 'listFrom'>,
  groups: readonly Group[],
  describe: (membership: Membership) => Promise<object | undefined>,
) {
  return pageOfWalk(call, (page) => readMembers(store, groups, page), describe)
}

/** Reads the members of the group in which a page begins. */
async function readMembers(
  store: Pick<Store, 'listFrom'>,
  groups: readonly Group[],
  { size, after = '' }: Page,
): Promise<Part<Membership>> {
  const [fromGroup = '', fromUser = ''] = after.split(separator, 2)
  const group = groups.find(({ id }) => id > fromGroup || (id === fromGroup && fromUser < end))
  if (group === undefined) return { rows: [] }
  const prefix = membershipPrefix(group.id)
  const from = group.id === fromGroup ? fromUser : ''
  const found = await store.listFrom(membershipKind, { prefix, after: prefix + from, limit: size })
  const rows = found.map((row) => ({ key: group.id + separator + row.userId, row }))
  const isLast = found.length < size
  const next = isLast ? group.id + separator + end : rows.at(-1)?.key
  return { rows, looked: 1 + rows.length, next: isLast && group === groups.at(-1) ? undefined : next }
}

/** Returns whether a member is shown in a group: each once, in the first of their groups that are in reach. */
export function shownIn(store: Pick<Store, 'listOf'>, reach: Reach) {
  const ids = new Set(reach.groups.map(({ id }) => id))
  return async ({ groupId, userId }: Pick<Membership, 'groupId' | 'userId'>): Promise<boolean> => {
    const memberships = await store.listOf(membershipKind, userId)
    const [first] = memberships.flatMap((one) => (ids.has(one.groupId) ? one.groupId : [])).toSorted()
    return first === groupId && reach.includes(memberships)
  }
}

/** What a member has is read for each of them: that takes as long as so many rows. */
const costOfMember = 8

const none = { rows: [], next: undefined }

/**
 * Returns a page of what belongs to the members of the groups in reach, member by member.
 * @param listOf Reads what belongs to a user, in the order of its ids, or the next part of it.
 */
export function pageOfTheirs<T extends { readonly id: string }>(
  call: Pick<Call, 'query'>,
  store: Members,
  reach: Reach,
  listOf: (
    userId: string,
    page: Page,
  ) => Promise<{ readonly rows: readonly T[]; readonly next?: string | undefined }>,
  describe: (row: T) => Promise<object | undefined>,
) {
  const isShown = shownIn(store, reach)
  const read = async ({ size, after = '' }: Page): Promise<Part<T>> => {
    const [groupId = '', userId = '', id] = after.split(separator, 3)
    const rowsOf = async (member: Pick<Membership, 'groupId' | 'userId'>, from?: string) => {
      const { rows, next } = (await isShown(member))
        ? await listOf(member.userId, { size, after: from })
        : none
      const keyOf = (rowId: string) => [member.groupId, member.userId, rowId].join(separator)
      return { rows: rows.map((row) => ({ key: keyOf(row.id), row })), next: next && keyOf(next) }
    }
    const members = await readMembers(store, reach.groups, {
      size,
      after: id === undefined ? after : groupId + separator + userId,
    })
    const pages = await Promise.all([
      ...(id === undefined ? [] : [rowsOf({ groupId, userId }, id)]),
      ...members.rows.map(({ row }) => rowsOf(row)),
    ])
    // One who has more than a part: the others follow it.
    const cut = pages.find(({ next }) => next !== undefined)
    const whole = cut === undefined ? pages : pages.slice(0, pages.indexOf(cut) + 1)
    const rows = whole.flatMap((one) => one.rows)
    const looked = 1 + costOfMember * members.rows.length + rows.length
    return { rows, looked, next: (cut ?? members).next }
  }
  return pageOfWalk(call, read, describe)
}
