import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
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
  const paths = listed
    .split('\0')
    .filter((path) => path !== '' && (isOfPages(path) || !notInBuilds.test(path)))
  return digestsOf(paths, (path) => readFileSync(join(root, path)))
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
