import { withWrites } from '../../domain/decision.ts'
import { systemClock, systemRandom } from '../../system.ts'
import { hashPassword } from '../../users/passwords.ts'
import { changePassword, endAccess } from '../../users/rules/user.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { readNewPassword } from '../prompt.ts'
import { auditWrite, describeUser, findUser, requireUser } from './find-user.ts'

interface PasswordFlags extends LocationFlags {
  readonly json?: true
  readonly disconnect?: true
}

/** `lychgate user passwd`: a new password; sessions end with it, and with `--disconnect` grants too, RFC 9700 §4.14.2. */
export async function userPasswd(login: string, flags: PasswordFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id } = await findUser(store, login)
    const passwordHash = await hashPassword(await readNewPassword(), systemRandom)
    const now = systemClock()
    const user = await store.transact('user', id, (found) =>
      withWrites(
        changePassword(requireUser(found), passwordHash, now),
        ...(flags.disconnect ? endAccess(id, 'rfc9700-4.14.2-revoke-on-event', now) : []),
        auditWrite('person-password-changed', id, flags.disconnect && { disconnected: 'everything' }),
      ),
    )
    if (flags.json) printJson(describeUser(user))
    else printMembers({ changed: user.username })
  })
}
