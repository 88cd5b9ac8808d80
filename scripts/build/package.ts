/**
 * Packs what `npm install` gets: dist/main.js for the command line, dist/guard.js and dist/dev.js with their types,
 * and the licences of the code in them. The package has a separate manifest: bundled code is no dependency, and the
 * drivers of the databases remain packages. It is assembled in dist/package.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { assetPaths } from './assets.ts'
import { bundleOptions, dist, root } from './bundle.ts'
import { docsLicences, writeDocsAssets } from './docs-assets.ts'
import { licencesOf } from './licences.ts'

const types = `${dist}/types`
const ownManifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
const carried = [
  'LICENSE',
  'README.md',
  ...Object.values<string>(ownManifest.bin),
  ...Object.values<{ default: string }>(ownManifest.exports).map((entry) => entry.default.replace('./', '')),
  'dist/*.js',
  'dist/types',
  'dist/licences.txt',
  'dist/docs/*.gz',
  // Its own manifest is written below.
  ...assetPaths().filter((path) => path !== 'package.json'),
]
/** What the reader's application has: the guard is a plugin of its Fastify, and traces go to its tracer. */
const peers = {
  peerDependencies: { '@opentelemetry/api': '^1.9.0', fastify: '^5' },
  peerDependenciesMeta: { '@opentelemetry/api': { optional: true }, fastify: { optional: true } },
}
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
  // CommonJS packages require modules of Node this way.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
  },
  outdir: dist,
})
writeDocsAssets(`${dist}/docs`)
writeFileSync(`${dist}/licences.txt`, `${licencesOf(metafile)}\n${docsLicences()}`)
declareLibraries()
stage()
const destination = process.argv.includes('--pack-destination') ? process.argv.at(-1) : dist
execFileSync('npm', ['pack', `${dist}/package`, '--pack-destination', `${destination}`], { stdio: 'inherit' })

/** Copies the files of the package, below the paths of the checkout, and writes its manifest. */
function stage(): void {
  const staged = `${dist}/package`
  rmSync(staged, { recursive: true, force: true })
  for (const path of globSync(carried, { cwd: root })) {
    mkdirSync(dirname(join(staged, path)), { recursive: true })
    cpSync(join(root, path), join(staged, path), { recursive: true })
  }
  // The binary of Node is for a checkout: an installed package runs with the Node that installed it.
  const { scripts: _, devDependencies: __, allowScripts: ___, ...published } = ownManifest
  const { dependencies, optionalDependencies: ____, ...manifest } = published
  const drivers = ['better-sqlite3', 'pg'].map((name) => [name, dependencies[name]])
  const staging = { ...manifest, dependencies: Object.fromEntries(drivers), ...peers }
  writeFileSync(`${staged}/package.json`, `${JSON.stringify(staging, null, 2)}\n`)
}

/** The declarations of the libraries and of what they name, without the many that only their code needs. */
function declareLibraries(): void {
  // The JavaScript one: the native one cannot be started under the loaders of a test runner.
  const compiler = `${root}node_modules/typescript/bin/tsc`
  const project = `${root}scripts/build/libraries.tsconfig.json`
  execFileSync(process.execPath, [compiler, '-p', project], { stdio: 'inherit' })
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
