import { chownSync, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { sync } from './copy-database.ts'

/** A database that another process has open cannot be replaced: it would go on with a file that has no name. */
export class DatabaseInUse extends Error {
  constructor(cause: unknown) {
    super('the database is open in another process', { cause })
    this.name = 'DatabaseInUse'
  }
}

/**
 * Puts the database `fresh` in the place of `file`, at once; what was there goes on as `kept`, whole and in one file.
 * Every open store holds SQLite's shared lock: the exclusive one is had only by who is alone, and held until the new
 * file is in place. Who was about to open the old one then waits, and opens the new one.
 * @returns Whether there was one to keep.
 * @throws {DatabaseInUse}
 */
export function replaceDatabase(fresh: string, file: string, kept: string): boolean {
  prepare(fresh, existsSync(file) ? file : dirname(file))
  if (!existsSync(file)) {
    placeFirst(fresh, file)
    return false
  }
  const alone = takeAlone(file)
  try {
    rmSync(`${file}-shm`, { force: true })
    linkSync(file, kept)
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
