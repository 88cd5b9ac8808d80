/**
 * Whether `lychgate prove` notices what is wrong: starts this server with one deliberate fault of `test/mutants` after
 * the other, and asks it about the clause that the fault breaks. `node scripts/teeth.ts` tries all faults of clauses that
 * are checked, `node scripts/teeth.ts ID…` those; the share of what was noticed is printed.
 */
import { execFile as execFileCallback, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
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

/** What cannot be seen from outside, by the id of the fault, and why. */
export const notVisible: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(join(root, 'scripts/teeth.json'), 'utf8'),
)

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

/** Starts a development server with this fault, and asks it about the clauses that match. */
export async function proveWith(fault: RuleFault, port: number, prepared: Prepared): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-teeth-'))
  cpSync(prepared.folder, folder, { recursive: true })
  const { file, text } = breakSource(fault)
  const hooks = join(folder, 'hooks.mjs')
  writeFileSync(hooks, hooksFor(file, text))
  const args = [`--import=${pathToFileURL(hooks).href}`, 'src/lychgate.js', 'dev', '--port', `${port}`]
  const environment = {
    ...process.env,
    LYCHGATE_RATE_LIMITS: 'off',
    LYCHGATE_DATA: folder,
    LYCHGATE_DRAIN_SECONDS: '0',
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
      plan: () => ({ checks: checksFor(fault), traits, profile: 'teeth' }),
      provided: [
        prepared.signing,
        // With this client PKCE is tested that a client may leave out.
        ...(/^rfc9700-2\.1\.1|4\.1\.3-redirect-uri-required$/.test(fault.rule) ? [prepared.withoutPkce] : []),
      ],
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
function checksFor({ rule }: RuleFault) {
  const text = /^(?:rfc\d+|[a-z\d]+-)/.exec(rule)?.[0] ?? rule
  const neighbours = checks.filter(({ id }) => id.startsWith(text))
  return neighbours.length <= mostNeighbours ? neighbours : checks.filter(({ id }) => id === rule)
}

const mostNeighbours = 16

/** Whether a run noticed the fault: something is not as the clause wants. */
export function isNoticed({ results }: Run): boolean {
  return results.some(({ verdict }) => verdict === 'fail' || verdict === 'warning')
}

if (import.meta.main) {
  const [firstPort = 24_400] =
    process.env['TEETH_PORT'] === undefined ? [] : [Number(process.env['TEETH_PORT'])]
  const asked = process.argv.slice(2)
  const tried = faultsOfChecks.filter(({ id }) =>
    asked.length === 0 ? notVisible[id] === undefined : asked.includes(id),
  )
  const prepared = await prepare()
  let noticed = 0
  for (const [at, fault] of tried.entries()) {
    try {
      const run = await proveWith(fault, firstPort + at, prepared)
      if (isNoticed(run)) noticed += 1
      const found = run.results.map(({ verdict }) => verdict).join(', ')
      process.stdout.write(
        `${isNoticed(run) ? 'noticed' : 'MISSED '} ${fault.id} (${fault.rule}): ${found}\n`,
      )
    } catch (error) {
      process.stdout.write(
        `MISSED  ${fault.id} (${fault.rule}): ${error instanceof Error ? error.message : error}\n`,
      )
    }
  }
  rmSync(prepared.folder, { recursive: true, force: true })
  const share = ((noticed / tried.length) * 100).toFixed(1)
  process.stdout.write(
    `${noticed} of ${tried.length} faults are noticed (${share} %); ${Object.keys(notVisible).length} cannot be seen from outside\n`,
  )
}
