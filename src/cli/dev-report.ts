import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { Report, ReportedProfile } from '../dev/issuers/report.ts'
import { loadConfig } from '../settings/load.ts'
import { CommandFailed } from './failure.ts'
import { printColumns, printJson, visible, visibleLines } from './print.ts'
import { escaped } from './reports/junit.ts'

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
Asks the running development server how clients behaved at its misbehaving issuers, GET /_dev/issuers:
  fooled       the client acted on a faulty response
  rejected     the client got a faulty response and did not act on it
  not reached  the client got no faulty response
The exit code is 1 if a client was fooled, or if no client completed a flow at /_dev/issuers/reference, which does not
misbehave: without that, a rejection proves nothing.

Examples:
  lychgate dev report
  lychgate dev report --port 9500 --junit reports/issuers.xml
  lychgate dev report --json | jq -r '.profiles[] | select(.verdict == "fooled") | .id'
  lychgate dev report --all --reset            exit with 1 if an issuer was not reached, then start over
`

/** Adds `lychgate dev report`, which shows how clients behaved at the misbehaving issuers. */
export function addReportCommand(dev: Command): void {
  dev
    .command('report')
    .description('show how clients behaved at the misbehaving issuers: rejected, fooled or not reached')
    .option('--issuer <url>', 'the issuer of the development server (LYCHGATE_ISSUER)')
    .option('--port <number>', 'its port on localhost (LYCHGATE_PORT)')
    .option('--config <file>', 'YAML file with options (LYCHGATE_CONFIG)')
    .option('--json', 'print JSON')
    .option('--junit <file>', 'write JUnit XML with a test case for each issuer')
    .option('--all', 'count issuers that were not reached as failures')
    .option('--reset', 'clear the report after printing it')
    .addHelpText('after', help)
    // Options that `dev` has as well are parsed by it, wherever they stand.
    .action((_own: unknown, command: Command) => report(command.optsWithGlobals()))
}

async function report({ config: file, issuer, port, ...flags }: ReportFlags): Promise<void> {
  const config = loadConfig({ mode: 'dev', flags: { issuer, port }, environment: process.env, file })
  const url = `${config.issuer}/_dev/issuers/report`
  const reported = await reportAt(url, config.issuer)
  if (flags.junit !== undefined) writeFileSync(flags.junit, junit(reported, flags.all === true))
  if (flags.json) printJson(reported)
  else printReport(reported)
  if (flags.reset) await fetch(url, { method: 'DELETE' })
  const failure = failureOf(reported, flags.all === true)
  if (failure !== undefined) throw new CommandFailed(failure)
}

async function reportAt(url: string, issuer: string): Promise<Report> {
  const response = await fetch(url).catch(() => undefined)
  if (response?.status === 200) return (await response.json()) as Report // as the route returns
  const why = response === undefined ? 'nothing responds there' : 'another server responds there'
  throw new CommandFailed(
    `no development server at ${issuer}: ${why}; start lychgate dev, or name it with --issuer or --port`,
  )
}

/** Why the command exits with 1; undefined if no client was fooled and that is conclusive. */
function failureOf({ reference, fooled, not_reached }: Report, countsAll: boolean): string | undefined {
  if (reference !== 'passed') {
    return 'no client completed a flow at /_dev/issuers/reference, which does not misbehave: the rest proves nothing'
  }
  if (fooled > 0) return `fooled by ${fooled} of the misbehaving issuers`
  return countsAll && not_reached > 0
    ? `${not_reached} of the misbehaving issuers were not reached`
    : undefined
}

function printReport({ profiles, fooled, rejected, not_reached }: Report): void {
  printColumns(profiles.map(({ verdict, id, title }) => [verdict, id, title]))
  for (const profile of profiles.filter(({ verdict }) => verdict === 'fooled')) {
    process.stdout.write(`\n${explained(profile)}\n`)
  }
  process.stdout.write(`\n${fooled} fooled, ${rejected} rejected, ${not_reached} not reached\n`)
}

/**
 * Formats a report as JUnit XML, with a test case for each issuer: failed if the client was fooled, skipped if it was
 * not reached.
 * @param countsAll Counts an issuer that was not reached as failed, too.
 */
function junit({ profiles, reference, fooled, not_reached }: Report, countsAll: boolean): string {
  const failures = fooled + (countsAll ? not_reached : 0) + (reference === 'passed' ? 0 : 1)
  const counts = `tests="${profiles.length}" failures="${failures}" errors="0" skipped="${countsAll ? 0 : not_reached}"`
  const cases = profiles.map((profile) => testCase(profile, countsAll))
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="misbehaving issuers" ${counts}>
${cases.join('\n')}
  </testsuite>
</testsuites>
`
}

function testCase(profile: ReportedProfile, countsAll: boolean): string {
  const { id, title, verdict } = profile
  const head = `    <testcase classname="lychgate.issuers" name="${escaped(`${id}: ${title}`)}"`
  if (verdict === 'passed' || verdict === 'rejected') return `${head}/>`
  if (verdict === 'fooled') return `${head}>${failure('fooled', explained(profile))}</testcase>`
  if (id === 'reference') return `${head}>${failure('no client completed a flow', title)}</testcase>`
  return `${head}>${countsAll ? failure('not reached', title) : '<skipped message="not reached"/>'}</testcase>`
}

function failure(message: string, text: string): string {
  return `<failure message="${message}">${escaped(text)}</failure>`
}

/** Explains why the client counts as fooled. */
function explained({ id, title, clause, sound, evidence, told }: ReportedProfile): string {
  const seen = [evidence, told && `the client itself: ${told}`].filter(Boolean).join('; ')
  return visibleLines(`${id}: ${title} (${clause})\n  a sound client ${sound}\n  seen: ${visible(seen)}`)
}
