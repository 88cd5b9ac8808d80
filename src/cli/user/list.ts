import { type LocationFlags, withStore } from '../open.ts'
import { printColumns, printJson } from '../print.ts'
import { describePerson, stateOf } from './person.ts'

/** `lychgate user list`: every person, oldest first. */
export async function userList(flags: LocationFlags & { readonly json?: true }): Promise<void> {
  await withStore(flags, async (store) => {
    const accounts = await store.list('account')
    if (flags.json) return printJson(accounts.map(describePerson))
    printColumns(
      accounts.map((account) => [account.id, account.username, account.email ?? '', stateOf(account)]),
    )
  })
}
