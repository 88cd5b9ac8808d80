import type { PrefixPage, Store, UserMatches } from '../storage/store.ts'
import { canonicalPrefix } from './rules/user.ts'

/** Returns a page of the users whose user name or email address begins with a text, as users may write it. */
export async function searchUsers(
  store: Pick<Store, 'usersFrom'>,
  text: string,
  page: Omit<PrefixPage, 'prefix'>,
): Promise<UserMatches> {
  const prefix = canonicalPrefix(text)
  return prefix === undefined ? { users: [] } : store.usersFrom({ ...page, prefix })
}
