import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { quickStartOption } from '../../scripts/quick-start.ts'

export const entry = fileURLToPath(new URL('../../src/lychgate.js', import.meta.url))

/** How a process ended. */
export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The options of a process; it gets no surrounding LYCHGATE_ variable. */
export interface Surroundings {
  readonly environment?: Readonly<Record<string, string>>
  readonly input?: string
}

/** An empty data folder that is deleted with the test. */
export function newFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-cli-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The file to run instead of the sources: `npm run check:build` runs tests against its result. */
export const executable = process.env['TEST_EXECUTABLE']

/**
 * Starts `lychgate …` in a process; an executable gets an empty environment. The hooks that tap puts into children
 * double the time to start, and end a process with signals that Node ignores.
 */
export function start(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  cwd?: string,
) {
  if (executable) return spawnFile(executable, args, environment, cwd)
  const inherited = Object.entries(process.env).flatMap(([name, value = '']) =>
    name.startsWith('LYCHGATE_') ? [] : [[name, value] as const],
  )
  const variables = { ...Object.fromEntries(inherited), NODE_OPTIONS: quickStartOption, ...environment }
  return spawnFile(process.execPath, [entry, ...args], variables, cwd)
}

/** Starts a file with only these variables: tap puts its own hooks into every child it knows of. */
export function spawnFile(
  file: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  cwd?: string,
) {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  return spawn('env', ['-i', ...variables, file, ...args], { cwd })
}

/** No command takes half of this on a busy machine: one that does should have ended. */
const longestRunSeconds = 60

/** Runs `lychgate …` to its end; the code is null if it had to be killed. */
export async function run(
  args: readonly string[],
  { environment, input }: Surroundings = {},
): Promise<Ended> {
  const child = start(args, environment)
  child.stdin?.end(input ?? '')
  const overdue = setTimeout(() => child.kill('SIGKILL'), longestRunSeconds * 1000)
  try {
    return await ended(child)
  } finally {
    clearTimeout(overdue)
  }
}

/** Waits for the end of a process. */
export async function ended(child: ChildProcess): Promise<Ended> {
  const { stdout, stderr } = child
  if (!stdout || !stderr) throw new Error('the process has no pipes')
  const exit = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  const [code, out, err] = await Promise.all([exit, text(stdout), text(stderr)])
  return { code, stdout: out, stderr: err }
}

/** Waits until the process has printed this on standard error, or on this stream of it. */
export function printed(child: ChildProcess, form: RegExp, stream = child.stderr): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = ''
    stream?.on('data', (chunk) => {
      seen += chunk
      const [found] = form.exec(seen) ?? []
      if (found !== undefined) resolve(found)
    })
    child.once('exit', () => reject(new Error(`it ended: ${seen}`)))
  })
}
