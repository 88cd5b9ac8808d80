import { lockAccount, unlockAccount } from '../../domain/account.ts'
import { withWrites } from '../../domain/decision.ts'
import { systemClock } from '../../system.ts'
import { type DestructiveFlags, insist } from '../insist.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { describePerson, findPerson, requirePerson, told } from './person.ts'

/** `lychgate user lock`: keeps a person out, and ends whatever they have open. */
export async function userLock(user: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, username } = await findPerson(store, user)
    await insist(flags, `Lock ${username}? Their sessions and tokens die.`, 'nobody was locked')
    const now = systemClock()
    const account = await store.transact('account', id, (found) =>
      withWrites(lockAccount(requirePerson(found), now), told('person-locked', id)),
    )
    if (flags.json) printJson(describePerson(account))
    else printMembers({ locked: username })
  })
}

/** `lychgate user unlock`: lets a person sign in again; what ended stays ended. */
export async function userUnlock(
  user: string,
  flags: LocationFlags & { readonly json?: true },
): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, username } = await findPerson(store, user)
    const now = systemClock()
    const account = await store.transact('account', id, (found) =>
      withWrites(unlockAccount(requirePerson(found), now), told('person-unlocked', id)),
    )
    if (flags.json) printJson(describePerson(account))
    else printMembers({ unlocked: username })
  })
}
