import { accept, remove, type Write } from '../../domain/decision.ts'
import { userCredentials } from '../../users/factors.ts'
import { passkeyKind } from '../../users/rules/passkey.ts'
import { secondFactorKind } from '../../users/rules/second-factor.ts'
import { confirmOrAbort, type DestructiveFlags } from '../confirm-or-abort.ts'
import { CommandFailed } from '../failure.ts'
import { withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { auditWrite, findUser, requireUser } from './find-user.ts'

/**
 * `lychgate user remove-second-factor`: for a user who lost the phone and the recovery codes. Ends every session: any of
 * them may have begun with a code.
 */
export async function userRemoveSecondFactor(login: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const user = await findUser(store, login)
    if ((await store.find(secondFactorKind, user.id)) === undefined)
      throw new CommandFailed(`${user.username} has no second factor`)
    const question = `Remove the one-time codes of ${user.username} and end every session? The password alone will do.`
    await confirmOrAbort(flags, question, 'nothing was removed')
    const { id: userId } = user
    await store.transact(userCredentials, userId, (current) => {
      requireUser(current?.user)
      return accept(
        undefined,
        remove(secondFactorKind, userId),
        { op: 'deleteSessionsOf', userId },
        auditWrite('second-factor-removed', userId),
      )
    })
    if (flags.json) printJson({ sub: userId, second_factor: false })
    else printMembers({ removed: 'second factor', of: user.username })
  })
}

/**
 * `lychgate user remove-passkeys`: removes every passkey of a user; one without a password needs a link afterwards. Ends
 * every session: any of them may have begun with a passkey.
 */
export async function userRemovePasskeys(login: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const user = await findUser(store, login)
    const passkeys = await store.listOf(passkeyKind, user.id)
    if (passkeys.length === 0) throw new CommandFailed(`${user.username} has no passkey`)
    const what = passkeys.length === 1 ? 'the passkey' : `the ${passkeys.length} passkeys`
    await confirmOrAbort(
      flags,
      `Remove ${what} of ${user.username} and end every session?`,
      'nothing was removed',
    )
    const { id: userId } = user
    const removed = await store.transact(userCredentials, userId, (current) => {
      requireUser(current?.user)
      const passkeys = current?.passkeys ?? []
      return accept(
        passkeys.length,
        ...passkeys.map(({ id }): Write => remove(passkeyKind, id)),
        { op: 'deleteSessionsOf', userId },
        auditWrite('passkeys-removed', userId, { passkeys: passkeys.length }),
      )
    })
    if (flags.json) printJson({ sub: userId, removed })
    else printMembers({ removed: what.replace(/^the /, ''), of: user.username })
  })
}
