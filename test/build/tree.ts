import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What a build has no use for: code, which is bundled, and the schemas that drizzle-kit compares. */
const notInBuilds = /\.[jt]s$|_snapshot\.json$/
/** Scripts for browsers are served as they are. */
const isOfPages = (path: string) => path.startsWith('views/')

/**
 * Returns the digest of every file that a build has to contain, by its path: all that git keeps next to the code and in
 * the folders of what the code reads. The build lists them in another way.
 */
export function filesOfTree(): Readonly<Record<string, string>> {
  const folders = ['src', 'views', 'drizzle', 'openapi']
  const listed = execFileSync('git', ['ls-files', '-z', ...folders, 'package.json'], {
    cwd: root,
    encoding: 'utf8',
  })
  const files = listed.split('\0').filter((path) => path !== '')
  const bundled = new Set(files.filter((path) => path.endsWith('.ts')).flatMap(importedBy))
  const paths = files.filter((path) => isOfPages(path) || !(notInBuilds.test(path) || bundled.has(path)))
  return digestsOf(paths, (path) => readFileSync(join(root, path)))
}

/** Returns the data that a module imports: a build has it in its code. */
function importedBy(path: string): readonly string[] {
  const imports = readFileSync(join(root, path), 'utf8').matchAll(/^import \w+ from '(\.[^']+\.json)'/gm)
  return [...imports].map(([, data = '']) => join(dirname(path), data))
}

/** Returns the digests of these files. */
export function digestsOf(
  paths: readonly string[],
  read: (path: string) => Uint8Array,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    paths.toSorted().map((path) => [path, createHash('sha256').update(read(path)).digest('hex')]),
  )
}
