import { createHash } from 'node:crypto'
import type { MigrationMeta } from 'drizzle-orm/migrator'
import { readTextAsset } from '../system/assets.ts'

type Dialect = 'sqlite' | 'postgres'

/** The members we read of the journal of a folder of migrations. */
interface Journal {
  readonly entries: readonly { readonly tag: string; readonly when: number; readonly breakpoints: boolean }[]
}

/** A database of drizzle with the members that its migrators use. */
interface Migrated<Session> {
  readonly dialect: { migrate(migrations: MigrationMeta[], session: Session, config: unknown): unknown }
  readonly session: Session
}

/**
 * Applies the migrations of this build that a database has not had. Drizzle's own function reads them from a folder,
 * which an executable does not have: this reads them as assets, and nothing is written to the file system.
 */
export async function migrateAll<Session>(dialect: Dialect, database: object): Promise<void> {
  // `as`: the declarations of drizzle hide both members, and its function `migrate` uses them in the same way.
  const { dialect: statements, session } = database as Migrated<Session>
  const migrations = readJournal(dialect).map(({ tag, when, breakpoints }) => {
    const text = readTextAsset(`drizzle/${dialect}/${tag}.sql`)
    const hash = createHash('sha256').update(text).digest('hex')
    return { sql: text.split('--> statement-breakpoint'), bps: breakpoints, folderMillis: when, hash }
  })
  await statements.migrate(migrations, session, {})
}

function readJournal(dialect: Dialect): Journal['entries'] {
  // `as`: drizzle-kit writes it, and it is part of this build.
  return (JSON.parse(readTextAsset(`drizzle/${dialect}/meta/_journal.json`)) as Journal).entries
}

/** The tables of a database by the migrations it had, against those of this build. */
export function schemaState(dialect: Dialect, applied: readonly number[]): 'older' | 'current' | 'newer' {
  const known = readJournal(dialect).map(({ when }) => when)
  if (!applied.every((instant) => known.includes(instant))) return 'newer'
  return known.every((instant) => applied.includes(instant)) ? 'current' : 'older'
}

/** The instant at which the newest migration was made, in seconds: no clock was before it when this version ran first. */
export function newestMigration(): number {
  return Math.floor(Math.max(...readJournal('sqlite').map(({ when }) => when)) / 1000)
}

/** What the operator reads when a database has a migration that this build does not know. */
export const newerVersion = 'the database was made by a newer version of Lychgate; it was left as it is'
