import { Command, CommanderError } from 'commander'
import { addAuditCommand } from './cli/audit.ts'
import { addBackupCommand } from './cli/backup.ts'
import { addClientCommands } from './cli/client.ts'
import { addConfigCommands } from './cli/config.ts'
import type { DevFlags } from './cli/dev.ts'
import { addReportCommand } from './cli/dev-report.ts'
import { addDoctorCommand } from './cli/doctor/command.ts'
import { endWithNpm } from './cli/end-with-npm.ts'
import { addExplainCommand } from './cli/explain.ts'
import { exitCode, reportFailure } from './cli/failure.ts'
import { addGrantCommands } from './cli/grant.ts'
import { addHealthcheckCommand } from './cli/healthcheck.ts'
import { addKeyCommands } from './cli/keys.ts'
import { addRestoreCommand } from './cli/restore.ts'
import { addServerFlags, type ServerFlags } from './cli/server-flags.ts'
import { addSessionCommands } from './cli/session.ts'
import { addTokenCommand } from './cli/token.ts'
import { addUserCommands } from './cli/user.ts'
import { version } from './version.ts'

const examples = `
Examples:
  lychgate dev                                       a server to develop against, ready in a second
  lychgate dev --port 9500
  lychgate token --user alice --scope courses:read   a token of that server
  lychgate serve --config lychgate.yaml --data /var/lib/lychgate
  lychgate client add --name 'Course app' --redirect-uri https://app.example.com/callback
  lychgate user invite carol@example.com             a link with which she sets her own password
  lychgate user add carol --email carol@example.com  or you set it
  lychgate grant list --user carol                   what she granted to which clients
  lychgate session end --user carol                  she has to sign in again
  lychgate keys rotate                               new keys, published before they sign
  lychgate backup /backup/lychgate.db                a copy, while the server runs
  lychgate doctor                                    what is wrong with this set-up?
  lychgate explain - < token.txt                     why is this token not active? (or: this request id)
  lychgate audit --since 1d                          who signed in, agreed, revoked or changed what

Every option has a variable, too: issuer is LYCHGATE_ISSUER, lifetimes.codeSeconds is
LYCHGATE_LIFETIMES_CODE_SECONDS. Flags win over variables, variables over the file.
lychgate config print shows all of them, and who said each; docs/configuration.md has the table.
Exit codes: 0 done, 1 refused or failed, 64 wrong usage, 78 wrong configuration.
`

const devExamples = `
Examples:
  lychgate dev --port 0                              a free port; the issuer is printed
  lychgate dev --people people.yaml
  lychgate dev --time +31d                           what a client sees in a month
  lychgate dev --auto-sign-in alice --auto-consent   no page is ever shown
  lychgate dev report                                which clients believed a misbehaving issuer
  curl -s localhost:9400/_dev/clock -H 'content-type: application/json' -d '{"advance":"1h"}'

The routes below /_dev move the time, issue tokens, lose replies and more: docs/development.md.
`

/** Runs one command line and returns the exit code; a server goes on until a signal ends it. */
export async function main(argv: readonly string[]): Promise<number> {
  process.stdout.on('error', ignoreClosedPipe)
  try {
    await commandLine().parseAsync([...argv])
    return exitCode.ok
  } catch (error) {
    // Commander has said already what it had to say.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.usage
    return reportFailure(error)
  }
}

function commandLine(): Command {
  const program = new Command('lychgate')
    .description('An OAuth 2.0 and OpenID Connect server.')
    .option('-V, --version', 'the version and the commit it was built from')
    .on('option:version', printVersion)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(oneLine(text)) })
    .showHelpAfterError('(--help shows what there is)')
    .addHelpText('after', examples)
  const dev = program
    .command('dev')
    .description('start a development server on localhost, with two people to sign in as')
  addServerFlags(dev)
    .option('--people <file>', 'YAML file with the people to sign in as, instead of alice and bob')
    .option('--time <when>', 'the time it starts at: 2027-01-01T00:00:00Z, or +31d')
    .option('--auto-sign-in <user>', 'whoever is to sign in is this person, without a page')
    .option('--auto-consent', 'everything a client asks for is agreed to, without a page')
    .addHelpText('after', devExamples)
    .action(async (flags: DevFlags) => {
      endWithNpm(process.env)
      await (await import('./cli/dev.ts')).dev(flags)
    })
  addReportCommand(dev)
  const serve = program
    .command('serve')
    .description('start the server for real people; it needs LYCHGATE_SECRET')
  addServerFlags(serve).action(async (flags: ServerFlags) => {
    endWithNpm(process.env)
    await (await import('./cli/serve.ts')).serve(flags)
  })
  addClientCommands(program)
  addUserCommands(program)
  addGrantCommands(program)
  addSessionCommands(program)
  addKeyCommands(program)
  addTokenCommand(program)
  addBackupCommand(program)
  addRestoreCommand(program)
  addExplainCommand(program)
  addAuditCommand(program)
  addConfigCommands(program)
  addHealthcheckCommand(program)
  addDoctorCommand(program)
  return program
}

/** Commander puts its suggestion on a line of its own. */
function oneLine(text: string): string {
  return `lychgate: ${text
    .replace(/^error: /, '')
    .trim()
    .replaceAll('\n', ' ')}\n`
}

/** `lychgate client list | head` ends the reader first; that is no failure of ours. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

/** Not commander's own option: that wants the text at once, and the sources ask git for theirs. */
function printVersion(): void {
  process.stdout.write(`${version()}\n`)
  throw new CommanderError(exitCode.ok, 'commander.version', '')
}
