/**
 * Makes what the npm package carries as JavaScript: dist/main.js for the command line, dist/guard.js and dist/dev.js
 * with their types, and the licences of the code in them. The drivers of the databases stay packages of their own.
 */
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { bundleOptions, dist, root } from './bundle.ts'
import { docsLicences, writeDocsAssets } from './docs-assets.ts'
import { licencesOf } from './licences.ts'

const types = `${dist}/types`
const relativeImport = /from '(\.[^']*)\.ts'/g

for (const path of globSync(`${dist}/*.js`)) rmSync(path)
rmSync(types, { recursive: true, force: true })
mkdirSync(dist, { recursive: true })
const { metafile } = await build({
  ...bundleOptions,
  entryPoints: { main: 'src/main.ts', guard: 'src/guard/guard.ts', dev: 'src/dev/start.ts' },
  entryNames: '[name]',
  external: [...bundleOptions.external, 'better-sqlite3', 'pg'],
  format: 'esm',
  splitting: true,
  // What is CommonJS among the packages asks for modules of Node this way.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
  },
  outdir: dist,
})
writeDocsAssets(`${dist}/docs`)
writeFileSync(`${dist}/licences.txt`, `${licencesOf(metafile)}\n${docsLicences()}`)
declareLibraries()

/** The declarations of the libraries and of what they name, and none of the many that only their code needs. */
function declareLibraries(): void {
  execFileSync('tsc', ['-p', `${root}scripts/build/libraries.tsconfig.json`], { stdio: 'inherit' })
  const needed = reachable(join(types, 'dev/start.d.ts'), reachable(join(types, 'guard/guard.d.ts')))
  for (const path of globSync(`${types}/**/*.d.ts`)) {
    if (!needed.has(path)) rmSync(path)
    else writeFileSync(path, readFileSync(path, 'utf8').replace(relativeImport, "from '$1.js'"))
  }
}

function reachable(path: string, found = new Set<string>()): Set<string> {
  if (found.has(path)) return found
  found.add(path)
  for (const [, name] of readFileSync(path, 'utf8').matchAll(relativeImport)) {
    reachable(join(dirname(path), `${name}.d.ts`), found)
  }
  return found
}
