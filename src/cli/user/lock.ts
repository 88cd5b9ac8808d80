import { withWrites } from '../../domain/decision.ts'
import { systemClock } from '../../system.ts'
import { lockUser, unlockUser } from '../../users/rules/user.ts'
import { confirmOrAbort, type DestructiveFlags } from '../confirm-or-abort.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { auditWrite, describeUser, findUser, requireUser } from './find-user.ts'

/** `lychgate user lock`: keeps a user out, and ends whatever they have open. */
export async function userLock(login: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, username } = await findUser(store, login)
    await confirmOrAbort(flags, `Lock ${username}? Their sessions and tokens die.`, 'nobody was locked')
    const now = systemClock()
    const user = await store.transact('user', id, (found) =>
      withWrites(lockUser(requireUser(found), now), auditWrite('person-locked', id)),
    )
    if (flags.json) printJson(describeUser(user))
    else printMembers({ locked: username })
  })
}

/** `lychgate user unlock`: lets a user sign in again; what ended stays ended. */
export async function userUnlock(
  login: string,
  flags: LocationFlags & { readonly json?: true },
): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, username } = await findUser(store, login)
    const now = systemClock()
    const user = await store.transact('user', id, (found) =>
      withWrites(unlockUser(requireUser(found), now), auditWrite('person-unlocked', id)),
    )
    if (flags.json) printJson(describeUser(user))
    else printMembers({ unlocked: username })
  })
}
