/**
 * Runs tap over the given test files, or all of them, lists the failures again, and ends with `N passed, M failed`.
 * The raw TAP goes to .tap/results.tap, with a record of the files it was a run of.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describeFailure, failuresIn } from './failures.ts'
import { quickStart } from './quick-start.ts'
import { fingerprint, recordFile, resultsFile, writeRunRecord } from './requirements/run-record.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const results = resultsFile(root)
mkdirSync(new URL('../.tap/', import.meta.url), { recursive: true })
for (const file of [results, recordFile(root)]) rmSync(file, { force: true })
const files = fingerprint(root)
const { status } = spawnSync(
  'tap',
  ['--reporter=terse', `--output-file=${results}`, ...process.argv.slice(2)],
  {
    env: { ...process.env, ...quickStart(fileURLToPath(new URL('../.tap/compiled', import.meta.url))) },
    stdio: 'inherit',
  },
)
if (existsSync(results)) writeRunRecord(root, files)
const tap = readFileSync(results, 'utf8')
for (const failure of failuresIn(tap)) process.stdout.write(`\n${describeFailure(failure)}`)
const { pass, fail } = totals()
process.stdout.write(`\n${pass} passed, ${fail} failed\n`)
process.exit(status === 0 && fail === 0 && pass > 0 ? 0 : 1)

/**
 * Counts tests: the points one level below their file. A file that fails without a failing test (it crashed, timed out
 * or left something open) counts as one failure.
 */
function totals(): { pass: number; fail: number } {
  const lines = tap.split('\n')
  const count = (pattern: RegExp) => lines.filter((line) => pattern.test(line)).length
  const failedTests = count(/^ {4}not ok /)
  return { pass: count(/^ {4}ok /), fail: failedTests || count(/^not ok /) || (status === 0 ? 0 : 1) }
}
