/**
 * Whether `lychgate prove` notices what is wrong: starts this server with one deliberate fault of `test/mutants` after
 * the other, and asks it about the clause that the fault breaks. `node scripts/teeth.ts` tries all faults of clauses that
 * are checked, `node scripts/teeth.ts ID…` those. Prints the share of what was noticed, and fails below 90 %.
 */
import { execFile as execFileCallback, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Check, nameOf } from '../src/prove/check.ts'
import { checks } from '../src/prove/checks.ts'
import { type Client, clientOf, redirectUri } from '../src/prove/clients.ts'
import { presets } from '../src/prove/presets.ts'
import { profileNamed } from '../src/prove/profiles.ts'
import { prove, type Run } from '../src/prove/runner.ts'
import { createKey } from '../src/prove/tokens.ts'
import type { RuleFault } from '../test/mutants/fault.ts'
import { faults } from '../test/mutants/faults.ts'
import { createBreaker } from './mutants/check.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const breakSource = createBreaker(root)
const execFile = promisify(execFileCallback)
const checked = new Set(checks.map(({ id }) => id))

/** The faults against clauses that `prove` checks. */
export const faultsOfChecks: readonly RuleFault[] = faults
  .filter((fault) => 'rule' in fault)
  .filter(({ rule }) => checked.has(rule))

/** Replaces the text of one module when it is loaded. */
const hooksFor = (file: string, text: string) => `
import { registerHooks, stripTypeScriptTypes } from 'node:module'
const faulty = ${JSON.stringify(pathToFileURL(join(root, file)).href)}
const source = stripTypeScriptTypes(${JSON.stringify(text)})
registerHooks({
  load: (url, context, next) => (url === faulty ? { format: 'module', shortCircuit: true, source } : next(url, context)),
})
`

type Reasons = Readonly<Record<string, string>>
/**
 * The faults that are not tried, by id, and why: those that need another client or more than a run has, and those with
 * which the server still does what the text of the clause demands.
 */
const { takesMore, breaksNoClause }: { readonly takesMore: Reasons; readonly breaksNoClause: Reasons } =
  JSON.parse(readFileSync(join(root, 'scripts/teeth.json'), 'utf8'))
export const notTried: Reasons = { ...takesMore, ...breaksNoClause }

/** The clauses of these faults are checked with --slow. */
const slow: readonly string[] = ['access-token-outlives-its-end', 'reference-never-expires']
/** What a release has to reach, of the faults that are tried. */
const leastShare = 90

/** A data folder, and clients that its operator added: one signs, one may leave PKCE out. */
interface Prepared {
  readonly folder: string
  readonly signing: Client
  readonly withoutPkce: Client
}

/** Adds clients of an operator to a new data folder. */
export async function prepare(): Promise<Prepared> {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-teeth-'))
  const key = createKey()
  const jwk = { ...key.jwk, kid: key.kid, alg: 'ES256', use: 'sig' }
  const own = { ...key.privateKey.export({ format: 'jwk' }), kid: key.kid }
  const keys = join(folder, 'keys.json')
  writeFileSync(keys, JSON.stringify({ keys: [jwk] }))
  const add = async (...flags: readonly string[]) => {
    const args = ['src/lychgate.js', 'client', 'add', '--yes', '--json', '--redirect-uri', redirectUri]
    const environment = { ...process.env, LYCHGATE_DATA: folder, LYCHGATE_SECRET: 'x'.repeat(32) }
    const { stdout } = await execFile(process.execPath, [...args, ...flags], { cwd: root, env: environment })
    const client = clientOf({
      ...JSON.parse(stdout),
      ...(flags.includes('--jwks') && { jwks: { keys: [own] } }),
    })
    if (typeof client === 'string') throw new Error(client)
    return client
  }
  const signing = await add('--name', 'signing', '--auth', 'private_key_jwt', '--jwks', keys)
  const second = ['--redirect-uri', `${redirectUri}/second`]
  const withoutPkce = await add(
    ...second,
    '--name',
    'plain',
    '--auth',
    'client_secret_basic',
    '--pkce',
    'optional',
  )
  return { folder, signing, withoutPkce }
}

/** A server without a fault, of which the same is asked. */
export interface Control {
  readonly id: 'control'
  readonly rule: string
}

