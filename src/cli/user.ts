import { type Command, Option } from 'commander'
import type { lacking as factorsLacking } from '../admin/operations/access.ts'
import { textClaims } from '../domain/claims.ts'
import { userFactors } from './access.ts'
import { addAnywhereFlags } from './files/open-target.ts'
import { addForceFlag, addYesFlag, collect } from './flags.ts'
import {
  userLock,
  userRemove,
  userRemovePasskeys,
  userRemoveSecondFactor,
  userRevoke,
  userTestEmail,
  userUnlock,
} from './user-acts.ts'
import { userDeleteLink, userInvite, userInviteList, userLinks, userResetLink } from './user-links.ts'
import { userAdd, userList, userPasswd, userSet, userShow } from './user-profile.ts'
import { userRevokeToken, userTokens } from './user-tokens.ts'

const addHelp = `
Asks for the password, or reads it from the first line of standard input; it is never an argument. To let users
choose their own password, invite them. The first user is an administrator by the link that lychgate serve prints, and
by this command with --admin only; once there is a user, no such link works.

Examples:
  lychgate user add carol --email carol@example.com --given-name Carol --family-name Cooper
  pwgen 20 1 | lychgate user add carol
  lychgate user add ada --email ada@example.com --admin
`

const inviteHelp = `
Sends the link by email if mail.url is set, and prints it otherwise. Its page asks for a name, and for a passkey or a password. A link
that is opened from the email verifies the address; a printed one does not. Until the user can sign in, another
invitation creates another link, and the first one stays valid. Each is valid for lifetimes.invitationSeconds.

Examples:
  lychgate user invite alice@example.org
  lychgate user invite alice@example.org --username alice --given-name Alice --family-name Archer --locale de
  lychgate user invite alice@example.org --print --json | jq -r .link
`

const inviteListHelp = `
The file has an email address on each line, or is CSV whose first line names the columns: email, username, claims such
as given_name, and attributes. If a line is wrong, its number is printed, and no user is invited. At most 100 users.

Examples:
  lychgate user invite-list class-7b.csv --group pupils
  printf 'carol@example.org\\ndora@example.org\\n' | lychgate user invite-list - --print
`

const resetHelp = `
For a user who forgot the password. Sends the link by email, or prints it. The password stays valid until the user
chooses another. The link is valid for lifetimes.passwordResetSeconds.

Examples:
  lychgate user reset-link alice
  lychgate user reset-link alice@example.org --print
`

const tokensHelp = `
Administrators create them on the admin pages, under their own name. A personal token ends when it expires or is revoked,
and when its owner is locked, deleted or no longer an administrator.

Examples:
  lychgate user tokens alice
  LYCHGATE_TOKEN=lyc_personal_… lychgate user list --server https://id.example.com
`

const setHelp = `
Claims that are not named stay; an empty text removes the claim or the address. --name follows from --given-name and
--family-name unless you give another one. A new address is not verified until the user verifies it, or you say
--email-verified.

Examples:
  lychgate user set carol --family-name Cooper --website ''
  lychgate user set carol --email carol@example.org --email-verified
  lychgate user set carol --attribute department=physics --attribute level=
`

const passwordHelp = `
Asks for the password, or reads it from the first line of standard input. Ends every session of the user. Grants to
clients stay valid without --disconnect.

Examples:
  lychgate user passwd carol
  pwgen 20 1 | lychgate user passwd carol --disconnect
`

const lockHelp = `
The user cannot sign in by any method. Sessions, links and grants end at once, and unlocking does not restore them.

Examples:
  lychgate user lock carol
  lychgate user lock carol --yes && lychgate audit --user carol --since 1d
`

const revokeHelp = `
The password and the passkeys stay. lychgate grant revoke ends less, lychgate user lock ends more.

Example:
  lychgate user revoke carol --yes
`

const example = (line: string) => `\nExample:\n  lychgate user ${line}\n`

const lacking = ['second-factor', 'passkey', 'policy'] satisfies (typeof factorsLacking)[number][]

const factorsHelp = `
Users who are locked are left out. The policy is that of the server and of the groups of each user
(signInPolicy); what one client requires in addition is shown by lychgate explain access.

Examples:
  lychgate user factors --lacks second-factor
  lychgate user factors --lacks policy --json | jq -r .username
`

