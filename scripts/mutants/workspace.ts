import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Fault } from '../../test/mutants/fault.ts'
import { createBreaker } from './check.ts'

/** What one test file came to. */
export interface TestRun {
  /** Titles of its tests. */
  readonly passed: readonly string[]
  readonly failed: readonly string[]
  /** How it ended; `late` when it was stopped for taking too long. */
  readonly end: 'green' | 'red' | 'late'
  readonly seconds: number
}

/** How a test file is run. */
export interface RunOptions {
  /** Skips the tests whose title does not contain this text. */
  readonly only?: string | undefined
  /** Stops the run when such a test has failed. */
  readonly isEnough?: (failed: string) => boolean
  /** When tap fails a test that waits for something that does not come. */
  readonly seconds?: number
}

/** A copy of the project to break things in. */
export interface Workspace {
  /** Runs `work` while the fault is in the source. */
  withFault<T>(fault: Fault, work: () => Promise<T>): Promise<T>
  /** Runs a test file. */
  run(test: string, options?: RunOptions): Promise<TestRun>
  /** Stops what runs and removes the copy. */
  remove(): void
}

/** The limit of a file in `npm test`; tap's own is 30, which a file can take on a busy machine. */
const tapSeconds = 300
/** How much later a file is stopped that does not end by itself. */
const graceSeconds = 30

/** The history, and what git ignores. */
const leftBehind: readonly string[] = ['.git', 'node_modules', 'data', 'dist', '.tap', 'coverage']

/** A copy of what belongs to the project at `root`; its packages are linked. */
export function openWorkspace(root: string): Workspace {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-mutants-'))
  const isCopied = (path: string) => !leftBehind.includes(basename(path))
  cpSync(root, folder, { recursive: true, filter: isCopied })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const breakSource = createBreaker(folder)
  // Node keeps here what it made of each module: all but one are the same in every run.
  const compiled = `${folder}-compiled`
  let stop = () => {}

  async function withFault<T>(fault: Fault, work: () => Promise<T>): Promise<T> {
    const { file: name, text } = breakSource(fault)
    const file = join(folder, name)
    const sound = readFileSync(file, 'utf8')
    writeFileSync(file, text)
    try {
      return await work()
    } finally {
      writeFileSync(file, sound)
    }
  }

  function run(
    test: string,
    { only, isEnough = () => false, seconds = tapSeconds }: RunOptions = {},
  ): Promise<TestRun> {
    return new Promise((resolve, reject) => {
      const start = performance.now()
      const filter = only === undefined ? {} : { TAP_GREP: `/${escapeRegExp(only)}/` }
      // A group of its own: a test that starts servers must not leave them behind.
      const child = spawn(process.execPath, [test], {
        cwd: folder,
        detached: true,
        env: {
          ...process.env,
          ...filter,
          TAP_TIMEOUT: String(Math.ceil(seconds)),
          NODE_COMPILE_CACHE: compiled,
        },
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      stop = () => killGroup(child.pid)
      let isLate = false
      const timer = setTimeout(
        () => {
          isLate = true
          stop()
        },
        (seconds + graceSeconds) * 1000,
      )
      let tap = ''
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        tap += chunk
        if (titlesOf(tap).failed.some(isEnough)) stop()
      })
      child.on('error', reject)
      child.on('close', (code) => {
        clearTimeout(timer)
        stop()
        stop = () => {}
        const end = isLate ? 'late' : code === 0 ? 'green' : 'red'
        resolve({ ...titlesOf(tap), end, seconds: (performance.now() - start) / 1000 })
      })
    })
  }

  function remove(): void {
    stop()
    for (const made of [folder, compiled]) rmSync(made, { recursive: true, force: true, maxRetries: 3 })
  }

  return { withFault, run, remove }
}

/** The test points of TAP that are tests, and not assertions, however deep they stand. */
function titlesOf(tap: string): Pick<TestRun, 'passed' | 'failed'> {
  const tests = new Set([...tap.matchAll(/^ *# Subtest: (.*)$/gm)].map(([, title]) => title))
  const points = [...tap.matchAll(/^ *(not )?ok \d+ - (.*?)(?: # .*)?$/gm)]
    .map(([, not, title = '']) => ({ failed: not !== undefined, title }))
    .filter(({ title }) => tests.has(title))
  return {
    passed: points.filter(({ failed }) => !failed).map(({ title }) => title),
    failed: points.filter(({ failed }) => failed).map(({ title }) => title),
  }
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^$()[\]{}|\\/]/g, '\\$&')
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It is gone, and so is everything it started.
  }
}
