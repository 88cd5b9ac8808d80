import { closeSync, existsSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { assertOurs, schemaOf } from './open-database.ts'

/** What a copy has in it, as a user would count. */
export interface CopyContents {
  readonly bytes: number
  readonly people: number
  readonly clients: number
  readonly approvals: number
}

/**
 * Copies a database file, also while it is open: one instant of it, whole, in one new file that only its owner reads,
 * and on the disk when this returns. Pages of what was deleted do not come along.
 * @throws {Error} when there is no database of this build's or an older version, or it is damaged; no copy is left then.
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
    rmSync(to, { force: true })
    throw fault
  }
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
      people: count(hasUsers ? 'users' : 'accounts'),
      clients: count('clients'),
      approvals: count('grants'),
    }
  } finally {
    client.close()
  }
}
