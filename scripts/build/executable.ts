/**
 * Builds dist/lychgate: the whole server and Node in one executable for this platform. The build uses a separate
 * folder and relative names, so that the file depends on nothing of this machine and two builds are the same bytes.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'
import { assetPaths, filesIn } from './assets.ts'
import { bundleOptions, dist, inAscii, root } from './bundle.ts'
import { writeCodeCache } from './code-cache.ts'
import { docsLicences, writeDocsAssets } from './docs-assets.ts'
import { licencesOf } from './licences.ts'
import { bundlePackages, packageAssets, packagesOnDemand } from './packages-on-demand.ts'
import { runNode } from './run-node.ts'

const addon = 'better_sqlite3.node'
/** Node's own marker of whether the executable contains a blob. */
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

/** What an executable is for, and the Node and the program `strip` for that. */
export interface Target {
  /** As Node names it: `linux-arm64`. */
  readonly platform: string
  readonly node: string
  /** Empty if there is nothing to strip. */
  readonly strip: readonly string[]
}

const here: Target = {
  platform: `${process.platform}-${process.arch}`,
  node: process.execPath,
  strip: ['strip'],
}

/**
 * Builds the executable at this path, and writes the licences of its contents next to it. One for another platform has
 * no code cache, because only a Node of that platform can make it.
 */
export async function buildExecutable(file: string, target: Target = here): Promise<void> {
  if (process.platform !== 'linux') throw new Error('the executable is made on Linux only')
  const work = mkdtempSync(join(tmpdir(), 'lychgate-build-'))
  try {
    const metafiles = [await bundle(`${work}/lychgate.cjs`, target), ...(await bundlePackages(work))]
    copyAssets(`${work}/assets`, target)
    if (target === here) writeCodeCache(work)
    copyFileSync(`${root}scripts/build/start.cjs`, `${work}/start.cjs`)
    writeFileSync(`${work}/blob.json`, JSON.stringify(blobOptions(work, target)))
    runNode(work, ['--experimental-sea-config', 'blob.json'])
    copyFileSync(target.node, `${work}/lychgate`)
    chmodSync(`${work}/lychgate`, 0o755)
    if (target.strip.length > 0) strip(`${work}/lychgate`, target)
    const postject = `${root}node_modules/postject/dist/cli.js`
    runNode(work, [postject, 'lychgate', 'NODE_SEA_BLOB', 'blob', '--sentinel-fuse', fuse])
    // A running server keeps the file it was started from.
    rmSync(file, { force: true })
    copyFileSync(`${work}/lychgate`, file)
    writeFileSync(`${file}.licences.txt`, `${nodeLicence()}\n${licencesOf(...metafiles)}\n${docsLicences()}`)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

async function bundle(file: string, { platform }: Target): Promise<Metafile> {
  const { metafile } = await build({
    ...bundleOptions,
    entryPoints: ['src/one-file.ts'],
    plugins: [embeddedAddon(platform), packagesOnDemand, routesOnDemand],
    format: 'cjs',
    // A script from an asset has no `import()`, so modules of Node are required, lazily all the same.
    supported: { 'dynamic-import': false },
    // All but the names: the log names errors by their class, and esbuild's way to keep both costs each request.
    minifyWhitespace: true,
    minifySyntax: true,
    banner: { js: '(function(require){' },
    footer: { js: '})' },
    // Only the sources and the npm package use their own path.
    logOverride: { 'empty-import-meta': 'silent' },
    outfile: file,
  })
  writeFileSync(file, inAscii(readFileSync(file, 'utf8')))
  return metafile
}

/** The driver without its search for a binary; the binary is in the executable. */
const embeddedAddon = (platform: string): Plugin => ({
  name: 'embedded addon',
  setup({ onResolve, onLoad, resolve }) {
    onResolve({ filter: /^better-sqlite3$/ }, ({ resolveDir }) =>
      resolve(`better-sqlite3/${platform}`, { kind: 'require-call', resolveDir }),
    )
    onLoad({ filter: /\.node$/ }, () => ({
      contents: `module.exports = require('./src/system/addon.ts').loadAddon('${addon}')`,
      resolveDir: root,
    }))
  },
})

/**
 * Compiles the comparison of a path with a part of a route when the first request gets there, not at start, where the
 * router makes one for each of several hundred parts, and most of them again when it splits a part in two.
 */
const routesOnDemand: Plugin = {
  name: 'routes on demand',
  setup({ onLoad }) {
    onLoad({ filter: /find-my-way\/lib\/node\.js$/ }, ({ path }) => {
      const atOnce = "return new Function('path', 'i', `"
      const [before, after, more] = readFileSync(path, 'utf8').split(atOnce)
      if (after === undefined || more !== undefined) throw new Error(`${path} compiles in another way`)
      const [compiled, rest] = [after.slice(0, after.indexOf('\n')), after.slice(after.indexOf('\n'))]
      // A route that is added looks for another one of its path, and so is compared at start, too.
      const onDemand = `let calls = 0
      return function (path, i) {
        if (++calls < 100) return path.startsWith(prefix, i)
        this.matchPrefix = new Function('path', 'i', \`${compiled}
        return this.matchPrefix(path, i)
      }`
      return { contents: before + onDemand + rest }
    })
  },
}

function copyAssets(folder: string, { platform }: Target): void {
  writeDocsAssets(`${folder}/dist/docs`)
  for (const name of assetPaths()) cpSync(root + name, `${folder}/${name}`)
  cpSync(`${root}node_modules/better-sqlite3/prebuilds/${platform}.node`, `${folder}/${addon}`)
}

function blobOptions(work: string, target: Target) {
  const files = filesIn(`${work}/assets`)
  const code = ['lychgate.cjs', ...packageAssets, ...(target === here ? ['lychgate.cache'] : [])].map(
    (name) => [name, name],
  )
  return {
    main: 'start.cjs',
    output: 'blob',
    disableExperimentalSEAWarning: true,
    // Megabytes. The limit saves a start most of its collections. After the start, src/one-file.ts makes the initial size
    // the limit: that keeps a server under load below 130 MiB, where 16 took 180, and costs it one to five parts in a
    // hundred of its CPU.
    // One worker thread instead of four, for compilation and collection: each keeps the memory it once needed, 5 MB
    // and more, and together they do no more for a server on one core.
    execArgv: ['--min-semi-space-size=4', '--max-semi-space-size=16', '--v8-pool-size=1'],
    assets: Object.fromEntries([...code, ...files.map((name) => [name, `assets/${name}`])]),
  }
}

/** Node ships with its symbols, an eighth of it. */
function strip(file: string, { strip: [program = 'strip', ...args] }: Target): void {
  const { error, status } = spawnSync(program, [...args, '--strip-unneeded', file], { stdio: 'inherit' })
  if (error || status !== 0)
    process.stderr.write(
      'strip (of binutils) is not here: the file keeps the symbols of Node, some 18 MB more\n',
    )
}

function nodeLicence(): string {
  const { version } = process
  return `Node.js ${version}: https://github.com/nodejs/node/blob/${version}/LICENSE\n`
}

if (import.meta.main) {
  mkdirSync(dist, { recursive: true })
  await buildExecutable(`${dist}/lychgate`)
  process.stdout.write(`dist/lychgate, ${(statSync(`${dist}/lychgate`).size / 1e6).toFixed(1)} MB\n`)
}
