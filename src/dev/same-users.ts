import { insert, remove, update } from '../domain/decision.ts'
import type { User } from '../domain/model.ts'
import { type FindKind, RecordExists, type Store } from '../storage/store.ts'

/**
 * The store of an issuer within another, whose users are those of the outer one: each user that is looked up is
 * copied from there first. Everything else is its own.
 */
export function withUsersOf(outer: Pick<Store, 'find' | 'list'>, own: Store): Store {
  const take = async (user: User) => {
    const known = await own.find('user', user.id)
    if (JSON.stringify(known) === JSON.stringify(user)) return
    const write = known === undefined ? insert('user', user) : update('user', user)
    await own.write(write).catch((error: unknown) => {
      // Another request took them over in the meantime.
      if (!(error instanceof RecordExists)) throw error
    })
  }
  const takeOver = async (kind: FindKind, key: string) => {
    if (kind !== 'user' && kind !== 'userByLogin') return
    const there = await outer.find(kind, key)
    if (there !== undefined) return take(there)
    const here = await own.find(kind, key)
    if (here !== undefined) await own.write(remove('user', here.id))
  }
  return {
    ...own,
    find: async (kind, key) => {
      await takeOver(kind, key)
      return own.find(kind, key)
    },
    list: async (kind) => {
      if (kind === 'user') for (const user of await outer.list('user')) await take(user)
      return own.list(kind)
    },
    transact: async (kind, key, decide) => {
      await takeOver(kind, key)
      return own.transact(kind, key, decide)
    },
  }
}
