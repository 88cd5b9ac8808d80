import type { PrefixPage, Store, UserMatches } from '../storage/store.ts'
import { canonicalPrefix } from './rules/user.ts'

/** Finds users by the beginning of a user name or an email address, in any case. Returns one page. */
export async function searchUsers(
  store: Pick<Store, 'usersFrom'>,
  text: string,
  page: Omit<PrefixPage, 'prefix'>,
): Promise<UserMatches> {
  const prefix = canonicalPrefix(text)
  return prefix === undefined ? { users: [] } : store.usersFrom({ ...page, prefix })
}
