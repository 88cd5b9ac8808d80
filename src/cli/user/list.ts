import { type LocationFlags, withStore } from '../open.ts'
import { printColumns, printJson, visible } from '../print.ts'
import { describePerson, stateOf } from './person.ts'

/** `lychgate user list`: every person, oldest first. */
export async function userList(flags: LocationFlags & { readonly json?: true }): Promise<void> {
  await withStore(flags, async (store) => {
    const accounts = await store.list('account')
    if (flags.json) return printJson(accounts.map(describePerson))
    printColumns(
      accounts.map((account) => [
        account.id,
        visible(account.username),
        visible(account.email ?? ''),
        stateOf(account),
      ]),
    )
  })
}
