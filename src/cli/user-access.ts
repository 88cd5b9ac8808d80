import type { Config } from '../config/schema.ts'
import { attributeChange } from '../domain/attributes.ts'
import { accept, insert } from '../domain/decision.ts'
import type { User } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { createUser } from '../users/rules/user.ts'
import { CommandFailed } from './failure.ts'
import { findUser, requireUser, userEvent } from './find.ts'
import type { OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { operatorContext, warnWithoutAdministrator } from './operator.ts'
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
