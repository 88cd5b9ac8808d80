import type { Command } from 'commander'
import { addYesFlag } from './confirm-or-abort.ts'
import { addOperatorFlags } from './open.ts'

const listHelp = `
Networks are told, not addresses.

Examples:
  lychgate session list
  lychgate session list --user alice --json
`

const endHelp = `
The browser has to sign in again; what its person granted to clients goes on. Ids may begin with a hyphen, hence
the --.

Examples:
  lychgate session end -- 3q2-7wAAAA…
  lychgate session end --user alice --yes
`

/** Adds `lychgate session …`: the browsers in which users are signed in. */
export function addSessionCommands(program: Command): void {
  const group = program.command('session').description('list and end the logins of people')
  const list = group
    .command('list')
    .description('who is signed in, in which browser, from where; by person, oldest first')
    .option('--user <name>', 'of this person: user name, e-mail address or sub')
  addOperatorFlags(list, listHelp).action(async (flags) =>
    (await import('./session/list.ts')).sessionList(flags),
  )
  const end = group
    .command('end [session]')
    .description('end one login, or every login of a person')
    .option('--user <name>', 'every session of this person')
  addOperatorFlags(addYesFlag(end), endHelp).action(async (id, flags) =>
    (await import('./session/end.ts')).sessionEnd(id, flags),
  )
}
