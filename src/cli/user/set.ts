import { withWrites } from '../../domain/decision.ts'
import { RecordExists } from '../../storage/store.ts'
import { systemClock } from '../../system.ts'
import { deleteLinksOf } from '../../users/rules/one-time-link.ts'
import { changeProfile } from '../../users/rules/user.ts'
import { WrongUsage } from '../failure.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { type ClaimFlags, claimsOf } from './claims.ts'
import { auditWrite, describeUser, findUser, requireUser, taken } from './find-user.ts'

interface SetFlags extends LocationFlags, ClaimFlags {
  readonly json?: true
  readonly email?: string
  /** Undefined, or what the operator vouches for. */
  readonly emailVerified?: boolean
}

/** `lychgate user set`: what a profile says; what is not named stays. */
export async function userSet(login: string, flags: SetFlags): Promise<void> {
  const { email, emailVerified } = flags
  const claims = claimsOf(flags)
  const changed = [
    ...Object.keys(claims),
    email !== undefined && 'email',
    emailVerified !== undefined && 'email_verified',
  ]
  const names = changed.filter((name) => name !== false).join(' ')
  if (names === '') throw new WrongUsage('nothing to change; name at least one flag, see --help')
  const change = {
    claims,
    ...(email !== undefined && { email }),
    ...(emailVerified !== undefined && { emailVerified }),
  }
  await withStore(flags, async (store) => {
    const { id } = await findUser(store, login)
    const now = systemClock()
    try {
      const user = await store.transact('user', id, (found) =>
        withWrites(
          changeProfile(requireUser(found), change, now),
          // Links that went to the old address are not for its readers any more.
          ...(email === undefined ? [] : deleteLinksOf(id)),
          auditWrite('person-changed', id, { changed: names }),
        ),
      )
      if (flags.json) printJson(describeUser(user))
      else printMembers({ changed: user.username, what: names })
    } catch (error) {
      throw error instanceof RecordExists ? taken() : error
    }
  })
}
