import type { Config } from '../../config/schema.ts'
import { insert } from '../../domain/decision.ts'
import type { User } from '../../domain/model.ts'
import type { GivenLink } from '../../mail/given-link.ts'
import { RecordExists, type Store } from '../../storage/store.ts'
import { systemClock, systemRandom } from '../../system.ts'
import { createUser } from '../../users/rules/user.ts'
import { CommandFailed } from '../failure.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { operatorContext } from '../operator.ts'
import { instant, printJson, printMembers } from '../print.ts'
import { type ClaimFlags, claimsOf, withoutEmpty } from './claims.ts'
import { auditWrite, findUser, taken } from './find-user.ts'

interface LinkFlags extends LocationFlags {
  readonly json?: true
  readonly print?: true
}

interface InviteFlags extends LinkFlags, ClaimFlags {
  readonly username?: string
}

/** `lychgate user invite`: creates a user who sets their own password; inviting again makes another link. */
export async function userInvite(email: string, flags: InviteFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const person = { username: flags.username ?? email, email, claims: withoutEmpty(claimsOf(flags)) }
    const user = createUser(person, systemRandom(16), systemClock())
    const known = await store.find('userByLogin', user.email ?? '')
    if (known?.passwordHash !== undefined)
      throw new CommandFailed('this person has a password; lychgate user reset-link makes a link to another')
    if (known === undefined) await insertUser(store, user)
    else if (flags.username !== undefined && known.username !== user.username) throw taken()
    await giveLink(store, config, 'invitation', known ?? user, flags)
  })
}

/** `lychgate user reset-link`: a link to a new password. */
export async function userResetLink(login: string, flags: LinkFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    await giveLink(store, config, 'password-reset', await findUser(store, login), flags)
  })
}

async function insertUser(store: Store, user: User): Promise<void> {
  try {
    await store.write(insert('user', user), auditWrite('person-invited', user.id))
  } catch (error) {
    throw error instanceof RecordExists ? taken() : error
  }
}

/** Sends the link where there is a mail server and an address, and prints it otherwise. */
async function giveLink(
  store: Store,
  config: Config,
  purpose: 'invitation' | 'password-reset',
  user: User,
  flags: LinkFlags,
): Promise<void> {
  if (user.lockedAt !== undefined) throw new CommandFailed(`${user.username} is locked; unlock first`)
  const { senderOf, MailFailed } = await import('../../mail/mailer.ts')
  const { makeLink, sendLink } = await import('../../mail/links.ts')
  const { id: userId, username, email } = user
  const sender = flags.print ? undefined : senderOf(config)
  const to = sender === undefined ? undefined : email
  const recipient = { purpose, userId, ...(to !== undefined && { email: to }) }
  const link = await makeLink({ config, store, random: systemRandom }, recipient, operatorContext())
  if (sender === undefined || to === undefined) return show(user, link, flags)
  try {
    await sendLink(sender, config, { purpose, user, to, link, language: config.service.language })
  } catch (error) {
    if (!(error instanceof MailFailed)) throw error
    show(user, link, flags)
    throw new CommandFailed(`${error.message}; the link was made all the same: hand it over yourself`)
  }
  if (flags.json) printJson({ sub: userId, username, sent_to: to, expires_at: link.expiresAt })
  else printMembers({ username, 'sent to': to, 'works until': instant(link.expiresAt) })
}

function show({ id, username }: User, { url, expiresAt }: GivenLink, { json }: LinkFlags): void {
  if (json) printJson({ sub: id, username, link: url, expires_at: expiresAt })
  else {
    printMembers({ username, link: url, 'works until': instant(expiresAt) })
    process.stdout.write('\nWhoever has the link can use it, once: hand it to nobody else.\n')
  }
}
