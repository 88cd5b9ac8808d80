import { insert } from '../../domain/decision.ts'
import { RecordExists } from '../../storage/store.ts'
import { systemClock, systemRandom } from '../../system.ts'
import { hashPassword } from '../../users/passwords.ts'
import { createUser } from '../../users/rules/user.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { readNewPassword } from '../prompt.ts'
import { type ClaimFlags, claimsOf, withoutEmpty } from './claims.ts'
import { auditWrite, describeUser, taken } from './find-user.ts'

interface AddFlags extends LocationFlags, ClaimFlags {
  readonly json?: true
  readonly email?: string
  readonly emailVerified?: true
}

/** `lychgate user add`: a user with a password that the operator knows. */
export async function userAdd(username: string, flags: AddFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const person = {
      username,
      email: flags.email,
      emailVerified: flags.emailVerified ?? false,
      claims: withoutEmpty(claimsOf(flags)),
    }
    // Checked before the password is asked for, so that it is not typed in vain.
    const { username: canonical } = createUser(person, systemRandom(16), systemClock())
    if (await store.find('userByLogin', canonical)) throw taken()
    const passwordHash = await hashPassword(await readNewPassword(), systemRandom)
    const user = createUser({ ...person, passwordHash }, systemRandom(16), systemClock())
    try {
      await store.write(insert('user', user), auditWrite('person-added', user.id))
    } catch (error) {
      throw error instanceof RecordExists ? taken() : error
    }
    if (flags.json) printJson(describeUser(user))
    else printMembers({ sub: user.id, username: user.username, email: user.email })
  })
}
