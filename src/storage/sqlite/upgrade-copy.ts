import { renameSync } from 'node:fs'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { copyDatabase, removeCopy, sync } from './backup.ts'
import { schemaToKeep } from './state.ts'

/**
 * Copies a database before an upgrade after which the version before rejects it: `FILE-schema-N`, by the number of
 * migrations it has. That version serves again with the copy.
 * @throws {Error} when there is no copy; the database is left as it is then.
 */
export function keepForVersionBefore(client: Database.Database, file: string): void {
  if (schemaToKeep(client) === undefined) return
  const unfinished = `${file}.unfinished-upgrade`
  // One process makes the copy; others wait, and find the upgrade done.
  client.exec('begin immediate')
  try {
    const schema = schemaToKeep(client)
    if (schema === undefined) return
    removeCopy(unfinished) // what a killed one left
    copyDatabase(file, unfinished)
    renameSync(unfinished, `${file}-schema-${schema}`)
    sync(dirname(file))
  } catch (cause) {
    removeCopy(unfinished)
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`it was not upgraded, because it could not be copied first: ${reason}`, { cause })
  } finally {
    client.exec('rollback')
  }
}
