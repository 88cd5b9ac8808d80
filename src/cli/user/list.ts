import { type LocationFlags, withStore } from '../open.ts'
import { printColumns, printJson } from '../print.ts'
import { describeUser, stateOf } from './find-user.ts'

/** `lychgate user list`: every user, oldest first. */
export async function userList(flags: LocationFlags & { readonly json?: true }): Promise<void> {
  await withStore(flags, async (store) => {
    const accounts = await store.list('user')
    if (flags.json) return printJson(accounts.map(describeUser))
    printColumns(accounts.map((user) => [user.id, user.username, user.email ?? '', stateOf(user)]))
  })
}
