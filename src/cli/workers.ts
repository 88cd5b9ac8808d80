import cluster, { type Worker } from 'node:cluster'
import { isSea } from 'node:sea'
import { setTimeout as wait } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import { pino } from 'pino'
import type { Config } from '../config/schema.ts'
import type { Lines } from '../http/log.ts'
import { createHub } from '../system/peer-hub.ts'
import { exitCode } from './failure.ts'

const minuteMilliseconds = 60_000
const longestPauseMilliseconds = 5000

/**
 * Returns how long to wait before the next worker starts in place of one that ended by itself; undefined if so many
 * ended within a minute that starting more of them does not help.
 */
export function pauseAfter(endedLately: number, workers: number): number | undefined {
  if (endedLately > 4 + workers) return undefined
  return Math.min(longestPauseMilliseconds, 50 * 2 ** (endedLately - 1))
}

/** A worker that ended before it was ready. It has printed the reason. */
class NotStarted extends Error {
  readonly code: number

  constructor(code: number) {
    super('a worker did not start')
    this.code = code
  }
}

function exitOf(worker: Worker): Promise<number> {
  return new Promise((resolve) => worker.once('exit', (code) => resolve(code ?? exitCode.failed)))
}

/**
 * Runs the server as this many worker processes, which share its port. Replaces a worker that ends by itself. SIGHUP
 * replaces one after the other, and each reads its configuration again; SIGTERM stops all and exits with 0. Returns
 * when every worker is ready.
 */
export async function supervise(count: number, config: Config, lines: Lines): Promise<void> {
  // An executable runs itself, and adds its own options of Node.
  const [, script = '', ...rest] = process.argv
  const [command, ...others] = rest
  // Workers accept connections themselves. If this process passed them on, one that was on its way to a worker that is
  // killed would stay open without a response. Before setupPrimary, which reads it.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  cluster.setupPrimary(
    isSea() ? { exec: command ?? '', args: others, execArgv: [] } : { exec: script, args: rest },
  )
  const log = pino({ level: config.logLevel }, lines)
  const hub = createHub()
  const running = new Set<Worker>()
  /** Workers that were asked to stop: none of them is replaced. */
  const expected = new WeakSet<Worker>()
  // Longer than a worker waits before it gives up (serve.ts).
  const delay = (config.drainSeconds + 12) * 1000
  let ends: readonly number[] = []
  let isStopping = false

  async function start(): Promise<void> {
    const worker = cluster.fork()
    running.add(worker)
    const ready = new Promise<undefined>((resolve) => worker.once('ready', () => resolve(undefined)))
    const ended = exitOf(worker).then((code) => {
      running.delete(worker)
      hub.remove(worker)
      return code
    })
    worker.on('message', (message) => hub.receive(worker, message))
    // Its exit follows.
    worker.on('error', () => {})
    const code = await Promise.race([ready, ended])
    if (code !== undefined) throw new NotStarted(code)
    void ended.then(() => {
      if (!isStopping && !expected.has(worker)) void replace(worker)
    })
  }

  async function replace({ process: { pid, exitCode: code, signalCode: signal } }: Worker): Promise<void> {
    const now = performance.now()
    ends = [...ends.filter((at) => now - at < minuteMilliseconds), now]
    const pause = pauseAfter(ends.length, count)
    if (pause === undefined) return giveUp()
    log.error({ worker: pid, code, signal, pauseMs: pause }, 'a worker has ended; another one is started')
    await wait(pause)
    // A restart may have started one in the meantime.
    if (isStopping || running.size >= count) return
    try {
      await start()
    } catch (error) {
      if (!(error instanceof NotStarted)) throw error
      if (!isStopping) await replace({ process: { exitCode: error.code } } as Worker) // only this is read
    }
  }

  async function giveUp(): Promise<void> {
    log.fatal({ ended: ends.length }, 'workers end again and again; the server stops')
    process.stderr.write(`lychgate: ${ends.length} workers ended within a minute; the server stops\n`)
    await stopAll()
    process.exit(exitCode.failed)
  }

  async function end(worker: Worker, isReplaced: boolean): Promise<number> {
    if (!running.has(worker)) return 0
    expected.add(worker)
    const code = exitOf(worker)
    // One that hangs would keep a restart waiting for ever.
    const timer = setTimeout(() => worker.process.kill('SIGKILL'), delay).unref()
    void code.then(() => clearTimeout(timer))
    return hub.stop(worker, isReplaced) ? code : code.then(() => exitCode.ok)
  }

  async function stopAll(): Promise<boolean> {
    isStopping = true
    const codes = await Promise.all([...running].map((worker) => end(worker, false)))
    return codes.every((code) => code === 0)
  }

  let restart = Promise.resolve()
  async function restartEach(): Promise<void> {
    log.info({ workers: count }, 'restarting one worker after the other')
    for (const worker of [...running]) {
      try {
        if (isStopping) return
        await start()
        await end(worker, true)
      } catch (error) {
        if (!(error instanceof NotStarted)) throw error
        if (!isStopping) log.error('a new worker did not start: the others continue as they are')
        return
      }
    }
    log.info({ workers: count }, 'restarted every worker')
  }
  process.on('SIGHUP', () => {
    restart = restart.then(restartEach)
  })
  closeWithGrace({ delay, skip: ['SIGHUP'] }, async ({ err }) => {
    if (err) log.fatal({ err }, 'stopped by an unexpected error')
    if (!(await stopAll())) process.exit(exitCode.failed)
  })

  try {
    // The first one makes what a store lacks, and says what is wrong.
    await start()
    await Promise.all(Array.from({ length: count - 1 }, start))
  } catch (error) {
    if (!(error instanceof NotStarted)) throw error
    if (isStopping) return
    await stopAll()
    process.exit(error.code)
  }
}
