/**
 * Does what the README says, on a fresh clone: `npm ci`, `npm start`, then the seven steps pasted into a shell.
 * Fails when a command fails or an answer is not what the text promises.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = mkdtempSync(join(tmpdir(), 'lychgate-readme-'))
const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const [runIt, steps] = ['## Run it', '## Seven steps with curl'].map(blockBelow)
let failure: string | undefined
try {
  failure = await tryCommands()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.stdout.write(failure === undefined ? 'the README works\n' : `the README does not work: ${failure}\n`)
process.exit(failure === undefined ? 0 : 1)

async function tryCommands(): Promise<string | undefined> {
  if (runIt !== 'npm ci\nnpm start\n') return 'the two commands are not npm ci and npm start'
  const clone = spawnSync('git', ['clone', '--quiet', new URL('..', import.meta.url).pathname, folder])
  if (clone.status !== 0) return `git clone: ${clone.stderr}`
  // The Node that came with this checkout must not help: a newcomer has only what npm finds.
  const environment = { ...process.env, PATH: outsidePath() }
  const install = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: folder,
    env: environment,
    encoding: 'utf8',
  })
  if (install.status !== 0) return `npm ci: ${install.stderr}`
  const server = spawn('npm', ['start'], { cwd: folder, env: environment, detached: true })
  let printed = ''
  server.stdout.on('data', (text) => {
    printed += text
  })
  server.stderr.on('data', (text) => {
    printed += text
  })
  try {
    if (!(await isReady())) return `npm start: ${printed}`
    const walk = spawnSync('bash', ['-euo', 'pipefail', '-c', steps ?? 'false'], { encoding: 'utf8' })
    if (walk.status !== 0) return `the seven steps: ${walk.stdout}${walk.stderr}`
    return misses(walk.stdout) ?? (printed.includes('alice-in-dev') ? undefined : `no banner: ${printed}`)
  } finally {
    process.kill(-(server.pid ?? 0), 'SIGTERM')
  }
}

/** What the text promises of the answers, in their order. */
function misses(output: string): string | undefined {
  const promised = [
    /callback\?code=lyc_code_.*state=af0ifjsldkj.*iss=http/,
    /"access_token":"lyc_access_.*"id_token":"ey/,
    /"caller":"person"/,
    /"caller":"anonymous"/,
    /HTTP\/1\.1 403[\s\S]*insufficient_scope/,
    /"name":"Alice/,
    /HTTP\/1\.1 401[\s\S]*invalid_token/,
  ]
  const missed = promised.find((pattern) => !pattern.test(output))
  return missed && `${missed} is not in the output:\n${output}`
}

async function isReady(): Promise<boolean> {
  for (let attempt = 0; attempt < 150; attempt += 1) {
    const ready = await fetch('http://localhost:9400/readyz').catch(() => undefined)
    if (ready?.ok) return true
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  return false
}

function outsidePath(): string {
  return (process.env['PATH'] ?? '')
    .split(':')
    .filter((entry) => !entry.includes('node_modules'))
    .join(':')
}

function blockBelow(heading: string): string {
  const from = readme.indexOf(`\n${heading}\n`)
  return /```sh\n([\s\S]*?)```/.exec(readme.slice(from))?.[1] ?? ''
}
