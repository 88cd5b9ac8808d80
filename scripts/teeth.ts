/**
 * Whether `lychgate prove` notices what is wrong: starts this server with one deliberate fault of `test/mutants` after
 * the other, and asks it about the clause that the fault breaks. `node scripts/teeth.ts` tries all faults of clauses that
 * are checked, `node scripts/teeth.ts ID…` those; the share of what was noticed is printed.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { checks } from '../src/prove/checks.ts'
import { presets } from '../src/prove/presets.ts'
import { profileNamed } from '../src/prove/profiles.ts'
import { prove, type Run } from '../src/prove/runner.ts'
import type { RuleFault } from '../test/mutants/fault.ts'
import { faults } from '../test/mutants/faults.ts'
import { createBreaker } from './mutants/check.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const breakSource = createBreaker(root)
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

/** Starts a development server with this fault, and asks it about the clauses that match. */
export async function proveWith(fault: RuleFault, port: number): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-teeth-'))
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
      plan: () => ({ checks: checks.filter(({ id }) => id === fault.rule), traits, profile: 'teeth' }),
      provided: [],
      recordings: presets,
      credentials: undefined,
    })
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Whether a run noticed the fault: something is not as the clause wants. */
export function isNoticed({ results }: Run): boolean {
  return results.some(({ verdict }) => verdict === 'fail' || verdict === 'warning')
}

if (import.meta.main) {
  const [firstPort = 24_400] =
    process.env['TEETH_PORT'] === undefined ? [] : [Number(process.env['TEETH_PORT'])]
  const asked = process.argv.slice(2)
  const tried = faultsOfChecks.filter(({ id }) => asked.length === 0 || asked.includes(id))
  let noticed = 0
  for (const [at, fault] of tried.entries()) {
    try {
      const run = await proveWith(fault, firstPort + at)
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
  process.stdout.write(`${noticed} of ${tried.length} faults are noticed by the check of their clause\n`)
}
