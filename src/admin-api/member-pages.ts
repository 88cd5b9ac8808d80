import { type Group, type Membership, membershipKind, membershipPrefix } from '../domain/group.ts'
import { cursorOf, readKeyCursor } from '../http/cursor.ts'
import type { Store } from '../storage/store.ts'
import type { Call } from './operation.ts'

/** A page looks at this many memberships and groups at most, however few of them it shows. */
const mostLooked = 1000

/** In front of the key of a member: the group in which the page ended. No identifier contains it. */
const separator = '/'
/** After every key of a member. */
const end = '~'

/**
 * Returns a page of the members of some groups, group by group. It costs the same wherever it begins; a page that
 * shows few members, or none, may still have a next one.
 * @param groups In the order of their ids.
 * @param describe Returns undefined for a member who is not shown.
 */
export async function pageOfMembers(
  { query }: Pick<Call, 'query'>,
  store: Pick<Store, 'listFrom'>,
  groups: readonly Group[],
  describe: (membership: Membership) => Promise<object | undefined>,
) {
  const size = Number(query('limit') ?? 50)
  const [fromGroup = '', fromUser = ''] = readKeyCursor(query('after'))?.split(separator, 2) ?? []
  const items: object[] = []
  let looked = 0
  for (const { id } of groups.filter((group) => group.id >= fromGroup)) {
    let after = id === fromGroup ? fromUser : ''
    const next = () => ({ body: { items, next: cursorOf(id + separator + after) } })
    for (let isLast = false; !isLast; ) {
      const limit = size + 1
      const prefix = membershipPrefix(id)
      const found = await store.listFrom(membershipKind, { prefix, after: prefix + after, limit })
      const shown = await Promise.all(found.map(describe))
      isLast = found.length < limit
      for (const [index, { userId }] of found.entries()) {
        const one = shown[index]
        if (one !== undefined && items.length === size) return next()
        if (one !== undefined) items.push(one)
        after = userId
      }
      looked += 1 + found.length
      if (!isLast && looked >= mostLooked) return next()
    }
    after = end
    if (looked >= mostLooked) return next()
  }
  return { body: { items } }
}
