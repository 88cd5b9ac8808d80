import { accept } from '../../domain/decision.ts'
import { type DestructiveFlags, insist } from '../insist.ts'
import { withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { findPerson, requirePerson, told } from './person.ts'

/** `lychgate user remove`: a person goes, with sessions, tokens and every way to sign in. */
export async function userRemove(user: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const person = await findPerson(store, user)
    await insist(flags, `Remove ${person.username}? Their sessions and tokens die.`, 'nothing was removed')
    await store.transact('account', person.id, (account) =>
      accept(
        undefined,
        { op: 'deleteAccount', accountId: requirePerson(account).id },
        told('person-removed', person.id),
      ),
    )
    if (flags.json) printJson({ sub: person.id, removed: true })
    else printMembers({ removed: person.username })
  })
}
