import type { Command } from 'commander'
import type { Report, ReportedProfile } from '../dev/issuers/report.ts'
import { loadConfig } from '../settings/load.ts'
import { CommandFailed } from './failure.ts'
import { printColumns, printJson, visible, visibleLines } from './print.ts'
import type { ClauseReport, ReportedClause } from './reports/report.ts'
import { addReportOptions, type ReportFlags, writeReports } from './reports/write.ts'

interface DevReportFlags extends ReportFlags {
  readonly config?: string
  readonly issuer?: string
  readonly port?: string
  readonly client?: string
  readonly json?: true
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
  lychgate dev report --port 9500 --client 'my app 1.2' --junit issuers.xml --html issuers.html
  lychgate dev report --json | jq -r '.profiles[] | select(.verdict == "fooled") | .id'
  lychgate dev report --all --reset            exit with 1 if an issuer was not reached, then start over
`

/** Adds `lychgate dev report`, which shows how clients behaved at the misbehaving issuers. */
export function addReportCommand(dev: Command): void {
  const command = dev
    .command('report')
    .description('show how clients behaved at the misbehaving issuers: rejected, fooled or not reached')
    .option('--issuer <url>', 'the issuer of the development server (LYCHGATE_ISSUER)')
    .option('--port <number>', 'its port on localhost (LYCHGATE_PORT)')
    .option('--config <file>', 'YAML file with options (LYCHGATE_CONFIG)')
    .option('--client <name>', 'the name of the client in the files')
  addReportOptions(command)
    .option('--json', 'print JSON')
    .option('--all', 'count issuers that were not reached as failures')
    .option('--reset', 'clear the report after printing it')
    .addHelpText('after', help)
    // Options that `dev` has as well are parsed by it, wherever they stand.
    .action((_own: unknown, command: Command) => report(command.optsWithGlobals()))
}

async function report({ config: file, issuer, port, client, ...flags }: DevReportFlags): Promise<void> {
  const config = loadConfig({ mode: 'dev', flags: { issuer, port }, environment: process.env, file })
  const url = `${config.issuer}/_dev/issuers/report`
  const reported = await reportAt(url, config.issuer)
  writeReports(flags, clauseReport(reported, client ?? reported.issuer, flags.all === true))
  if (flags.json) printJson(reported)
  else printReport(reported)
  if (flags.reset) await fetch(url, { method: 'DELETE' })
  const failure = failureOf(reported, flags.all === true)
  if (failure !== undefined) throw new CommandFailed(failure)
}

/** @throws {CommandFailed} if no development server responds there. */
export async function reportAt(url: string, issuer: string): Promise<Report> {
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
 * The report in the form that files have: each issuer is a clause, failed if the client was fooled.
 * @param subject The client.
 * @param countsAll Counts an issuer that was not reached as failed, too.
 */
function clauseReport({ profiles }: Report, subject: string, countsAll: boolean): ClauseReport {
  const results = profiles.map((profile): ReportedClause => {
    const { id, title, clause, sound, next } = profile
    const verdict = verdictOf(profile, countsAll)
    const because = profile.verdict === 'fooled' ? seenAt(profile) : profile.verdict
    return {
      check: id,
      level: 'client',
      place: clause,
      url: '',
      wants: `a sound client ${sound}`,
      verdict,
      ...(verdict !== 'pass' && { because }),
      observations: profile.verdict === 'not reached' ? [] : [{ sent: title, came: next.join('\n') }],
    }
  })
  return { tool: 'lychgate dev report', subject, profile: 'misbehaving issuers', results }
}

function verdictOf({ id, verdict }: ReportedProfile, countsAll: boolean): ReportedClause['verdict'] {
  if (verdict === 'passed' || verdict === 'rejected') return 'pass'
  // Without a flow at the reference nothing else is conclusive.
  return verdict === 'fooled' || countsAll || id === 'reference' ? 'fail' : 'not testable'
}

/** Explains why the client counts as fooled. */
function explained(profile: ReportedProfile): string {
  const { id, title, clause, sound } = profile
  return visibleLines(
    `${id}: ${title} (${clause})\n  a sound client ${sound}\n  seen: ${visible(seenAt(profile))}`,
  )
}

/** The request that shows that the client was fooled, and what it reported itself. */
function seenAt({ evidence, told }: ReportedProfile): string {
  return [evidence, told && `the client itself: ${told}`].filter(Boolean).join('; ')
}
