import { changePassword, endAccess } from '../../domain/account.ts'
import { withWrites } from '../../domain/decision.ts'
import { hashPassword } from '../../passwords.ts'
import { systemClock, systemRandom } from '../../system.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { readNewPassword } from '../prompt.ts'
import { describePerson, findPerson, requirePerson, told } from './person.ts'

interface PasswordFlags extends LocationFlags {
  readonly json?: true
  readonly disconnect?: true
}

/** `lychgate user passwd`: a new password; sessions end with it, and with `--disconnect` grants too, RFC 9700 §4.14.2. */
export async function userPasswd(user: string, flags: PasswordFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id } = await findPerson(store, user)
    const passwordHash = await hashPassword(await readNewPassword(), systemRandom)
    const now = systemClock()
    const account = await store.transact('account', id, (found) =>
      withWrites(
        changePassword(requirePerson(found), passwordHash, now),
        ...(flags.disconnect ? endAccess(id, 'rfc9700-4.14.2-revoke-on-event', now) : []),
        told('person-password-changed', id, flags.disconnect && { disconnected: 'everything' }),
      ),
    )
    if (flags.json) printJson(describePerson(account))
    else printMembers({ changed: account.username })
  })
}
