import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { Report } from '../dev/issuers/report.ts'
import { loadConfig } from '../settings/load.ts'
import { CommandFailed } from './failure.ts'
import { explained, junit } from './junit.ts'
import { printColumns, printJson } from './print.ts'

interface ReportFlags {
  readonly config?: string
  readonly issuer?: string
  readonly port?: string
  readonly json?: true
  readonly junit?: string
  readonly all?: true
  readonly reset?: true
}

const help = `
It asks the running development server what clients made of the issuers that lie, GET /_dev/issuers:
  fooled       the client did, after it was lied to, what only somebody does who believed it
  rejected     it was lied to, and did not
  not reached  it was not lied to
It ends with 1 when somebody was fooled, or when no client got through at the issuer that does not lie,
/_dev/issuers/reference: then being refused by the others proves nothing.

Examples:
  lychgate dev report
  lychgate dev report --port 9500 --junit reports/issuers.xml
  lychgate dev report --json | jq -r '.profiles[] | select(.verdict == "fooled") | .id'
  lychgate dev report --all --reset            also 1 for what was not reached; then begin anew
`

/** Adds `lychgate dev report`: what clients made of the misbehaving issuers of a running development server. */
export function addReportCommand(dev: Command): void {
  dev
    .command('report')
    .description('what clients made of the issuers that lie: rejected, fooled or not reached')
    .option('--issuer <url>', 'of the development server (LYCHGATE_ISSUER)')
    .option('--port <number>', 'the same on localhost (LYCHGATE_PORT)')
    .option('--config <file>', 'YAML file with options (LYCHGATE_CONFIG)')
    .option('--json', 'print JSON')
    .option('--junit <file>', 'write JUnit XML, a test case for each issuer')
    .option('--all', 'not reached counts as a failure, too')
    .option('--reset', 'forget what was seen, once it is told')
    .addHelpText('after', help)
    // Options that `dev` has, too, are taken by it, wherever they stand.
    .action((_own: unknown, command: Command) => report(command.optsWithGlobals()))
}

async function report({ config: file, issuer, port, ...flags }: ReportFlags): Promise<void> {
  const config = loadConfig({ mode: 'dev', flags: { issuer, port }, environment: process.env, file })
  const url = `${config.issuer}/_dev/issuers/report`
  const found = await reportAt(url, config.issuer)
  if (flags.junit !== undefined) writeFileSync(flags.junit, junit(found, flags.all === true))
  if (flags.json) printJson(found)
  else printReport(found)
  if (flags.reset) await fetch(url, { method: 'DELETE' })
  const failure = failureOf(found, flags.all === true)
  if (failure !== undefined) throw new CommandFailed(failure)
}

async function reportAt(url: string, issuer: string): Promise<Report> {
  const response = await fetch(url).catch(() => undefined)
  if (response?.status === 200) return (await response.json()) as Report // as the route answers
  const why = response === undefined ? 'nothing answers there' : 'what answers there is none'
  throw new CommandFailed(
    `no development server at ${issuer}: ${why}; start lychgate dev, or name it with --issuer or --port`,
  )
}

/** Why the command exits with 1; undefined if no client was fooled and that is conclusive. */
function failureOf({ reference, fooled, not_reached }: Report, countsAll: boolean): string | undefined {
  if (reference !== 'passed') {
    return 'no client got through at /_dev/issuers/reference, where nobody lies: the rest proves nothing'
  }
  if (fooled > 0) return `fooled by ${fooled} of the issuers that lie`
  return countsAll && not_reached > 0 ? `${not_reached} of the issuers that lie were not reached` : undefined
}

function printReport({ profiles, fooled, rejected, not_reached }: Report): void {
  printColumns(profiles.map(({ verdict, id, title }) => [verdict, id, title]))
  for (const profile of profiles.filter(({ verdict }) => verdict === 'fooled')) {
    process.stdout.write(`\n${explained(profile)}\n`)
  }
  process.stdout.write(`\n${fooled} fooled, ${rejected} rejected, ${not_reached} not reached\n`)
}
