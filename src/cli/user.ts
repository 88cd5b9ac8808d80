import type { Command } from 'commander'
import { textClaims } from '../domain/claims.ts'
import { addOperatorFlags, addYesFlag } from './flags.ts'
import {
  userInvite,
  userLock,
  userRemove,
  userRemovePasskeys,
  userRemoveSecondFactor,
  userResetLink,
  userRevoke,
  userUnlock,
} from './user-access.ts'
import { userAdd, userList, userPasswd, userSet, userShow } from './user-profile.ts'

const addHelp = `
The password is asked for, or read from the first line of standard input; it is never an argument. To let people
choose their own, invite them.

Examples:
  lychgate user add carol --email carol@example.com --name 'Carol Cooper'
  pwgen 20 1 | lychgate user add carol
`

const inviteHelp = `
The link is sent where mail.url names a mail server, and printed otherwise. Its page asks for a name and a password.
Opened from the email, the link proves the address; handed over by you, it does not. Until there is a password, a
second invitation makes another link, and the first one still works. Each works for lifetimes.invitationSeconds.

Examples:
  lychgate user invite alice@example.org
  lychgate user invite alice@example.org --username alice --name 'Alice Archer' --locale de
  lychgate user invite alice@example.org --print --json | jq -r .link
`

const resetHelp = `
For somebody who forgot it. It is sent to their address, or printed. The password stays what it is until they choose
another. It works for lifetimes.passwordResetSeconds.

Examples:
  lychgate user reset-link alice
  lychgate user reset-link alice@example.org --print
`

const setHelp = `
What is not named stays, an empty text takes the claim or the address away. Another address is not verified until
it is proven to be theirs, or you say --email-verified.

Examples:
  lychgate user set carol --name 'Carol Cooper' --website ''
  lychgate user set carol --email carol@example.org --email-verified
`

const passwordHelp = `
It is asked for, or read from the first line of standard input. Every session of theirs ends. What they granted to
clients goes on, unless you say --disconnect.

Examples:
  lychgate user passwd carol
  pwgen 20 1 | lychgate user passwd carol --disconnect
`

const lockHelp = `
They cannot sign in, with nothing; sessions, links and everything they granted to clients end at once and for good.

Examples:
  lychgate user lock carol
  lychgate user lock carol --yes && lychgate audit --user carol --since 1d
`

const revokeHelp = `
Their password and passkeys stay. lychgate grant revoke ends less, lychgate user lock ends more.

Example:
  lychgate user revoke carol --yes
`

const example = (line: string) => `\nExample:\n  lychgate user ${line}\n`

/** Adds `lychgate user …`: the users who can sign in. */
export function addUserCommands(program: Command): void {
  const group = program.command('user').description('add, invite, change, lock and remove people')
  const command = (name: string, description: string) => group.command(name).description(description)
  const add = command('add <username>', 'add a person with a password')
    .option('--email <address>', 'also a way to sign in')
    .option('--email-verified', 'you know it is theirs')
  addOperatorFlags(addClaimFlags(add), addHelp).action(userAdd)
  const invite = command('invite <email>', 'add a person who sets their own name and password')
    .option('--username <name>', 'how they are called (default: their address)')
    .option('--print', 'print the link, also where mail could be sent')
  addOperatorFlags(addClaimFlags(invite), inviteHelp).action(userInvite)
  const reset = command('reset-link <user>', 'give a person a link to a new password').option(
    '--print',
    'print the link, also where mail could be sent',
  )
  addOperatorFlags(reset, resetHelp).action(userResetLink)
  addOperatorFlags(command('list', 'every person, oldest first'), example('list --json')).action(userList)
  const show = command('show <user>', 'a person, how they can sign in, and what is open for them')
  addOperatorFlags(show, example('show carol@example.com')).action(userShow)
  const set = command('set <user>', 'change what the profile of a person says')
    .option('--email <address>', 'another e-mail address')
    .option('--email-verified', 'you know it is theirs')
    .option('--no-email-verified', 'you do not know that any more')
  addOperatorFlags(addClaimFlags(set), setHelp).action(userSet)
  const passwd = command('passwd <user>', 'a new password; every session of theirs ends').option(
    '--disconnect',
    'take back everything they granted to clients, too',
  )
  addOperatorFlags(passwd, passwordHelp).action(userPasswd)
  const lock = addYesFlag(command('lock <user>', 'keep a person out; what they have open ends'))
  addOperatorFlags(lock, lockHelp).action(userLock)
  const unlock = command('unlock <user>', 'let a person sign in again')
  addOperatorFlags(unlock, example('unlock carol')).action(userUnlock)
  const revoke = addYesFlag(command('revoke <user>', 'end every session and every grant of a person'))
  addOperatorFlags(revoke, revokeHelp).action(userRevoke)
  const factor = addYesFlag(
    command(
      'remove-second-factor <user>',
      'remove the one-time codes of a user; every session of theirs ends',
    ),
  )
  addOperatorFlags(factor, example('remove-second-factor carol')).action(userRemoveSecondFactor)
  const passkeys = addYesFlag(
    command('remove-passkeys <user>', 'remove the passkeys of a user; every session of theirs ends'),
  )
  addOperatorFlags(passkeys, example('remove-passkeys carol')).action(userRemovePasskeys)
  const remove = addYesFlag(command('remove <user>', 'remove a person; sessions and tokens die with them'))
  addOperatorFlags(remove, example('remove carol --yes')).action(userRemove)
}

function addClaimFlags(command: Command): Command {
  for (const claim of textClaims)
    command.option(`--${claim.replaceAll('_', '-')} <text>`, `the claim ${claim}`)
  return command
}
