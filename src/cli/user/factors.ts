import { accept, type Write } from '../../domain/decision.ts'
import type { Account } from '../../domain/model.ts'
import type { Store } from '../../storage/store.ts'
import { CommandFailed } from '../failure.ts'
import { type DestructiveFlags, insist } from '../insist.ts'
import { withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { findPerson, requirePerson, told } from './person.ts'

/** `lychgate user remove-second-factor`: for somebody who lost their phone and their recovery codes. */
export async function userRemoveSecondFactor(user: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const account = await findPerson(store, user)
    if ((await store.find('secondFactor', account.id)) === undefined)
      throw new CommandFailed(`${account.username} has no second factor`)
    const question = `Remove the one-time codes of ${account.username}? The password alone will do.`
    await insist(flags, question, 'nothing was removed')
    const { id: accountId } = account
    const event = told('second-factor-removed', accountId)
    await write(store, account, { op: 'deleteSecondFactor', accountId }, event)
    if (flags.json) printJson({ sub: accountId, second_factor: false })
    else printMembers({ removed: 'second factor', of: account.username })
  })
}

/** `lychgate user remove-passkeys`: every passkey of a person; who has no password needs a link afterwards. */
export async function userRemovePasskeys(user: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const account = await findPerson(store, user)
    const passkeys = await store.listOf('passkey', account.id)
    if (passkeys.length === 0) throw new CommandFailed(`${account.username} has no passkey`)
    const what = passkeys.length === 1 ? 'the passkey' : `the ${passkeys.length} passkeys`
    await insist(flags, `Remove ${what} of ${account.username}?`, 'nothing was removed')
    const removals = passkeys.map(({ id }): Write => ({ op: 'deletePasskey', passkeyId: id }))
    const event = told('passkeys-removed', account.id, { passkeys: passkeys.length })
    await write(store, account, ...removals, event)
    if (flags.json) printJson({ sub: account.id, removed: passkeys.length })
    else printMembers({ removed: what.replace(/^the /, ''), of: account.username })
  })
}

async function write(store: Store, { id }: Account, ...writes: readonly Write[]): Promise<void> {
  await store.transact('account', id, (found) => {
    requirePerson(found)
    return accept(undefined, ...writes)
  })
}
