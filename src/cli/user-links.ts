import { readFileSync } from 'node:fs'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { createUser } from '../users/rules/user.ts'
import { CommandFailed } from './failure.ts'
import type { ServerFlags } from './files/open-target.ts'
import { taken } from './find.ts'
import type { DestructiveFlags } from './flags.ts'
import {
  changesUsers,
  type Json,
  type NamedUser,
  type Operator,
  readsUsers,
  withOperator,
} from './operate.ts'
import { confirmOrAbort, warnWithoutAdministrator } from './operator.ts'
import { instant, printList, printResult } from './print.ts'
import { attributesOf, type ClaimFlags, newClaims } from './user-profile.ts'

interface LinkFlags extends ServerFlags {
  readonly print?: true
}

interface InviteFlags extends LinkFlags, ClaimFlags {
  readonly username?: string
}

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/links.ts')

/** `lychgate user invite`: adds a user who sets their own passkey or password; inviting again makes another link. */
export async function userInvite(email: string, flags: InviteFlags): Promise<void> {
  await withOperator(flags, changesUsers, async (operator) => {
    const attributes = await attributesOf(operator, flags)
    const profile = { username: flags.username ?? email, email, claims: newClaims(flags) }
    const invited = createUser({ ...profile, attributes }, systemRandom(16), systemClock())
    const existing = await operator.findLogin(invited.email ?? '')
    if (existing?.['has_password'])
      throw new CommandFailed(
        'this user has a password; lychgate user reset-link creates a link to set a new one',
      )
    if (existing === undefined) {
      const { inviteUser } = await import('../admin/operations/user-changes.ts')
      const body = { ...profile, attributes: attributes.assigned, send: !flags.print }
      const user = await operator.perform(inviteUser, {}, body)
      printLink(operator, flags, user, (user['invitation'] ?? {}) as Json) // as the operation responds
    } else if (flags.username !== undefined && existing.username !== invited.username) throw taken()
    else await giveLink(operator, 'invitation', existing, flags)
    await warnWithoutAdministrator(operator, existing?.username ?? invited.username)
  })
}

interface InviteListFlags extends LinkFlags {
  readonly group?: string
}

/** `lychgate user invite-list`: invites the users of a file, or of standard input; all of them or none. */
export async function userInviteList(file: string, flags: InviteListFlags): Promise<void> {
  const list = readText(file)
  await withOperator(flags, changesUsers, async (operator) => {
    const { inviteUsers } = await import('../admin/operations/invitations.ts')
    const group_id = flags.group === undefined ? undefined : (await operator.findGroup(flags.group)).group_id
    const body = omitUndefined({ list, group_id, send: !flags.print })
    const { items } = await operator.perform(inviteUsers, {}, body)
    // `as`: as the operation responds.
    const invited = items as readonly (Json & { readonly invitation: Json })[]
    printList(
      flags,
      invited,
      (user) => user,
      ({ username, invitation: { sent_to, link } }) => [`${username}`, `${link ?? `sent to ${sent_to}`}`],
    )
    if (operator.unsent !== undefined)
      throw new CommandFailed(`${operator.unsent}; give the links that are shown to the users yourself`)
  })
}

function readText(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (cause) {
    throw new CommandFailed(`${file} cannot be read`, { cause })
  }
}

/** `lychgate user reset-link`: makes a link with which a user sets a passkey or a password. */
export async function userResetLink(login: string, flags: LinkFlags): Promise<void> {
  await withOperator(flags, changesUsers, async (operator) => {
    await giveLink(operator, 'password-reset', await operator.findUser(login), flags)
  })
}

/** Creates a link. Sends it if there is a mail server and an address, and prints it otherwise. */
async function giveLink(
  operator: Operator,
  purpose: 'invitation' | 'password-reset',
  user: NamedUser,
  flags: LinkFlags,
): Promise<void> {
  const { sub, username } = user
  if (user['locked_at'] !== undefined) throw new CommandFailed(`${username} is locked; unlock first`)
  const { createLink } = await operations()
  printLink(
    operator,
    flags,
    user,
    await operator.perform(createLink, { sub }, { purpose, send: !flags.print }),
  )
}

function printLink({ unsent }: Operator, flags: LinkFlags, { sub, username }: Json, given: Json): void {
  const { sent_to, link, expires_at } = given
  printResult(
    flags,
    { sub, username, ...omitUndefined({ sent_to, link }), expires_at },
    { username, 'sent to': sent_to, link, 'valid until': instant(Number(expires_at)) },
  )
  if (link !== undefined && !flags.json)
    process.stdout.write('\nThe link works once, for anyone who has it: give it to this user only.\n')
  if (unsent !== undefined)
    throw new CommandFailed(`${unsent}; the link was created, so give it to the user yourself`)
}

/** `lychgate user links`: lists the links of a user that can be used, without their secrets. */
export async function userLinks(login: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, readsUsers, async ({ findUser, list }) => {
    const { sub } = await findUser(login)
    const links = await list((await operations()).listLinks, { sub })
    const lineOf = ({ link_id, purpose, email = '', expires_at }: Json) => [
      `${link_id}`,
      `${purpose}`,
      `${email}`,
      `valid until ${instant(Number(expires_at))}`,
    ]
    printList(flags, links, (link) => link, lineOf)
  })
}

/** `lychgate user delete-link`: deletes a link, so that it cannot be used. */
export async function userDeleteLink(
  login: string,
  linkId: string,
  flags: DestructiveFlags & ServerFlags,
): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, list, perform }) => {
    const { sub, username } = await findUser(login)
    const { listLinks, deleteLink } = await operations()
    const link = (await list(listLinks, { sub })).find(({ link_id }) => link_id === linkId)
    if (link === undefined) throw new CommandFailed(`${username} has no link with this id`)
    await confirmOrAbort(flags, `Delete the ${link['purpose']} link of ${username}?`, 'nothing was deleted')
    await perform(deleteLink, { sub, link_id: linkId })
    printResult(flags, { link_id: linkId, deleted: true }, { deleted: linkId })
  })
}
