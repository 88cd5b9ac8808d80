import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { DrizzleError } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { assertOurs, isServed, migrateAll } from '../migrations.ts'
import { assertSound, schemaOf, wasNotClosed } from './state.ts'
import { keepForVersionBefore } from './upgrade-copy.ts'

/** Before 3.51.3 two connections that checkpoint can corrupt a WAL database; a migration needs 3.53. */
const oldestSqlite = '3.53.0'
/** While a statement waits for a lock, the whole process waits. */
const busyMilliseconds = 100
/** How long opening waits for other processes that open the same file, or migrate it. */
const openMilliseconds = 5000

/**
 * An open, migrated database file with every setting the store relies on.
 * @throws {Error} with one line for the operator; a file that is rejected is left as it is.
 */
export async function openDatabase(file: string): Promise<Database.Database> {
  const deadline = performance.now() + openMilliseconds
  for (;;) {
    try {
      return await openNow(file)
    } catch (fault) {
      if (isBusy(fault) && performance.now() < deadline) {
        await setTimeout(busyMilliseconds / 2)
        continue
      }
      const reason = fault instanceof Error ? fault.message : String(fault)
      throw new Error(`the database file ${file} cannot be used: ${reason}`, { cause: fault })
    }
  }
}

function isBusy(fault: unknown): boolean {
  // Drizzle's migrator wraps what the database says.
  const error = fault instanceof DrizzleError ? fault.cause : fault
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
}

async function openNow(file: string): Promise<Database.Database> {
  const isFile = file !== ':memory:'
  if (isFile && existsSync(file) && statSync(file).size > 0) inspect(file)
  // Only its owner may read it; the journal files inherit this.
  else if (isFile) closeSync(openSync(file, 'a', 0o600))
  const client = new Database(file, { timeout: busyMilliseconds })
  try {
    assertSqliteVersion(client)
    // FULL: the last commits survive a power loss. An acknowledged redemption must not come undone.
    for (const setting of [
      'journal_mode = WAL',
      'synchronous = FULL',
      'foreign_keys = ON',
      'mmap_size = 0',
      // KiB. Of a large file the system keeps what is asked for: four times as much here is not a microsecond faster.
      'cache_size = -4096',
    ]) {
      client.pragma(setting)
    }
    if (isFile) keepForVersionBefore(client, file)
    await applyMigrations(client)
    // A file that this user may only read opens well, and every later write fails: this one changes nothing.
    client.exec('delete from __drizzle_migrations where false')
    return client
  } catch (fault) {
    client.close()
    throw fault
  }
}

/** @throws {Error} when the running SQLite is older than the oldest safe one. */
export function assertSqliteVersion(client: Database.Database, oldest = oldestSqlite): void {
  const version = String(client.prepare('select sqlite_version()').pluck().get())
  // Not by localeCompare, which loads the collation of a language first: 10 ms of a start.
  const [parts, least] = [version.split('.').map(Number), oldest.split('.').map(Number)]
  const at = parts.findIndex((part, index) => part !== least[index])
  if (at >= 0 && Number(parts[at]) < Number(least[at]))
    throw new Error(`SQLite ${version} is too old: ${oldest} or newer is required`)
}

/** Looks at an existing file through a connection that cannot write. */
function inspect(file: string): void {
  const client = new Database(file, { readonly: true, timeout: busyMilliseconds })
  try {
    if (wasNotClosed(file)) assertSound(client)
    assertOurs(schemaOf(client))
  } finally {
    client.close()
  }
}

async function applyMigrations(client: Database.Database): Promise<void> {
  if (isServed(schemaOf(client))) return
  try {
    // Passkeys were rows with bytes, and records are JSON: a migration calls it.
    client.function('base64url', { deterministic: true }, (bytes) =>
      Buffer.from(bytes as Buffer).toString('base64url'),
    )
    await migrateAll('sqlite', drizzle(client))
  } catch (fault) {
    // Two processes that start at once both see an empty file; the slower one finds the work done.
    if (!isServed(schemaOf(client))) throw fault
  }
}
