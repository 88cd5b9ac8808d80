import type { Config } from '../config/schema.ts'
import { attributeChange } from '../domain/attributes.ts'
import { connectionsOf, consentKind } from '../domain/connections.ts'
import { accept, insert, removeUser } from '../domain/decision.ts'
import type { User } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { keepAdministrator } from '../users/administrators.ts'
import { countFailures, userCredentials } from '../users/factors.ts'
import { endAllAccess, removeCodes, removePasskeys } from '../users/rules/access.ts'
import { passkeyKind } from '../users/rules/passkey.ts'
import { secondFactorKind } from '../users/rules/second-factor.ts'
import { createUser, describeUser, lockUser, unlockUser } from '../users/rules/user.ts'
import { CommandFailed } from './failure.ts'
import { changeUser, findUser, requireUser, userEvent } from './find.ts'
import type { DestructiveFlags, ForceFlag, OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { administratorsIn, confirmOrAbort, operatorContext, warnWithoutAdministrator } from './operator.ts'
import { instant, printResult } from './print.ts'
import { attributesOf, type ClaimFlags, newClaims, taken, unlessTaken } from './user-profile.ts'

interface LinkFlags extends OperatorFlags {
  readonly print?: true
}

interface InviteFlags extends LinkFlags, ClaimFlags {
  readonly username?: string
}

/** `lychgate user invite`: adds a user who sets their own password; inviting again makes another link. */
export async function userInvite(email: string, flags: InviteFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const attributes = attributeChange(config.accounts.attributes, attributesOf(flags))
    const profile = { username: flags.username ?? email, email, claims: newClaims(flags), attributes }
    const user = createUser(profile, systemRandom(16), systemClock())
    const known = await store.find('userByLogin', user.email ?? '')
    if (known?.passwordHash !== undefined)
      throw new CommandFailed(
        'this user has a password; lychgate user reset-link creates a link to set a new one',
      )
    if (known === undefined) {
      await unlessTaken(store.write(insert('user', user), userEvent('user-invited', user.id)))
    } else if (flags.username !== undefined && known.username !== user.username) throw taken()
    await giveLink(store, config, 'invitation', known ?? user, flags)
    await warnWithoutAdministrator(store, config, user.username)
  })
}

/** `lychgate user reset-link`: makes a link with which a user sets a new password. */
export async function userResetLink(login: string, flags: LinkFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    await giveLink(store, config, 'password-reset', await findUser(store, login), flags)
  })
}

/** Creates a link. Sends it if there is a mail server and an address, and prints it otherwise. */
async function giveLink(
  store: Store,
  config: Config,
  purpose: 'invitation' | 'password-reset',
  user: User,
  flags: LinkFlags,
): Promise<void> {
  // Loaded late: most commands give no link.
  const { createInvitation } = await import('../pages/emails/invitation.ts')
  const sources = { config, random: systemRandom }
  const made = createInvitation(sources, user, !flags.print, operatorContext(), purpose)
  await store.transact('user', user.id, (found) => {
    const { username, lockedAt } = requireUser(found)
    if (lockedAt !== undefined) throw new CommandFailed(`${username} is locked; unlock first`)
    return accept(undefined, ...made.writes)
  })
  let failure: string | undefined
  const {
    link,
    sent_to: to,
    expires_at: expires,
  } = await made.deliver({
    error: (line) => {
      failure = line
    },
  })
  const { id: sub, username } = user
  const whole = { sub, username, ...omitUndefined({ sent_to: to, link }), expires_at: expires }
  printResult(flags, whole, {
    username,
    ...omitUndefined({ 'sent to': to, link }),
    'valid until': instant(expires),
  })
  if (link !== undefined && !flags.json)
    process.stdout.write('\nThe link works once, for anyone who has it: give it to this user only.\n')
  if (failure !== undefined)
    throw new CommandFailed(`${failure}; the link was created, so give it to the user yourself`)
}

/** `lychgate user lock`: locks a user out and ends their sessions, links and grants. */
export async function userLock(login: string, flags: DestructiveFlags & ForceFlag): Promise<void> {
  await withStore(flags, async (store, config) => {
    const { id, username } = await findUser(store, login)
    await confirmOrAbort(flags, `Lock ${username}? Their sessions and tokens end.`, 'nothing was changed')
    const now = systemClock()
    const lock = (found: User) =>
      keepAdministrator(lockUser(found, now), administratorsIn(config, flags), now)
    const user = await changeUser(store, id, lock, userEvent('user-locked', id))
    printResult(flags, describeUser(user), { locked: username })
  })
}

