import type { Account } from '../domain/model.ts'
import { RecordExists, type Store } from '../storage/store.ts'

/**
 * The store of an issuer within another, whose people are those of the outer one: whoever is asked for is taken over as
 * they are there now. Everything else is its own.
 */
export function withPeopleOf(outer: Pick<Store, 'find' | 'list'>, own: Store): Store {
  const take = async (account: Account) => {
    const known = await own.find('account', account.id)
    if (JSON.stringify(known) === JSON.stringify(account)) return
    const op = known === undefined ? 'insertAccount' : 'updateAccount'
    await own.write({ op, account }).catch((error: unknown) => {
      // Another request took them over meanwhile.
      if (!(error instanceof RecordExists)) throw error
    })
  }
  const update = async (kind: string, key: string) => {
    if (kind !== 'account' && kind !== 'accountByLogin') return
    const there = await outer.find(kind, key)
    if (there !== undefined) return take(there)
    const here = await own.find(kind, key)
    if (here !== undefined) await own.write({ op: 'deleteAccount', accountId: here.id })
  }
  return {
    ...own,
    find: async (kind, key) => {
      await update(kind, key)
      return own.find(kind, key)
    },
    list: async (kind) => {
      if (kind === 'account') for (const account of await outer.list('account')) await take(account)
      return own.list(kind)
    },
    transact: async (kind, key, decide) => {
      await update(kind, key)
      return own.transact(kind, key, decide)
    },
  }
}
