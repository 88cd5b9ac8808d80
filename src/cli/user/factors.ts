import { accept, type Write } from '../../domain/decision.ts'
import { CommandFailed } from '../failure.ts'
import { type DestructiveFlags, insist } from '../insist.ts'
import { withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { findPerson, requirePerson, told } from './person.ts'

/**
 * `lychgate user remove-second-factor`: for a user who lost the phone and the recovery codes. Ends every session: any of
 * them may have begun with a code.
 */
export async function userRemoveSecondFactor(user: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const account = await findPerson(store, user)
    if ((await store.find('secondFactor', account.id)) === undefined)
      throw new CommandFailed(`${account.username} has no second factor`)
    const question = `Remove the one-time codes of ${account.username} and end every session? The password alone will do.`
    await insist(flags, question, 'nothing was removed')
    const { id: accountId } = account
    await store.transact('accountCredentials', accountId, (current) => {
      requirePerson(current?.account)
      return accept(
        undefined,
        { op: 'deleteSecondFactor', accountId },
        { op: 'deleteSessionsOf', accountId },
        told('second-factor-removed', accountId),
      )
    })
    if (flags.json) printJson({ sub: accountId, second_factor: false })
    else printMembers({ removed: 'second factor', of: account.username })
  })
}

/**
 * `lychgate user remove-passkeys`: removes every passkey of a user; one without a password needs a link afterwards. Ends
 * every session: any of them may have begun with a passkey.
 */
export async function userRemovePasskeys(user: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const account = await findPerson(store, user)
    const passkeys = await store.listOf('passkey', account.id)
    if (passkeys.length === 0) throw new CommandFailed(`${account.username} has no passkey`)
    const what = passkeys.length === 1 ? 'the passkey' : `the ${passkeys.length} passkeys`
    await insist(flags, `Remove ${what} of ${account.username} and end every session?`, 'nothing was removed')
    const { id: accountId } = account
    const removed = await store.transact('accountCredentials', accountId, (current) => {
      requirePerson(current?.account)
      const present = current?.passkeys ?? []
      return accept(
        present.length,
        ...present.map(({ id }): Write => ({ op: 'deletePasskey', passkeyId: id })),
        { op: 'deleteSessionsOf', accountId },
        told('passkeys-removed', accountId, { passkeys: present.length }),
      )
    })
    if (flags.json) printJson({ sub: accountId, removed })
    else printMembers({ removed: what.replace(/^the /, ''), of: account.username })
  })
}
