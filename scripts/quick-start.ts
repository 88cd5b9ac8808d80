import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The option of Node that loads the hooks. */
export const quickStartOption = `--import=${pathToFileURL(join(root, 'scripts/quick-start-hooks.js')).href}`

/** What our modules import of the packages that have the most modules. */
const specifiers = [
  '@sinclair/typebox',
  '@sinclair/typebox/value',
  'drizzle-orm',
  'drizzle-orm/better-sqlite3',
  'drizzle-orm/better-sqlite3/migrator',
  'drizzle-orm/node-postgres',
  'drizzle-orm/node-postgres/migrator',
  'drizzle-orm/pg-core',
  'drizzle-orm/sqlite-core',
  'jose',
]

/**
 * Returns environment variables that make Node processes start faster: compiled modules are kept in `folder`, and
 * `quick-start-hooks.js` leaves out what tests do not need.
 */
export function quickStart(folder: string): Readonly<Record<string, string>> {
  bundlePackages()
  const options = [process.env['NODE_OPTIONS'], quickStartOption].filter((option) => option !== undefined)
  return { NODE_COMPILE_CACHE: folder, NODE_OPTIONS: options.join(' ') }
}

/** Bundles the packages for the hooks, again after each change of the lockfile or of this list. */
function bundlePackages(): void {
  const folder = join(root, '.tap/packages')
  const [index, madeFrom] = [join(folder, 'index.json'), join(folder, 'made-from')]
  const sources = [...specifiers, readFileSync(join(root, 'package-lock.json'), 'utf8')].join('\n')
  if (existsSync(madeFrom) && readFileSync(madeFrom, 'utf8') === sources) return
  const files = specifiers.map((specifier) => [specifier, specifier.replaceAll('/', '-')] as const)
  buildSync({
    entryPoints: files.map(([specifier, out]) => ({ in: specifier, out })),
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    external: ['better-sqlite3', 'pg'],
    logLevel: 'warning',
  })
  // Last, and in one step: processes of another run may read it.
  writeFileSync(
    `${index}.new`,
    JSON.stringify(Object.fromEntries(files.map(([specifier, out]) => [specifier, `${out}.js`]))),
  )
  renameSync(`${index}.new`, index)
  writeFileSync(madeFrom, sources)
}
