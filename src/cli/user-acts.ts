import { CommandFailed } from './failure.ts'
import type { ServerFlags } from './files/open-target.ts'
import type { DestructiveFlags } from './flags.ts'
import { changesUsers, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
import { printResult } from './print.ts'

type ActFlags = ServerFlags & DestructiveFlags

/** Loaded late: `--help` needs none of it. */
const operations = async () => ({
  ...(await import('../admin/operations/user-acts.ts')).userActs,
  ...(await import('../admin/operations/users.ts')),
  ...(await import('../admin/operations/sessions.ts')),
  ...(await import('../admin/operations/grants.ts')),
})

/** `lychgate user lock`: locks a user out and ends their sessions, links and grants. */
export async function userLock(login: string, flags: ActFlags): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, perform }) => {
    const { sub, username } = await findUser(login)
    await confirmOrAbort(flags, `Lock ${username}? Their sessions and tokens end.`, 'nothing was changed')
    const user = await perform((await operations()).lock, { sub })
    printResult(flags, user, { locked: username })
  })
}

/** `lychgate user unlock`: ends a lock and forgets failed sign-ins; what ended with the lock stays ended. */
export async function userUnlock(login: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, perform }) => {
    const { sub, username } = await findUser(login)
    const user = await perform((await operations()).unlock, { sub })
    const unlocked = user['was_locked'] === true ? username : `${username} was not locked`
    printResult(flags, user, { unlocked, 'failures forgotten': user['forgotten_failures'] })
  })
}

/** `lychgate user test-email`: sends an email, and says whether the mail server took it. */
export async function userTestEmail(login: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, perform }) => {
    const { sub } = await findUser(login)
    const { sendTestEmail } = await import('../admin/operations/test-email.ts')
    const sent = await perform(sendTestEmail, { sub })
    printResult(flags, sent, { 'sent to': sent['sent_to'] })
  })
}

/** `lychgate user revoke`: ends every session and every grant of a user, who may sign in again. */
export async function userRevoke(login: string, flags: ActFlags): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, list, perform }) => {
    const { sub, username } = await findUser(login)
    const question = `End every session and revoke every grant of ${username}?`
    await confirmOrAbort(flags, question, 'nothing was revoked')
    const { listGrants, revoke } = await operations()
    const clients = (await list(listGrants, { sub })).map((one) => one['client_id'])
    await perform(revoke, { sub })
    printResult(flags, { sub, revoked: true, clients }, { revoked: username, clients: clients.length })
  })
}

/** `lychgate user delete`: deletes a user, with sessions, tokens and every way to sign in. */
export async function userRemove(login: string, flags: ActFlags): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, perform }) => {
    const { sub, username } = await findUser(login)
    const question = `Delete ${username}? Their sessions and tokens end.`
    await confirmOrAbort(flags, question, 'nothing was deleted')
    await perform((await operations()).remove, { sub })
    printResult(flags, { sub, removed: true }, { removed: username })
  })
}

/**
 * `lychgate user remove-second-factor`: for a user who lost the phone and the recovery codes. Ends every session: any
 * of them may have begun with a code.
 */
export async function userRemoveSecondFactor(login: string, flags: ActFlags): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, perform }) => {
    const { sub, username } = await findUser(login)
    const { readSignIn, removeCodes } = await operations()
    const signIn = await perform(readSignIn, { sub })
    if (signIn['second_factor'] !== true) throw new CommandFailed(`${username} has no second factor`)
    const question = `Remove the one-time codes of ${username} and end every session? The password alone is enough to sign in then.`
    await confirmOrAbort(flags, question, 'nothing was removed')
    await perform(removeCodes, { sub })
    printResult(flags, { sub, second_factor: false }, { removed: 'second factor', of: username })
  })
}

/**
 * `lychgate user remove-passkeys`: removes every passkey of a user; one without a password needs a link afterwards.
 * Ends every session: any of them may have begun with a passkey.
 */
export async function userRemovePasskeys(login: string, flags: ActFlags): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, perform }) => {
    const { sub, username } = await findUser(login)
    const { readSignIn, removePasskeys } = await operations()
    const { passkeys: removed } = await perform(readSignIn, { sub })
    if (removed === 0) throw new CommandFailed(`${username} has no passkey`)
    const what = removed === 1 ? 'passkey' : `${removed} passkeys`
    const question = `Remove the ${what} of ${username} and end every session?`
    await confirmOrAbort(flags, question, 'nothing was removed')
    await perform(removePasskeys, { sub })
    printResult(flags, { sub, removed }, { removed: what, of: username })
  })
}

/** Ends every session of a user, and returns how many there were. */
export async function endSessionsOf(login: string, flags: ActFlags): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, list, perform }) => {
    const { sub, username } = await findUser(login)
    const question = `End every session of ${username}? They have to sign in again.`
    await confirmOrAbort(flags, question, 'nothing was ended')
    const { listSessions, signOut } = await operations()
    const ended = (await list(listSessions, { sub })).length
    await perform(signOut, { sub })
    printResult(flags, { ended }, { ended })
  })
}
