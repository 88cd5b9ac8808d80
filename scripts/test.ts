/**
 * Runs tap over the given test files, or all of them, lists the failures again, and ends with `N passed, M failed`.
 * The raw TAP goes to .tap/results.tap, with a record of the files it was a run of.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { fingerprint, recordFile, resultsFile, writeRunRecord } from './requirements/run-record.ts'
import { runTap } from './tap.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
mkdirSync(new URL('../.tap/', import.meta.url), { recursive: true })
for (const file of [resultsFile(root), recordFile(root)]) rmSync(file, { force: true })
const files = fingerprint(root)
const { isFine, tap } = await runTap(process.argv.slice(2))
writeFileSync(resultsFile(root), tap)
writeRunRecord(root, files)
const { pass, fail } = totals()
process.stdout.write(`\n${pass} passed, ${fail} failed\n`)
process.exit(isFine && fail === 0 && pass > 0 ? 0 : 1)

/**
 * Counts tests: the points one level below their file. A file that fails without a failing test (it crashed, timed out
 * or left something open) counts as one failure.
 */
function totals(): { pass: number; fail: number } {
  const lines = tap.split('\n')
  const count = (pattern: RegExp) => lines.filter((line) => pattern.test(line)).length
  const failedTests = count(/^ {4}not ok /)
  return { pass: count(/^ {4}ok /), fail: failedTests || count(/^not ok /) || (isFine ? 0 : 1) }
}