/** Adds `lychgate user …`: the users who can sign in. */
export function addUserCommands(program: Command): void {
  const group = program.command('user').description('add, invite, change, lock and delete users')
  const command = (name: string, description: string) => group.command(name).description(description)
  const add = command('add <username>', 'add a user with a password')
    .option('--email <address>', 'the email address, with which the user can sign in as well')
    .option('--email-verified', 'the address is verified')
    .option('--admin', 'make the user an administrator, who can open the admin pages; on a store')
  addAnywhereFlags(addClaimFlags(add), addHelp).action(userAdd)
  const invite = command('invite <email>', 'add a user who chooses a name and a password')
    .option('--username <name>', 'the user name (default: the email address)')
    .option('--print', 'print the link instead of sending it')
  addAnywhereFlags(addClaimFlags(invite), inviteHelp).action(userInvite)
  const inviteList = command('invite-list <file>', 'invite the users of a list, all of them or none')
    .option('--group <name>', 'add them to this group')
    .option('--print', 'print the links instead of sending them')
  addAnywhereFlags(inviteList, inviteListHelp).action(userInviteList)
  const reset = command(
    'reset-link <user>',
    'create a link with which a user sets a passkey or a password',
  ).option('--print', 'print the link instead of sending it')
  addAnywhereFlags(reset, resetHelp).action(userResetLink)
  addAnywhereFlags(
    command('links <user>', 'list the links of a user that can be used'),
    example('links carol'),
  ).action(userLinks)
  const deleteLink = addYesFlag(
    command('delete-link <user> <link>', 'delete a link, so that it cannot be used'),
  )
  addAnywhereFlags(deleteLink, example('delete-link carol -- -0bIf3q…')).action(userDeleteLink)
  const tokens = command('tokens <user>', 'list the personal tokens of a user, which call the admin API')
  addAnywhereFlags(tokens, tokensHelp).action(userTokens)
  const revokeToken = addYesFlag(command('revoke-token <user> <token_id>', 'revoke a personal token'))
  addAnywhereFlags(revokeToken, example('revoke-token alice 3q2-8f…')).action(userRevokeToken)
  addAnywhereFlags(command('list', 'list every user, oldest first'), example('list --json')).action(userList)
  const factors = command(
    'factors',
    'list what each user can sign in with, and who lacks what a policy requires',
  ).addOption(new Option('--lacks <what>', 'only users without it').choices(lacking))
  addAnywhereFlags(factors, factorsHelp).action(userFactors)
  const show = command('show <user>', 'show a user, how they can sign in, their sessions and grants')
  addAnywhereFlags(show, example('show carol@example.com')).action(userShow)
  const set = command('set <user>', 'change the profile of a user')
    .option('--username <name>', 'another user name; the old one is free at once')
    .option('--email <address>', 'the new email address')
    .option('--email-verified', 'the address is verified')
    .option('--no-email-verified', 'the address is not verified')
  addAnywhereFlags(addClaimFlags(set), setHelp).action(userSet)
  const passwd = command('passwd <user>', 'set a new password and end every session of a user').option(
    '--disconnect',
    'revoke every grant as well',
  )
  addAnywhereFlags(passwd, passwordHelp).action(userPasswd)
  const lock = addYesFlag(command('lock <user>', 'lock a user, and end their sessions, links and grants'))
  addAnywhereFlags(addForceFlag(lock), lockHelp).action(userLock)
  addAnywhereFlags(
    command('unlock <user>', 'let a locked user sign in again'),
    example('unlock carol'),
  ).action(userUnlock)
  addAnywhereFlags(
    command('test-email <user>', 'send a test email to a user'),
    example('test-email carol'),
  ).action(userTestEmail)
  const revoke = addYesFlag(command('revoke <user>', 'end every session and revoke every grant of a user'))
  addAnywhereFlags(revoke, revokeHelp).action(userRevoke)
  const factor = addYesFlag(
    command('remove-second-factor <user>', 'remove the one-time codes of a user and end their sessions'),
  )
  addAnywhereFlags(factor, example('remove-second-factor carol')).action(userRemoveSecondFactor)
  const passkeys = addYesFlag(
    command('remove-passkeys <user>', 'remove the passkeys of a user and end their sessions'),
  )
  addAnywhereFlags(addForceFlag(passkeys), example('remove-passkeys carol')).action(userRemovePasskeys)
  const remove = addYesFlag(
    command('delete <user>', 'delete a user with their sessions and tokens').alias('remove'),
  )
  addAnywhereFlags(addForceFlag(remove), example('delete carol --yes')).action(userRemove)
}

function addClaimFlags(command: Command): Command {
  for (const claim of textClaims)
    command.option(`--${claim.replaceAll('_', '-')} <text>`, `the claim ${claim}`)
  return command.option(
    '--attribute <name=value>',
    'an attribute of accounts.attributes; may be repeated, without a value it is removed',
    collect,
  )
}
