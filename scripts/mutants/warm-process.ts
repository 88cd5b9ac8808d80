/**
 * Runs test files one after the other in a process that stays: the packages are loaded once, and of src only what a
 * fault is in, and what imports that. The parent process sends what to run and receives TAP.
 */
import { readFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Test } from 'tap'

/** What to run. */
export interface WarmTask {
  readonly test: string
  /** A regular expression for the titles of the tests to run. */
  readonly only?: string | undefined
  readonly seconds: number
  /** The file with a fault in it, and its text without. */
  readonly fault?: { readonly path: string; readonly sound: string } | undefined
}

/** A part of the TAP of a task, or its end. */
export type WarmNews = { readonly tap: string } | { readonly passed: boolean }

const root = `${pathToFileURL(process.cwd()).href}/`
const packages = `${root}node_modules/`
const source = `${root}src/`
const tap = import.meta.resolve('tap')

/** The version of modules that every run without a fault in them shares. */
const shared = 'shared'
/** Who imports a module, among shared modules. */
const importers = new Map<string, Set<string>>()
const stripped = new Map<string, { readonly text: string; readonly code: string }>()
let count = 0
let version = '0'
let task: WarmTask | undefined
/** The modules of this run that must not be shared: the one with the fault, and all that import it. */
let affected: ReadonlySet<string> = new Set()

declare global {
  var testOfRun: object | undefined
}

registerHooks({
  resolve(specifier, context, next) {
    const parent = context.parentURL
    if (!isOurs(parent)) return next(specifier, context)
    // Not cached between runs: each has its own test.
    if (specifier === 'tap') return { url: `tap:${version}`, format: 'module', shortCircuit: true }
    const found = next(specifier, context)
    if (!isOurs(found.url)) return found
    const [url, from] = [withoutQuery(found.url), withoutQuery(parent)]
    const isShared = versionOf(parent) === shared || canShare(url)
    if (isShared && versionOf(parent) === shared)
      importers.set(url, (importers.get(url) ?? new Set()).add(from))
    if (isShared && !importers.has(url)) importers.set(url, new Set())
    return { ...found, url: `${url}?run=${isShared ? shared : version}` }
  },
  load(url, context, next) {
    if (url.startsWith('tap:')) {
      const code = `export * from '${tap}'\nexport const t = globalThis.testOfRun\nexport default t`
      return { format: 'module', shortCircuit: true, source: code }
    }
    if (!isOurs(url) || !withoutQuery(url).endsWith('.ts')) return next(url, context)
    const path = fileURLToPath(url)
    const isSound = versionOf(url) === shared && path === task?.fault?.path
    const text = isSound ? (task?.fault?.sound ?? '') : readFileSync(path, 'utf8')
    return { format: 'module', shortCircuit: true, source: withoutTypes(path, text) }
  },
})

process.on('message', (message: WarmTask) => void run(message))
process.on('disconnect', () => process.exit())

async function run(next: WarmTask): Promise<void> {
  count += 1
  version = String(count)
  task = next
  affected = next.fault === undefined ? new Set() : importersOf(pathToFileURL(next.fault.path).href)
  const { test: file, only, seconds } = next
  const grep = only === undefined ? [] : [new RegExp(only)]
  const test = new Test({ name: file, timeout: seconds * 1000, grep })
  globalThis.testOfRun = test
  test.on('data', (chunk: unknown) => send({ tap: String(chunk) }))
  const ended = new Promise<void>((resolve) => test.on('end', () => resolve()))
  try {
    await import(`${root}${file}?run=${version}`)
  } catch (error) {
    test.threw(error)
  }
  test.end()
  await ended
  send({ passed: test.passing() })
}

function send(news: WarmNews): void {
  process.send?.(news)
}

function isOurs(url: string | undefined): url is string {
  return url?.startsWith(root) === true && !url.startsWith(packages)
}

function withoutQuery(url: string): string {
  return url.replace(/\?.*$/, '')
}

function versionOf(url: string): string | undefined {
  return /\?run=(.*)$/.exec(url)?.[1]
}

/** A module that was not loaded before may import the fault, so in a run with one it is not shared. */
function canShare(url: string): boolean {
  return url.startsWith(source) && !affected.has(url) && (task?.fault === undefined || importers.has(url))
}

function importersOf(url: string): ReadonlySet<string> {
  const all = new Set([url])
  for (const one of all) for (const importer of importers.get(one) ?? []) all.add(importer)
  return all
}

function withoutTypes(path: string, text: string): string {
  const known = stripped.get(path)
  if (known?.text === text) return known.code
  const code = stripTypeScriptTypes(text)
  stripped.set(path, { text, code })
  return code
}
