import { accept, remove } from '../../domain/decision.ts'
import { confirmOrAbort, type DestructiveFlags } from '../confirm-or-abort.ts'
import { withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { auditWrite, findUser, requireUser } from './find-user.ts'

/** `lychgate user remove`: a user goes, with sessions, tokens and every way to sign in. */
export async function userRemove(login: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const person = await findUser(store, login)
    await confirmOrAbort(
      flags,
      `Remove ${person.username}? Their sessions and tokens die.`,
      'nothing was removed',
    )
    await store.transact('user', person.id, (user) =>
      accept(undefined, remove('user', requireUser(user).id), auditWrite('person-removed', person.id)),
    )
    if (flags.json) printJson({ sub: person.id, removed: true })
    else printMembers({ removed: person.username })
  })
}
