import type { Command } from 'commander'
import { addYesFlag } from './confirm-or-abort.ts'
import { addOperatorFlags } from './open.ts'

const listHelp = `
States: approved (a code is out), active, revoked, expired. A grant is one approval, from the code to the last refresh
token. With --ended those that are revoked or expired as well, until they are swept.

Examples:
  lychgate grant list --user alice
  lychgate grant list --client client_x1f8… --ended --json
`

const showHelp = `
Ids may begin with a hyphen, hence the --.

Example:
  lychgate grant show -- a0bIf3q…
`

const revokeHelp = `
A remembered consent is forgotten with it, so the client has to ask again. It counts at once; only JWT access tokens
go on where nobody introspects them, until they expire.

Examples:
  lychgate grant revoke -- a0bIf3q…
  lychgate grant revoke --user alice --client client_x1f8…
  lychgate grant revoke --client client_x1f8… --yes
`

/** Adds `lychgate grant …`: what users granted to clients. */
export function addGrantCommands(program: Command): void {
  const group = program.command('grant').description('list, show and revoke what people granted to clients')
  const list = group
    .command('list')
    .description('approvals that are alive, by person, oldest first')
    .option('--user <name>', 'of this person: user name, e-mail address or sub')
    .option('--client <client_id>', 'at this client')
    .option('--ended', 'also those that are revoked or expired')
  addOperatorFlags(list, listHelp).action(async (flags) => (await import('./grant/list.ts')).grantList(flags))
  const show = group.command('show <grant>').description('one approval, and what became of it')
  addOperatorFlags(show, showHelp).action(async (id, flags) =>
    (await import('./grant/show.ts')).grantShow(id, flags),
  )
  const revoke = group
    .command('revoke [grant]')
    .description('end an approval, or all of a person, of a client, or of both together')
    .option('--user <name>', 'every grant of this person')
    .option('--client <client_id>', 'every grant at this client')
  addOperatorFlags(addYesFlag(revoke), revokeHelp).action(async (id, flags) =>
    (await import('./grant/revoke.ts')).grantRevoke(id, flags),
  )
}