/** `lychgate user unlock`: ends a lock and forgets failed sign-ins; what ended with the lock stays ended. */
export async function userUnlock(login: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, username, lockedAt } = await findUser(store, login)
    const context = operatorContext()
    const failures = await countFailures(store, id, context.at)
    const user = await changeUser(store, id, (found) => unlockUser(found, context))
    const wasLocked = lockedAt !== undefined
    printResult(
      flags,
      { ...describeUser(user), was_locked: wasLocked, forgotten_failures: failures },
      { unlocked: wasLocked ? username : `${username} was not locked`, 'failures forgotten': failures },
    )
  })
}

/** `lychgate user revoke`: ends every session and every grant of a user, who may sign in again. */
export async function userRevoke(login: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, username } = await findUser(store, login)
    const question = `End every session and revoke every grant of ${username}?`
    await confirmOrAbort(flags, question, 'nothing was revoked')
    const context = operatorContext()
    const [grants, consents, sessions] = await Promise.all([
      store.listOf('grant', id),
      store.listOf(consentKind, id),
      store.listOf('session', id),
    ])
    const connections = connectionsOf(grants, consents, context.at)
    await store.transact('user', id, (found) =>
      endAllAccess(requireUser(found), sessions, connections, context),
    )
    const clients = connections.map(({ clientId }) => clientId)
    printResult(flags, { sub: id, revoked: true, clients }, { revoked: username, clients: clients.length })
  })
}

/** `lychgate user remove`: removes a user, with sessions, tokens and every way to sign in. */
export async function userRemove(login: string, flags: DestructiveFlags & ForceFlag): Promise<void> {
  await withStore(flags, async (store, config) => {
    const { id, username } = await findUser(store, login)
    const question = `Remove ${username}? Their sessions and tokens end.`
    await confirmOrAbort(flags, question, 'nothing was removed')
    const now = systemClock()
    await store.transact('user', id, (user) => {
      const removal = accept(undefined, removeUser(requireUser(user).id, now), userEvent('user-removed', id))
      return keepAdministrator(removal, administratorsIn(config, flags), now)
    })
    printResult(flags, { sub: id, removed: true }, { removed: username })
  })
}

/**
 * `lychgate user remove-second-factor`: for a user who lost the phone and the recovery codes. Ends every session: any
 * of them may have begun with a code.
 */
export async function userRemoveSecondFactor(login: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id: userId, username } = await findUser(store, login)
    if ((await store.find(secondFactorKind, userId)) === undefined)
      throw new CommandFailed(`${username} has no second factor`)
    const question = `Remove the one-time codes of ${username} and end every session? The password alone is enough to sign in then.`
    await confirmOrAbort(flags, question, 'nothing was removed')
    await store.transact(userCredentials, userId, (current) =>
      removeCodes(requireUser(current?.user), operatorContext()),
    )
    printResult(flags, { sub: userId, second_factor: false }, { removed: 'second factor', of: username })
  })
}

/**
 * `lychgate user remove-passkeys`: removes every passkey of a user; one without a password needs a link afterwards.
 * Ends every session: any of them may have begun with a passkey.
 */
export async function userRemovePasskeys(login: string, flags: DestructiveFlags & ForceFlag): Promise<void> {
  await withStore(flags, async (store, config) => {
    const { id: userId, username } = await findUser(store, login)
    const { length } = await store.listOf(passkeyKind, userId)
    if (length === 0) throw new CommandFailed(`${username} has no passkey`)
    const what = length === 1 ? 'passkey' : `${length} passkeys`
    const question = `Remove the ${what} of ${username} and end every session?`
    await confirmOrAbort(flags, question, 'nothing was removed')
    const removed = await store.transact(userCredentials, userId, (current) => {
      const user = requireUser(current?.user)
      const context = operatorContext()
      const removal = removePasskeys({ user, passkeys: current?.passkeys ?? [] }, context)
      return keepAdministrator(removal, administratorsIn(config, flags), context.at)
    })
    printResult(flags, { sub: userId, removed }, { removed: what, of: username })
  })
}
