import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { Flow } from '../dev/flows/flow.ts'
import { loadConfig } from '../settings/load.ts'
import { reportAt } from './dev-report.ts'
import { CommandFailed, WrongUsage } from './failure.ts'

interface RecordFlags {
  readonly config?: string
  readonly issuer?: string
  readonly port?: string
  readonly to?: string
  readonly run?: string
  readonly flow?: string
}

const help = `
Writes what a client did last at a misbehaving issuer of the running development server, and a test for it:
  PROFILE.har        the requests and responses, for the tools of browsers
  PROFILE.sh         the requests as curl lines
  PROFILE.test.mjs   a test for node --test, which fails for as long as the client is fooled
  test_PROFILE.py    the same for pytest
Codes, tokens and passwords are marked in them, and never shown. --run is the command that runs the client: its issuer is
in ISSUER, and no page is shown to its user. Without it the tests take the command from the variable CLIENT.

Examples:
  lychgate dev record iss-missing --to regressions --run 'node app.js'
  lychgate dev record reference --flow 4f2a --to .
`

/** Adds `lychgate dev record`, which makes files of a flow at a misbehaving issuer. */
export function addRecordCommand(dev: Command): void {
  dev
    .command('record')
    .description('write the flow of a client at a misbehaving issuer as HAR, curl lines and a failing test')
    .argument('<profile>', 'the misbehaving issuer, as lychgate dev report names it')
    .requiredOption('--to <folder>', 'the folder for the files')
    .option('--run <command>', 'how the tests run the client')
    .option('--flow <id>', 'the flow; the last one if absent')
    .option('--issuer <url>', 'the issuer of the development server (LYCHGATE_ISSUER)')
    .option('--port <number>', 'its port on localhost (LYCHGATE_PORT)')
    .option('--config <file>', 'YAML file with options (LYCHGATE_CONFIG)')
    .addHelpText('after', help)
    // Options that `dev` has as well are parsed by it, wherever they stand.
    .action((profile: string, _own: unknown, command: Command) => record(profile, command.optsWithGlobals()))
}

async function record(id: string, flags: RecordFlags): Promise<void> {
  const { config: file, issuer, port, to: folder = '.', run: command = 'false', flow: wanted } = flags
  const config = loadConfig({ mode: 'dev', flags: { issuer, port }, environment: process.env, file })
  const { profiles } = await reportAt(`${config.issuer}/_dev/issuers/report`, config.issuer)
  const profile = profiles.find((one) => one.id === id)
  if (profile === undefined) throw new WrongUsage(`there is no issuer ${id}; lychgate dev report lists them`)
  const response = await fetch(`${profile.issuer}/_dev/flows.json`)
  const { flows } = (await response.json()) as { readonly flows: readonly Flow[] } // as the route returns
  const flow = wanted === undefined ? flows[0] : flows.find((one) => one.id === wanted)
  if (flow === undefined)
    throw new CommandFailed(
      wanted === undefined ? `no client was at ${profile.issuer}` : `${id} has no flow ${wanted}`,
    )
  // Loaded late: a server for real users never needs it.
  const { filesOfFlow } = await import('../dev/issuers/failing-test.ts')
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(filesOfFlow(flow, profile, command))) {
    writeFileSync(join(folder, name), text)
    process.stdout.write(`${join(folder, name)}\n`)
  }
}
