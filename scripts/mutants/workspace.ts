import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Fault } from '../../test/mutants/fault.ts'
import { quickStart } from '../quick-start.ts'
import { createBreaker } from './check.ts'
import { type Point, pointsOf } from './points.ts'
import type { WarmNews, WarmTask } from './warm-process.ts'

/** The result of one test file. */
export interface TestRun {
  readonly passed: readonly Point[]
  readonly failed: readonly Point[]
  /** `late`: it was stopped because it took too long. */
  readonly end: 'green' | 'red' | 'late'
  readonly seconds: number
}

/** How a test file is run. */
export interface RunOptions {
  /** A regular expression for the titles of the outermost tests to run. */
  readonly only?: string | undefined
  /** Stops the run when such a point has failed. */
  readonly isEnough?: (failed: Point) => boolean
  /** When tap fails a test that waits for something that does not come. */
  readonly seconds?: number
  /** In the process that this workspace keeps, and not in a new one. */
  readonly warm?: boolean
}

/** A copy of the project to break things in. */
export interface Workspace {
  /** Runs `work` while the fault is in the source. */
  withFault<T>(fault: Fault, work: () => Promise<T>): Promise<T>
  /** Runs `work` while a file of the source, named by its path below the root, has another text. */
  withText<T>(file: string, text: string, work: () => Promise<T>): Promise<T>
  /** Runs a test file. */
  run(test: string, options?: RunOptions): Promise<TestRun>
  /** Ends all processes and removes the copy. */
  remove(): void
}

/** The limit of a file in `npm test`; tap's own is 30, which a file can take on a busy machine. */
const tapSeconds = 300
/** How much later a file is stopped that does not end by itself. */
const graceSeconds = 30
/** How often a warm process runs a file before a new one replaces it: it keeps all modules in memory. */
const warmRuns = 60

const warmProcess = fileURLToPath(new URL('warm-process.ts', import.meta.url))

/** The history, and what git ignores. */
const leftBehind: readonly string[] = ['.git', 'node_modules', 'data', 'dist', '.tap']

/** A copy of what belongs to the project at `root`; its packages are linked. */
export function openWorkspace(root: string): Workspace {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'lychgate-mutants-')))
  const isCopied = (path: string) => !leftBehind.includes(basename(path))
  cpSync(root, folder, { recursive: true, filter: isCopied })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const breakSource = createBreaker(folder)
  // Node keeps here what it made of each module: all but one are the same in every run.
  const compiled = `${folder}-compiled`
  const running = new Set<ChildProcess>()
  let current: WarmTask['fault']
  let warm: { readonly child: ChildProcess; runs: number } | undefined

  function withFault<T>(fault: Fault, work: () => Promise<T>): Promise<T> {
    const { file, text } = breakSource(fault)
    return withText(file, text, work)
  }

  async function withText<T>(file: string, text: string, work: () => Promise<T>): Promise<T> {
    const path = join(folder, file)
    const sound = readFileSync(path, 'utf8')
    writeFileSync(path, text)
    current = { path, sound }
    try {
      return await work()
    } finally {
      current = undefined
      writeFileSync(path, sound)
    }
  }

  /** A group of its own: a test that starts servers must not leave them behind. */
  function start(file: string, environment: Readonly<Record<string, string>>, isWarm: boolean): ChildProcess {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
      cwd: folder,
      detached: true,
      env: { ...process.env, ...quickStart(compiled), ...environment },
      stdio: isWarm ? ['ignore', 'ignore', 'ignore', 'ipc'] : ['ignore', 'pipe', 'ignore'],
    })
    running.add(child)
    child.on('close', () => running.delete(child))
    return child
  }

  function run(test: string, options: RunOptions = {}): Promise<TestRun> {
    return options.warm === true ? runWarm(test, options) : runCold(test, options)
  }

  function runCold(
    test: string,
    { only, isEnough = () => false, seconds = tapSeconds }: RunOptions,
  ): Promise<TestRun> {
    return new Promise((resolve, reject) => {
      const begun = performance.now()
      const filter = only === undefined ? {} : { TAP_GREP: `/${only}/` }
      const child = start(test, { ...filter, TAP_TIMEOUT: String(Math.ceil(seconds)) }, false)
      let isLate = false
      const timer = setTimeout(
        () => {
          isLate = true
          killGroup(child.pid)
        },
        (seconds + graceSeconds) * 1000,
      )
      let tap = ''
      child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
        tap += chunk
        if (pointsOf(tap).failed.some(isEnough)) killGroup(child.pid)
      })
      child.on('error', reject)
      child.on('close', (code) => {
        clearTimeout(timer)
        killGroup(child.pid)
        const end = isLate ? 'late' : code === 0 ? 'green' : 'red'
        resolve({ ...pointsOf(tap), end, seconds: (performance.now() - begun) / 1000 })
      })
    })
  }

  function runWarm(test: string, { only, seconds = tapSeconds }: RunOptions): Promise<TestRun> {
    // What a test left behind may have ended it in the meantime.
    if (warm === undefined || !warm.child.connected)
      // tap would end a process that lives longer than one file may take.
      warm = { child: start(warmProcess, { TAP_TIMEOUT: '0' }, true), runs: 0 }
    warm.runs += 1
    const { child, runs } = warm
    const begun = performance.now()
    return new Promise((resolve) => {
      let tap = ''
      const finish = (end: TestRun['end'], keep: boolean) => {
        clearTimeout(timer)
        child.removeAllListeners('message').removeAllListeners('exit').removeAllListeners('error')
        if (!keep) {
          killGroup(child.pid)
          warm = undefined
        }
        resolve({ ...pointsOf(tap), end, seconds: (performance.now() - begun) / 1000 })
      }
      const timer = setTimeout(() => finish('late', false), (seconds + graceSeconds) * 1000)
      child.on('exit', () => finish('red', false)).on('error', () => finish('red', false))
      // tap sends messages of its own, about timeouts.
      child.on('message', (news: WarmNews | object) => {
        if ('tap' in news) tap += news.tap
        // What a failed test leaves behind must not meet the next one.
        else if ('passed' in news) finish(news.passed ? 'green' : 'red', runs < warmRuns)
      })
      child.send({ test, only, seconds, fault: current } satisfies WarmTask)
    })
  }

  function remove(): void {
    for (const child of running) killGroup(child.pid)
    for (const path of [folder, compiled]) rmSync(path, { recursive: true, force: true, maxRetries: 3 })
  }

  return { withFault, withText, run, remove }
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has ended.
  }
}
