import { readFileSync, writeFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { isObject } from '../domain/is-object.ts'
import type { Check, Result } from '../prove/check.ts'
import { type Client, clientOf, redirectUri } from '../prove/clients.ts'
import { NotTestable } from '../prove/observation.ts'
import { presets, type Recording, recordingOf } from '../prove/presets.ts'
import { checksOf, profileFor, profileNamed, profiles } from '../prove/profiles.ts'
import { jsonReport, newFailures } from '../prove/reports/json.ts'
import { terminalReport } from '../prove/reports/terminal.ts'
import { prove, type Run, type RunOptions } from '../prove/runner.ts'
import { isLoopbackIssuer } from '../settings/checks.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { jsonText, printJson, visibleLines } from './print.ts'
import { recordForms } from './prove-record.ts'
import { writeReports } from './reports/write.ts'
import { addTargetOptions, assertIssuer, type TargetFlags } from './target.ts'

interface ProveFlags extends TargetFlags {
  readonly profile?: string
  readonly only?: RegExp
  readonly cimd?: string
  readonly slow?: true
  readonly record?: string
  readonly browser?: string
  readonly baseline?: string
}

type Plan = RunOptions['plan']

const help = `
Sends requests as clients and browsers do, correct ones and wrong ones, and judges what comes by the text of each clause:
  fail             the server does not do what the clause demands
  warning          the same, for what should be done
  not applicable   the server does not offer what the clause is about
  not testable     the clause applies, and could not be observed
  not run          the clause takes an option that this run was not given
Only loopback and private addresses are asked, unless you say that the server is yours. Clients are registered for the
run and deleted after it. Signs in as the user of --username.
The exit code is 1 if a clause failed, or with --baseline if one failed that did not fail there.

Examples:
  lychgate prove http://localhost:9400
  lychgate prove http://localhost:9400 --profile oauth21 --only rfc7636
  lychgate prove http://localhost:9400 --json > before.json
  lychgate prove http://localhost:9400 --baseline before.json
  lychgate prove http://localhost:9400 --record forms.json --browser /usr/bin/chromium
  lychgate prove https://id.example.test --i-own-this --username tester --password-file password.txt
`

/** Adds `lychgate prove`, which judges a server from outside. */
export function addProveCommand(program: Command): void {
  const names = profiles.map(({ name }) => name)
  const command = program
    .command('prove')
    .description('check from outside whether a server does what the specifications say, clause by clause')
    .argument('<issuer>', 'the issuer, as clients know it')
    .addOption(
      new Option('--profile <name>', 'the clauses to check; the metadata choose if absent').choices(names),
    )
    .option('--only <pattern>', 'check only clauses whose id matches this expression', parsePattern)
    .option('--cimd <url>', `a client metadata document; one of its redirect URIs is ${redirectUri}`)
    .option('--slow', 'also wait for codes and tokens to expire, up to 15 minutes each')
    .option(
      '--record <file>',
      'learn the names of those fields in a browser, write that JSON, and check nothing',
    )
    .option('--browser <program>', 'the Chromium to open for --record')
    .option('--baseline <file>', 'JSON of a run before: only what is new counts as failed')
  addTargetOptions(command).addHelpText('after', help).action(run)
}

async function run(issuer: string, flags: ProveFlags): Promise<void> {
  assertIssuer(issuer)
  if (flags.record !== undefined) return record(flags.record, issuer, flags)
  const baseline = flags.baseline === undefined ? undefined : readJson(flags.baseline)
  const plan: Plan = (server) => {
    const profile = flags.profile === undefined ? profileFor(server) : profileNamed(flags.profile)
    const checks = checksOf(profile, flags.only)
    if (checks.length === 0) throw new WrongUsage(`--only matches no clause of the profile ${profile.name}`)
    return { checks, traits: profile.traits, profile: profile.name }
  }
  const result = await runChecks(issuer, flags, () => plan)
  showRun('lychgate prove', result, flags)
  const failed = newFailures(result.results, baseline)
  if (failed.length > 0)
    throw new CommandFailed(
      `${failed.length} failed${baseline === undefined ? '' : ` that did not fail before: ${failed.join(', ')}`}`,
    )
  if (result.isInterrupted) throw new CommandFailed('interrupted')
}

/** Writes the reports of a run, and prints it. */
export function showRun(tool: string, result: Run, flags: TargetFlags): void {
  const report = jsonReport(result)
  if (flags.report !== undefined) writeFileSync(flags.report, `${jsonText(report, 2)}\n`)
  writeReports(flags, { tool, subject: result.issuer, ...report })
  if (flags.json) printJson(report)
  else process.stdout.write(visibleLines(terminalReport(result, { verbose: flags.verbose === true })))
}

/** Writes the names of the fields of a server to a file that --forms takes. */
async function record(file: string, issuer: string, flags: ProveFlags): Promise<void> {
  const { browser } = flags
  if (browser === undefined)
    throw new WrongUsage('--record takes --browser, the program of an installed Chromium')
  let outcome: Recording | Error = new CommandFailed('nothing was recorded')
  const recording = (signal: AbortSignal): Check => ({
    id: 'record',
    level: 'MUST',
    wants: 'the forms of the server',
    async run(lab) {
      outcome = await recordForms(browser, lab, signal).catch((error: Error) => error)
      return { seen: [] }
    },
  })
  const { remaining } = await runChecks(issuer, flags, (signal) => planOf('oauth21', [recording(signal)]))
  // `as`: TypeScript does not see that `run` was called.
  const result = outcome as Recording | Error
  if (result instanceof NotTestable) throw new CommandFailed(result.message)
  if (result instanceof Error) throw result
  writeFileSync(file, `${jsonText(result, 2)}\n`)
  process.stdout.write(`${file} is written; pass it by --forms, with --username and --password-file\n`)
  if (remaining.length > 0)
    process.stdout.write(`clients that remain at the server: ${remaining.join(' ')}\n`)
}

/** Returns a plan of these checks, with clients of a profile. */
export function planOf(profile: string, checks: readonly Check[], name = profile): Plan {
  return () => ({ checks, traits: profileNamed(profile).traits, profile: name })
}

/** Runs the checks that a plan chooses. The plan gets the signal of the run, which ends a browser too. */
export async function runChecks(
  issuer: string,
  flags: TargetFlags & Pick<ProveFlags, 'slow' | 'cimd'>,
  plan: (signal: AbortSignal) => Plan,
): Promise<Run> {
  const ending = new AbortController()
  const stop = () => ending.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  const progress = createProgress()
  try {
    return await prove({
      issuer,
      allowedHosts: flags.allowHost ?? [],
      isOwn: flags.iOwnThis === true,
      mostRequests: flags.maxRequests,
      perSecond: flags.rate ?? (isLoopbackIssuer(issuer) ? 0 : politeRate),
      signal: ending.signal,
      plan: plan(ending.signal),
      provided: (flags.client ?? []).map(readClient),
      initialToken: flags.initialAccessToken,
      isSlow: flags.slow === true,
      documentUrl: flags.cimd,
      recordings: flags.forms === undefined ? presets : [readForms(flags.forms)],
      credentials: credentialsOf(flags),
      ...progress,
    })
  } catch (error) {
    if (error instanceof NotTestable) throw new CommandFailed(error.message)
    if (ending.signal.aborted) throw new CommandFailed('interrupted')
    throw error
  } finally {
    progress.end()
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}

const politeRate = 10

/** Shows on a terminal how far the run is. */
function createProgress() {
  const { stderr } = process
  let [done, count] = [0, 0]
  const show = (text: string) => {
    if (stderr.isTTY) stderr.write(`\r\u001b[K${text}`)
  }
  return {
    onBegin(total: number, profile: string) {
      count = total
      show(`${profile}: ${total} checks`)
    },
    onResult({ check }: Result) {
      done += 1
      show(`${done}/${count} ${check.id}`)
    },
    end: () => show(''),
  }
}

function credentialsOf({
  username,
  passwordFile,
}: ProveFlags): { username: string; password: string } | undefined {
  if (username === undefined && passwordFile === undefined) return undefined
  if (username === undefined || passwordFile === undefined)
    throw new WrongUsage('--username and --password-file go together')
  return { username, password: readFileSync(passwordFile, 'utf8').replace(/\r?\n$/, '') }
}

function readClient(file: string): Client {
  const client = clientOf(readJson(file))
  if (typeof client === 'string') throw new WrongUsage(`${file}: ${client}`)
  return client
}

function readForms(file: string): Recording {
  const recording = recordingOf(readJson(file))
  if (typeof recording === 'string') throw new WrongUsage(`${file}: ${recording}`)
  return recording
}

function readJson(file: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (isObject(value)) return value
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new WrongUsage(`${file}: is not a JSON object`)
}

function parsePattern(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch {
    throw new InvalidArgumentError('It must be a regular expression, such as rfc7636.')
  }
}
