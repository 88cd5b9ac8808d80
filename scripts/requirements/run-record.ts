import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { killsFile } from '../mutants/kills.ts'

/** What a run depends on. */
const inputs = ['drizzle', 'examples', 'openapi', 'package-lock.json', 'src', 'test', 'views']
/** Not these: a clause may be corrected, and a fault killed, without running the tests again. */
const exceptions = ['test/requirements/', killsFile]

/** The files a run depends on, each with a digest of its contents. */
export type Fingerprint = Readonly<Record<string, string>>

/** The current files that a run of the tests in this folder would read. */
export function fingerprint(root: string): Fingerprint {
  const files = inputs
    .flatMap((input) => filesOf(root, input))
    .filter((file) => !exceptions.some((exception) => file.startsWith(exception)))
  return Object.fromEntries(files.sort().map((file) => [file, digest(join(root, file))]))
}

/** The file for the TAP of a run of all tests. */
export function resultsFile(root: string): string {
  return join(root, '.tap/results.tap')
}

/** The file in which a finished run records what it ran on. */
export function recordFile(root: string): string {
  return join(root, '.tap/run.json')
}

/** Records that the results in this folder are from a run that began with these files. */
export function writeRunRecord(root: string, files: Fingerprint): void {
  const record = { results: digest(resultsFile(root)), files }
  writeFileSync(recordFile(root), `${JSON.stringify(record, null, 1)}\n`)
}

/**
 * Why the results in this folder do not apply to its files, or undefined if they do. Contents are compared, not times:
 * a checkout sets times, and a run may take longer than the next edit.
 */
export function whyStale(root: string): string | undefined {
  if (!existsSync(resultsFile(root))) return 'there are no results'
  if (!existsSync(recordFile(root))) return 'the last run was not finished'
  const record = JSON.parse(readFileSync(recordFile(root), 'utf8'))
  if (record.results !== digest(resultsFile(root)))
    return 'the results are not those of the last finished run'
  const [then, now]: [Fingerprint, Fingerprint] = [record.files, fingerprint(root)]
  const changed = [...new Set([...Object.keys(then), ...Object.keys(now)])]
    .filter((file) => then[file] !== now[file])
    .sort()
  if (changed.length === 0) return undefined
  const more = changed.length > 5 ? ` and ${changed.length - 5} more` : ''
  return `changed since the tests began: ${changed.slice(0, 5).join(', ')}${more}`
}

/** The test files that a complete run has run. */
export function testFiles(root: string): readonly string[] {
  return filesOf(root, 'test').filter((file) => file.endsWith('.test.ts'))
}

function filesOf(root: string, path: string): readonly string[] {
  const whole = join(root, path)
  if (!existsSync(whole)) return []
  if (statSync(whole).isFile()) return [path]
  return readdirSync(whole, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
}

function digest(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 16)
}
