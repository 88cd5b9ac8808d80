import { Command, CommanderError } from 'commander'
import { exitCode, reportFailure } from './cli/failure.ts'

const examples = `
Examples:
  lychgate dev                                       a development server, ready in a second
  lychgate dev --port 9500
  lychgate token --user alice --scope courses:read   a token of that server
  lychgate init                                      a folder for a server for real users
  lychgate serve --config lychgate.yaml --data /var/lib/lychgate
  lychgate client add --name 'Course app' --redirect-uri https://app.example.com/callback
  lychgate user invite carol@example.com             a link with which she sets her password
  lychgate user add carol --email carol@example.com  or you set her password
  lychgate group add staff carol                     she is in the group that apps may ask for
  lychgate export --to config                        all of these as files, which lychgate apply reads
  lychgate grant list --user carol                   what she granted to which clients
  lychgate session end --user carol                  she has to sign in again
  lychgate keys rotate                               new keys, published before they sign
  lychgate backup /backup/lychgate.db                a copy of the database, while the server runs
  lychgate doctor                                    what is wrong with this set-up?
  lychgate prove http://localhost:9400               does this server do what the clauses say?
  lychgate explain - < token.txt                     why is this token not active? or: this request id
  lychgate audit --since 1d                          who signed in, consented, revoked or changed what

Every option has a variable as well: issuer is LYCHGATE_ISSUER, lifetimes.codeSeconds is
LYCHGATE_LIFETIMES_CODE_SECONDS. Flags override variables, and variables override the file.
lychgate config print shows every setting and its source; docs/configuration.md describes them.
Exit codes: 0 success, 1 failure, 2 a dry run would change something, 64 wrong usage, 75 try again (another change came
first, or the server did not respond), 78 wrong configuration.
`

/** The commands in the order of the help. Only the module of the command that runs is loaded. */
const commands: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  dev: async () => (await import('./cli/server.ts')).addDevCommand,
  serve: async () => (await import('./cli/server.ts')).addServeCommand,
  init: async () => (await import('./cli/init.ts')).addInitCommand,
  client: async () => (await import('./cli/client.ts')).addClientCommands,
  user: async () => (await import('./cli/user.ts')).addUserCommands,
  group: async () => (await import('./cli/group.ts')).addGroupCommands,
  upstream: async () => (await import('./cli/upstream.ts')).addUpstreamCommands,
  scope: async () => (await import('./cli/scope.ts')).addScopeCommands,
  resource: async () => (await import('./cli/resource.ts')).addResourceCommands,
  apply: async () => (await import('./cli/files/apply.ts')).addApplyCommand,
  export: async () => (await import('./cli/files/export.ts')).addExportCommand,
  grant: async () => (await import('./cli/grant.ts')).addGrantCommands,
  session: async () => (await import('./cli/session.ts')).addSessionCommands,
  logout: async () => (await import('./cli/logout.ts')).addLogoutCommands,
  registration: async () => (await import('./cli/registration.ts')).addRegistrationCommands,
  keys: async () => (await import('./cli/keys.ts')).addKeyCommands,
  token: async () => (await import('./cli/token.ts')).addTokenCommand,
  backup: async () => (await import('./cli/backup.ts')).addBackupCommand,
  restore: async () => (await import('./cli/backup.ts')).addRestoreCommand,
  store: async () => (await import('./cli/store-copy.ts')).addStoreCommands,
  explain: async () => (await import('./cli/explain.ts')).addExplainCommand,
  audit: async () => (await import('./cli/audit.ts')).addAuditCommand,
  config: async () => (await import('./cli/config.ts')).addConfigCommands,
  healthcheck: async () => (await import('./cli/healthcheck.ts')).addHealthcheckCommand,
  prove: async () => (await import('./cli/prove.ts')).addProveCommand,
  doctor: async () => (await import('./cli/doctor/command.ts')).addDoctorCommand,
  completion: async () => (await import('./cli/completion.ts')).addCompletionCommand,
}

/** Runs one command line and returns the exit code; a server continues until a signal ends it. */
export async function main(argv: readonly string[]): Promise<number> {
  process.stdout.on('error', ignoreClosedPipe)
  try {
    const program = await commandLine(argv[2] === 'help' ? argv[3] : argv[2])
    await program.parseAsync(identifiersLast(untilUnknown(program, argv)))
    return exitCode.ok
  } catch (error) {
    // Commander has printed its message already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.usage
    return reportFailure(error)
  }
}

/** Ends the command line at an unknown command: with `--help` behind it, commander would print help and end with 0. */
function untilUnknown(program: Command, argv: readonly string[]): readonly string[] {
  let command = program
  for (const [at, name] of argv.entries()) {
    if (at < 2 || (name === 'help' && command.commands.length > 0)) continue
    if (command.commands.length === 0 || name.startsWith('-')) break
    const next = command.commands.find((one) => one.name() === name || one.aliases().includes(name))
    // A command that takes arguments reads an unknown word as one.
    if (next === undefined && command.registeredArguments.length > 0) break
    if (next === undefined) return argv.slice(0, at + 1).filter((word) => word !== 'help')
    command = next
  }
  return argv
}

/** Builds the command line. Help, completion and suggestions for a misspelt command need all commands. */
export async function commandLine(first = ''): Promise<Command> {
  const program = new Command('lychgate')
    .description('An OAuth 2.0 and OpenID Connect server.')
    .option('-V, --version', 'the version and the commit it was built from')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(oneLine(text)) })
    .showHelpAfterError('(see --help)')
    .addHelpText('after', examples)
  if (['-V', '--version'].includes(first)) return program.allowExcessArguments().action(printVersion)
  const isAlone = Object.hasOwn(commands, first) && first !== 'completion'
  const named = isAlone ? [commands[first]] : Object.values(commands)
  for (const load of named) (await load?.())?.(program)
  return program
}

/**
 * The id of a key is a thumbprint in base64url, RFC 7638, of which one in 64 begins with a hyphen. Commander takes that
 * for an option, except after `--`.
 */
function identifiersLast(argv: readonly string[]): string[] {
  const isIdentifier = (argument: string, at: number) =>
    /^-[\w-]{42}$/.test(argument) && argv[at - 1]?.startsWith('--') !== true
  const identifiers = argv.filter(isIdentifier)
  if (identifiers.length === 0 || argv.includes('--')) return [...argv]
  return [...argv.filter((argument, at) => !isIdentifier(argument, at)), '--', ...identifiers]
}

/** Commander prints its suggestion on a separate line. */
function oneLine(text: string): string {
  return `lychgate: ${text
    .replace(/^error: /, '')
    .trim()
    .replaceAll('\n', ' ')}\n`
}

/** `lychgate client list | head` closes the pipe first; that is not a failure. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

/** Commander's own option needs the text at once; the sources ask git for the commit. */
async function printVersion(): Promise<void> {
  const { version } = await import('./system/version.ts')
  process.stdout.write(`${version()}\n`)
}
