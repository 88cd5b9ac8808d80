import type { Account } from '../domain/model.ts'
import type { Store } from '../storage/store.ts'
import { findPerson } from './user/person.ts'

/** The person this is about, or everybody: sessions and grants are kept by person. */
export async function peopleFor(store: Store, user: string | undefined): Promise<readonly Account[]> {
  return user === undefined ? store.list('account') : [await findPerson(store, user)]
}
