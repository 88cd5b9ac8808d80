import type { User } from '../domain/model.ts'
import type { Store } from '../storage/store.ts'
import { findUser } from './user/find-user.ts'

/** The user this is about, or all users: sessions and grants are stored by user. */
export async function usersFor(store: Store, user: string | undefined): Promise<readonly User[]> {
  return user === undefined ? store.list('user') : [await findUser(store, user)]
}
