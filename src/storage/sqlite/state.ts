import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { type AppliedMigration, schemaState, schemaToLeave } from '../migrations.ts'
import type { StoreFacts } from '../store.ts'

/** The last connection to close removes the journal: one that is left tells of a crash (or of a running server). */
export function wasNotClosed(file: string): boolean {
  // Another process may remove it at this moment.
  const journal = statSync(`${file}-wal`, { throwIfNoEntry: false })
  return journal !== undefined && journal.size > 0
}

/** @throws {Error} when the file is damaged. */
export function assertSound(client: Database.Database): void {
  const verdict = client.pragma('quick_check(1)', { simple: true })
  if (verdict !== 'ok') throw Object.assign(new Error('it is damaged'), { code: 'SQLITE_CORRUPT' })
}

/** Compares the tables of a file with those of this build. */
export function schemaOf(client: Database.Database): StoreFacts['schema'] {
  const tables = client.prepare("select name from sqlite_schema where type = 'table'").pluck().all()
  if (tables.length === 0) return 'missing'
  if (!tables.includes('__drizzle_migrations')) return 'foreign'
  return schemaState('sqlite', appliedMigrations(client))
}

/** Returns the number of an older schema that the version before cannot serve without. */
export function schemaToKeep(client: Database.Database): number | undefined {
  return schemaOf(client) === 'older' ? schemaToLeave('sqlite', appliedMigrations(client)) : undefined
}

/** By the instants at which the migrations were made, which drizzle stores as their names. */
function appliedMigrations(client: Database.Database): readonly AppliedMigration[] {
  const rows = client.prepare('select created_at as at, hash from __drizzle_migrations').all()
  return rows as AppliedMigration[] // columns of these names
}
