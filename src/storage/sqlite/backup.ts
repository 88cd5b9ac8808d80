import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { assertOurs } from '../migrations.ts'
import { schemaOf } from './state.ts'

/** What a copy has in it, as a user would count. */
export interface CopyContents {
  readonly bytes: number
  readonly users: number
  readonly clients: number
  readonly grants: number
}

/**
 * Copies a database file, also while it is open: one instant of it, whole, in one new file that only its owner reads,
 * and on the disk when this returns. Pages of what was deleted do not come along.
 * @throws {Error} when there is no database of this build's or an older version, or it is damaged; no copy is left
 * then.
 */
export function copyDatabase(from: string, to: string): CopyContents {
  if (!existsSync(from)) throw new Error('there is no such file')
  if (statSync(from).size === 0) throw new Error('it is empty')
  // SQLite would make it readable by others.
  closeSync(openSync(to, 'wx', 0o600))
  try {
    copyInto(from, to)
    const contents = inspectCopy(to)
    sync(to)
    return contents
  } catch (fault) {
    removeCopy(to)
    throw fault
  }
}

/** Removes a copy, or what a copy that failed has left. */
export function removeCopy(file: string): void {
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(file + suffix, { force: true })
}

/** Makes what was written to a file, or made, named and removed in a folder, last. */
export function sync(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Not the backup interface: that begins again whenever a server commits between two of its steps. */
function copyInto(from: string, to: string): void {
  // Without a journal no process has it open; then a connection that could not write would leave one behind.
  const client = new Database(from, { readonly: existsSync(`${from}-wal`), timeout: 2000 })
  try {
    client.prepare('vacuum into ?').run(to)
  } finally {
    client.close()
  }
}

function inspectCopy(file: string): CopyContents {
  const client = new Database(file, { readonly: true })
  try {
    const schema = schemaOf(client)
    assertOurs(schema === 'missing' ? 'foreign' : schema)
    if (client.pragma('integrity_check(1)', { simple: true }) !== 'ok') throw new Error('it is damaged')
    const hasUsers = client.prepare("select 1 from sqlite_schema where name = 'users'").get() !== undefined
    const count = (table: string) => Number(client.prepare(`select count(*) from ${table}`).pluck().get())
    return {
      bytes: statSync(file).size,
      // A copy of an earlier version is not migrated.
      users: count(hasUsers ? 'users' : 'accounts'),
      clients: count('clients'),
      grants: count('grants'),
    }
  } finally {
    client.close()
  }
}

/** A database that another process has open cannot be replaced: it would go on with a file that has no name. */
export class DatabaseInUse extends Error {
  constructor(cause: unknown) {
    super('the database is open in another process', { cause })
    this.name = 'DatabaseInUse'
  }
}

/**
 * Replaces the database `file` with `fresh` in one step, and keeps the old one as `replaced`, complete and in one file.
 * Every open store has SQLite's shared lock, so this gets the exclusive lock only if no store is open. It keeps the
 * lock until the new file is in place: a process that opens the database in between waits, and opens the new one.
 * @returns Whether there was one to keep.
 * @throws {DatabaseInUse}
 */
export function replaceDatabase(fresh: string, file: string, replaced: string): boolean {
  prepare(fresh, existsSync(file) ? file : dirname(file))
  if (!existsSync(file)) {
    placeFirst(fresh, file)
    return false
  }
  const alone = takeAlone(file)
  try {
    rmSync(`${file}-shm`, { force: true })
    linkSync(file, replaced)
    renameSync(fresh, file)
    sync(dirname(file))
    return true
  } finally {
    alone.close()
  }
}

/** As a server would have it: with a journal of the kind it uses, and its own even if an administrator restores. */
function prepare(fresh: string, model: string): void {
  const client = new Database(fresh)
  client.pragma('journal_mode = WAL')
  client.close()
  const { uid, gid } = statSync(model)
  if (process.getuid?.() === 0) chownSync(fresh, uid, gid)
}

/** Linked, not renamed: a server that made one in the meantime keeps it. */
function placeFirst(fresh: string, file: string): void {
  const stray = ['-wal', '-journal'].map((suffix) => file + suffix).find((path) => existsSync(path))
  if (stray !== undefined) throw new Error(`${stray} is the journal of a database that is gone; move it away`)
  linkSync(fresh, file)
  rmSync(fresh)
  sync(dirname(file))
}

function takeAlone(file: string): Database.Database {
  const client = new Database(file, { timeout: 100, fileMustExist: true })
  try {
    client.pragma('locking_mode = exclusive')
    // Moves what is in the journal into the file, too. From here on no process writes to the old file:
    // SQLite does not begin a journal for a file that was moved.
    client.pragma('journal_mode = delete')
    client.exec('begin exclusive')
    return client
  } catch (fault) {
    client.close()
    const isInUse = fault instanceof Database.SqliteError && fault.code.startsWith('SQLITE_BUSY')
    throw isInUse ? new DatabaseInUse(fault) : fault
  }
}
