import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'

/** The core of the servers, and that of the load. */
export const [serverCore, loadCore] = [0, 1]

const allCores = `0-${cpus().length - 1}`

/** A server on its core. */
export interface RunningServer {
  readonly pid: number
  readonly port: number
  /** CPU the process has used so far, user and system, in microseconds. */
  cpu(): number
  /** Resident memory in MiB. */
  memory(): number
  stop(): Promise<void>
}

/**
 * Starts a command, on the servers' core unless it may use any, and waits for its first 200 from `/readyz` or `probe`.
 */
export async function startServer(
  command: readonly string[],
  port: number,
  {
    environment = {},
    probe = '/readyz',
    anyCore = false,
  }: { environment?: Record<string, string>; probe?: string; anyCore?: boolean } = {},
): Promise<{ readonly server: RunningServer; readonly milliseconds: number }> {
  const began = performance.now()
  const child = spawn('taskset', ['-c', anyCore ? allCores : String(serverCore), ...command], {
    env: { PATH: process.env['PATH'] ?? '', ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let complaint = ''
  child.stderr?.on('data', (text) => {
    complaint += text
  })
  // Not 'exit', after which the rest of an error message may still arrive.
  const closed = once(child, 'close').then(([code]) => {
    if (code !== null) process.stderr.write(`${command.join(' ')} ended with ${code}: ${complaint}\n`)
  })
  while (!(await responses(port, probe))) {
    if (child.exitCode !== null) {
      await closed
      throw new Error(`${command.join(' ')} ended`)
    }
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return { server: running(child, port), milliseconds: performance.now() - began }
}

function running(child: ChildProcess, port: number): RunningServer {
  const { pid = 0 } = child
  return {
    pid,
    port,
    cpu: () => [pid, ...childrenOf(pid)].reduce((sum, each) => sum + cpuOf(each), 0),
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, 'exit')
      child.kill('SIGKILL')
      await exit
    },
  }
}

/** The worker processes of a server. */
export function childrenOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return children.split(' ').filter(Boolean).map(Number)
}

/** CPU a process has used so far, user and system, in microseconds. */
export function cpuOf(pid: number | undefined): number {
  // The scheduler's own nanoseconds of every thread: `stat` counts in steps of 10 ms.
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const [used] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
    return sum + Number(used) / 1000
  }, 0)
}

async function responses(port: number, path: string): Promise<boolean> {
  const response = await fetch(`http://localhost:${port}${path}`).catch(() => undefined)
  if (response) await response.arrayBuffer()
  return response?.ok ?? false
}

/** A folder that is deleted when the benchmark ends. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
