/**
 * The threads that derive password hashes: few, and with a lower priority than all other threads. In the thread pool a
 * sign-in took half of a core that requests share with it, and RS256 signatures waited behind it.
 */
import type { Argon2Parameters } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'

interface Job {
  readonly parameters: Argon2Parameters
  readonly resolve: (tag: Buffer) => void
  readonly reject: (cause: unknown) => void
}

/** What a thread returns: the hash, or why there is none. */
type Reply = { readonly tag: Uint8Array } | { readonly cause: unknown }

/** How many hashes are derived at once: one core is left for everything else. */
export const threadCount = Math.max(1, availableParallelism() - 1)

const waiting: Job[] = []
const idle: Worker[] = []
let started = 0

/** Derives an argon2id hash, RFC 9106. Hashes wait in order for a free thread. */
export function derive(parameters: Argon2Parameters): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    waiting.push({ parameters, resolve, reject })
    startNext()
  })
}

function startNext(): void {
  const [job] = waiting
  const thread = job && (idle.pop() ?? (started < threadCount ? startThread() : undefined))
  if (job === undefined || thread === undefined) return
  waiting.shift()
  const onExit = () => job.reject(new Error('the thread of a password has ended'))
  thread.once('exit', onExit)
  thread.once('message', (reply: Reply) => {
    thread.off('exit', onExit)
    // An idle thread keeps no process running.
    thread.unref()
    idle.push(thread)
    if ('tag' in reply) job.resolve(Buffer.from(reply.tag))
    else job.reject(reply.cause)
    startNext()
  })
  thread.ref()
  thread.postMessage(job.parameters)
}

function startThread(): Worker {
  started += 1
  const thread = new Worker(`(${runThread})()`, {
    eval: true,
    execArgv: [],
    env: {},
    name: 'passwords',
    resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 },
  })
  // `exit` follows; without a listener it would end the process.
  thread.on('error', () => {})
  thread.once('exit', () => {
    started -= 1
    const place = idle.indexOf(thread)
    if (place >= 0) idle.splice(place, 1)
    startNext()
  })
  return thread
}

/**
 * Runs in the thread, from its text: it can use nothing of this module. Linux has a priority for each thread; where
 * the system has none, the thread keeps that of the process.
 */
function runThread(): void {
  const { argon2Sync } = process.getBuiltinModule('node:crypto')
  const { readlinkSync } = process.getBuiltinModule('node:fs')
  const { setPriority } = process.getBuiltinModule('node:os')
  const { parentPort } = process.getBuiltinModule('node:worker_threads')
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), 10)
  } catch {}
  parentPort?.on('message', (parameters) => {
    try {
      parentPort.postMessage({ tag: argon2Sync('argon2id', parameters) })
    } catch (cause) {
      parentPort.postMessage({ cause })
    }
  })
}
