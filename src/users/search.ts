import type { User } from '../domain/model.ts'
import type { PrefixPage, Store, UserMatches } from '../storage/store.ts'
import { westernDigits } from './rules/typed-code.ts'
import { canonicalLogin, canonicalPrefix } from './rules/user.ts'

/** What a user typed to sign in, and the user with that name or address. */
export interface TypedLogin {
  /** In its one spelling; absent if it can be no name. */
  readonly login?: string
  readonly user?: User | undefined
}

/** Finds a user by a typed user name or address; if there is none, by the same with the digits of ASCII. */
export async function findByLogin(store: Pick<Store, 'find'>, text: string): Promise<TypedLogin> {
  const login = canonicalLogin(text)
  if (login === undefined) return {}
  const user = await store.find('userByLogin', login)
  const western = westernDigits(login)
  if (user !== undefined || western === login) return { login, user }
  return { login: western, user: await store.find('userByLogin', western) }
}

/** Finds users by the beginning of a user name or an email address, in any case. Returns one page. */
export async function searchUsers(
  store: Pick<Store, 'usersFrom'>,
  text: string,
  page: Omit<PrefixPage, 'prefix'>,
): Promise<UserMatches> {
  const prefix = canonicalPrefix(text)
  return prefix === undefined ? { users: [] } : store.usersFrom({ ...page, prefix })
}
