import { closeSync, existsSync, fsyncSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import type { Condition } from '../../domain/decision.ts'
import { isRead } from '../migrations.ts'
import { storedFacts } from '../reads.ts'
import { commitsTried, type StoreFacts, type StoreFault } from '../store.ts'
import { runnerOf } from './prepared.ts'
import { assertSound, schemaOf } from './state.ts'

/**
 * Looks at a database file; undefined when there is none.
 * @throws {Error} with one line for the operator when it cannot be opened.
 */
export function examineDatabase(file: string, isAdministered: Condition['holds']): StoreFacts | undefined {
  if (!existsSync(file) || statSync(file).size === 0) return undefined
  let client: Database.Database | undefined
  try {
    client = openUnchanged(file)
    const schema = schemaOf(client)
    const commitMilliseconds = quickestSync(dirname(file))
    return {
      engine: `SQLite ${client.prepare('select sqlite_version()').pluck().get()}`,
      schema,
      faults: damageOf(client),
      ...(isRead(schema) && runnerOf(client)(storedFacts(isAdministered))),
      ...(commitMilliseconds !== undefined && { commitMilliseconds }),
    }
  } catch (fault) {
    const reason = fault instanceof Error ? fault.message : String(fault)
    throw new Error(`the database file ${file} cannot be opened: ${reason}`, { cause: fault })
  } finally {
    client?.close()
  }
}

/**
 * A read-only connection. One without write access would leave its journal behind; so where there is none
 * (no server has the file open), it is one that could: the last of those to close takes its journal along.
 */
function openUnchanged(file: string): Database.Database {
  const client = new Database(file, { readonly: existsSync(`${file}-wal`), timeout: 2000 })
  client.pragma('query_only = on')
  return client
}

function damageOf(client: Database.Database): readonly StoreFault[] {
  try {
    assertSound(client)
    return []
  } catch (fault) {
    return [
      {
        said: 'the database is damaged',
        expected: 'quick_check finds nothing',
        found: fault instanceof Error ? fault.message : String(fault),
        remedy: 'stop the server, and lychgate restore the last backup',
      },
    ]
  }
}

/** A commit waits for the disk once: so does this, with a file of its own. */
function quickestSync(folder: string): number | undefined {
  const file = join(folder, `.lychgate-doctor-${process.pid}`)
  try {
    const handle = openSync(file, 'wx', 0o600)
    try {
      return Math.min(...Array.from({ length: commitsTried }, () => syncMilliseconds(handle)))
    } finally {
      closeSync(handle)
      rmSync(file)
    }
  } catch {
    // Not this user's folder, or full: both are found elsewhere.
    return undefined
  }
}

function syncMilliseconds(handle: number): number {
  const start = performance.now()
  writeSync(handle, Buffer.alloc(4096))
  fsyncSync(handle)
  return performance.now() - start
}