/** Starts a development server with this fault, and asks it about the clauses that match. */
export async function proveWith(
  fault: RuleFault | Control,
  port: number,
  prepared: Prepared,
  asked: readonly Check[] = checksFor(fault),
): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-teeth-'))
  cpSync(prepared.folder, folder, { recursive: true })
  const isSlow = slow.includes(fault.id)
  const hooks = join(folder, 'hooks.mjs')
  const { file, text } = 'file' in fault ? breakSource(fault) : { file: '', text: '' }
  writeFileSync(hooks, hooksFor(file, text))
  const args = [`--import=${pathToFileURL(hooks).href}`, 'src/lychgate.js', 'dev', '--port', `${port}`]
  const environment = {
    ...process.env,
    LYCHGATE_RATE_LIMITS: 'off',
    LYCHGATE_DATA: folder,
    LYCHGATE_DRAIN_SECONDS: '0',
    ...(isSlow && { LYCHGATE_LIFETIMES_ACCESS_TOKEN_SECONDS: '3' }),
  }
  const child = spawn(process.execPath, args, { cwd: root, env: environment, stdio: 'ignore' })
  try {
    const issuer = `http://localhost:${port}`
    while ((await fetch(`${issuer}/readyz`).catch(() => undefined))?.status !== 200) {
      if (child.exitCode !== null) throw new Error(`${fault.id}: the server does not start`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const { traits } = profileNamed('all')
    return await prove({
      issuer,
      allowedHosts: [],
      isOwn: false,
      mostRequests: 1000,
      perSecond: 0,
      signal: new AbortController().signal,
      plan: () => ({ checks: asked, traits, profile: 'teeth' }),
      provided: [
        prepared.signing,
        // With this client PKCE is tested that a client may leave out.
        ...(/^rfc9700-2\.1\.1|4\.1\.3-redirect-uri-required$/.test(fault.rule) ? [prepared.withoutPkce] : []),
      ],
      isSlow,
      recordings: presets,
      credentials: undefined,
    })
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** The checks of the clause, and of its neighbours where the text has few. */
function checksFor({ rule }: Pick<RuleFault, 'rule'>): readonly Check[] {
  const text = /^(?:rfc\d+|[a-z\d]+-)/.exec(rule)?.[0] ?? rule
  const neighbours = checks.filter(({ id }) => id.startsWith(text))
  return neighbours.length <= mostNeighbours ? neighbours : checksOf(rule)
}

/** The checks of one clause. */
export function checksOf(rule: string): readonly Check[] {
  return checks.filter(({ id }) => id === rule)
}

const mostNeighbours = 16

/** Whether a run noticed the fault: something is not as the clause wants. */
export function isNoticed({ results }: Run): boolean {
  return results.some(({ verdict }) => verdict === 'fail' || verdict === 'warning')
}

if (import.meta.main) {
  const firstPort = Number(process.env['TEETH_PORT'] ?? 24_400)
  const asked = process.argv.slice(2)
  const tried = faultsOfChecks.filter(({ id }) =>
    asked.length === 0 ? notTried[id] === undefined : asked.includes(id),
  )
  const prepared = await prepare()
  let noticed = 0
  for (const [at, fault] of tried.entries()) {
    const outcome = await outcomeOf(fault, firstPort + at, prepared)
    if (outcome.isNoticed) noticed += 1
    const word = outcome.isNoticed ? 'noticed' : 'MISSED '
    process.stdout.write(`${word} ${fault.id} (${fault.rule}): ${outcome.text}\n`)
  }
  rmSync(prepared.folder, { recursive: true, force: true })
  const share = (count: number) => Number(((noticed / count) * 100).toFixed(1))
  const more = Object.keys(takesMore).length
  process.stdout.write(`${noticed} of ${tried.length} faults are noticed: ${share(tried.length)} %\n`)
  if (asked.length === 0)
    process.stdout.write(`${share(tried.length + more)} % with the ${more} that take more than a run has; ${Object.keys(breaksNoClause).length} break no clause
`)
  if (share(tried.length) < leastShare) process.exitCode = 1
}

/** Tries a fault; a server that does not start with it was not noticed. */
async function outcomeOf(fault: RuleFault, port: number, prepared: Prepared) {
  try {
    const run = await proveWith(fault, port, prepared)
    const failed = run.results.filter(({ verdict }) => verdict === 'fail' || verdict === 'warning')
    const text = failed.map(({ check }) => nameOf(check)).join(', ') || `${run.results.length} checks pass`
    return { isNoticed: isNoticed(run), text }
  } catch (error) {
    return { isNoticed: false, text: error instanceof Error ? error.message : String(error) }
  }
}
