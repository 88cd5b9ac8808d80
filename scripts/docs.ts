/**
 * Runs the commands of README.md and the pages of docs/ in a fresh clone with the packages of this checkout, each page
 * in a separate shell session, on empty data. Fails if a command fails or its output is not what the page shows. `npm
 * run check:docs -- docs/api.md` tries one page.
 *
 * `npx lychgate` starts the program without npm, which reads the packages of the whole checkout first: that takes two
 * seconds of CPU time for each command. The page that a newcomer reads first has npm do it.
 */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { blocksOf, isIn, outputsOf, type Plan, planOf, sessionOf } from './docs/page.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The limit for one page: much longer than any takes, because a busy machine can make a command ten times slower. */
const mostSeconds = 1200
const folder = mkdtempSync(join(tmpdir(), 'lychgate-docs-'))
// PostgreSQL runs as an unprivileged user when root runs this, from there and with a folder for its data.
chmodSync(folder, 0o755)
const checkout = join(folder, 'checkout')
/** Has the `npx` of the pages that need no npm. */
const commands = join(folder, 'commands')
const pageWithNpm = 'docs/start.md'
const quickNpx = `#!/bin/sh
PATH=${checkout}/node_modules/.bin:$PATH
[ "$1" != lychgate ] || { shift; set -- node ${checkout}/src/lychgate.js "$@"; }
exec "$@"
`
try {
  process.exitCode = (await tryPages(process.argv.slice(2))) ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function tryPages(asked: readonly string[]): Promise<boolean> {
  // Links cost nothing, but need the same file system.
  const prepare =
    'git clone --quiet "$0" . && { cp -al "$0/node_modules" . || cp -a "$0/node_modules" .; } && rm -rf node_modules/.cache'
  mkdirSync(checkout)
  const prepared = spawnSync('bash', ['-c', prepare, root], { cwd: checkout, env: surroundings() })
  if (prepared.status !== 0) {
    process.stdout.write(`${prepare}: ${prepared.stderr}\n`)
    return false
  }
  mkdirSync(commands)
  writeFileSync(join(commands, 'npx'), quickNpx, { mode: 0o755 })
  let isFine = true
  for (const page of asked.length > 0 ? asked : allPages()) {
    const plan = planOf(blocksOf(readFileSync(join(root, page), 'utf8')))
    const started = performance.now()
    const failure = await tryPage(plan, page === pageWithNpm ? [] : [commands])
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    const counts = `${plan.steps.length} run, ${plan.shown.length} only shown`
    process.stdout.write(
      `${page}: ${failure === undefined ? `${counts}, ${seconds} s` : `line ${failure}`}\n`,
    )
    isFine &&= failure === undefined
  }
  return isFine
}

function allPages(): readonly string[] {
  const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
  // Generated from a test run, and without commands.
  return ['README.md', ...pages.filter((name) => name !== 'conformance.md').map((name) => `docs/${name}`)]
}

/** What went wrong, beginning with the line of its block; undefined if nothing did. */
async function tryPage({ steps, files }: Plan, path: readonly string[]): Promise<string | undefined> {
  if (steps.length === 0) return undefined
  spawnSync('git', ['clean', '-dfqx', '-e', 'node_modules'], { cwd: checkout })
  for (const { word = '', content } of files) {
    mkdirSync(dirname(join(checkout, word)), { recursive: true })
    writeFileSync(join(checkout, word), content)
  }
  const { code, output } = await runSession(sessionOf(steps), path)
  const outputs = outputsOf(output)
  if (code !== 0) {
    const line = steps[outputs.length - 1]?.block.line
    return `${line}: the shell ended with ${code ?? `no code, after ${mostSeconds} s`}\n${outputs.at(-1) ?? output}`
  }
  const broken = steps.findIndex(
    ({ expected }, index) => expected !== undefined && !isIn(outputs[index] ?? '', expected),
  )
  if (broken < 0) return undefined
  return `${steps[broken]?.expected?.line}: the output is another one\n${outputs[broken]}`
}

/**
 * Runs the session in a process group, which is killed at its end: until then servers run in the background. Their
 * temporary files are deleted with it.
 */
async function runSession(
  script: string,
  path: readonly string[],
): Promise<{ code: number | null; output: string }> {
  const temporary = mkdtempSync(join(tmpdir(), 'lychgate-page-'))
  chmodSync(temporary, 0o1777)
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: checkout,
    env: { ...surroundings(path), TMPDIR: temporary },
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const end = () => {
    try {
      process.kill(-(shell.pid ?? 0), 'SIGKILL')
    } catch {} // The group was empty.
  }
  const timer = setTimeout(end, mostSeconds * 1000)
  const output = text(shell.stdout)
  const code = await new Promise<number | null>((resolve) => shell.once('exit', resolve))
  clearTimeout(timer)
  end()
  const session = { code, output: await output }
  rmSync(temporary, { recursive: true, force: true, maxRetries: 10 })
  return session
}

/** A newcomer has only what npm finds: neither our settings, nor the Node of this checkout. `first` begins PATH. */
function surroundings(first: readonly string[] = []): NodeJS.ProcessEnv {
  const ours = /^(LYCHGATE_|npm_(package|lifecycle)_|npm_config_local_prefix$)/
  const kept = Object.entries(process.env).filter(([name]) => !ours.test(name))
  const path = (process.env['PATH'] ?? '').split(':').filter((entry) => !entry.includes('node_modules'))
  return { ...Object.fromEntries(kept), PATH: [...first, ...path].join(':') }
}
