import type { Command } from 'commander'
import type { RecordedClient } from '../prove/zoo/replay.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { printColumns, printJson } from './print.ts'
import { addTargetOptions, assertIssuer, type TargetFlags } from './target.ts'

interface ZooFlags extends TargetFlags {
  readonly against?: string
}

const help = `
Sends a server what a real client sent when it was recorded: the same requests, parameters in the same order, headers,
refreshes and sign-outs, with a user who signs in and approves. It stops where that client would.
Without --client a client is registered for the run, with a loopback redirect URI, and deleted after it.
The exit code is 1 if the client could not go on.

Examples:
  lychgate dev zoo                                              list the clients
  lychgate dev zoo directus --against http://localhost:9400 --verbose
  lychgate dev zoo gitea --against http://localhost:9400 --client gitea.json --junit gitea.xml
`

/** Adds `lychgate dev zoo`, which replays recorded clients against a server. */
export function addZooCommand(dev: Command): void {
  const command = dev
    .command('zoo')
    .description('replay a recorded client against a server')
    .argument('[client]', 'its name; without it the clients are listed')
    .option('--against <issuer>', 'the issuer of the server')
  addTargetOptions(command).addHelpText('after', help).action(zoo)
}

async function zoo(name: string | undefined, flags: ZooFlags): Promise<void> {
  // Loaded late: a server never needs it.
  const { checksOfClient, recordedClients } = await import('../prove/zoo/replay.ts')
  if (name === undefined) return list(recordedClients, flags)
  const recorded = recordedClients[name]
  if (recorded === undefined) throw new WrongUsage(`there is no client ${name}; lychgate dev zoo lists them`)
  const { against: issuer } = flags
  if (issuer === undefined) throw new WrongUsage('--against names the issuer of the server')
  assertIssuer(issuer)
  const { planOf, runChecks, showRun } = await import('./prove.ts')
  const checks = checksOfClient(name, recorded)
  const result = await runChecks(issuer, flags, () => planOf('oidc-basic', checks, titleOf(recorded)))
  showRun('lychgate dev zoo', result, flags)
  const stopped = result.results.find(({ verdict }) => verdict !== 'pass')
  if (stopped !== undefined) throw new CommandFailed(`${recorded.app} stops at ${stopped.check.id}`)
  if (result.isInterrupted) throw new CommandFailed('interrupted')
}

function list(clients: Readonly<Record<string, RecordedClient>>, { json }: ZooFlags): void {
  const rows = Object.entries(clients).map(([name, one]) => [name, titleOf(one), one.recorded] as const)
  if (json) printJson(clients)
  else printColumns(rows)
}

function titleOf({ app, version }: RecordedClient): string {
  return `${app} ${version}`
}
