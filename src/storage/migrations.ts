import { createHash } from 'node:crypto'
import type { MigrationMeta } from 'drizzle-orm/migrator'
import { readTextAsset } from '../system/assets.ts'
import type { StoreFacts } from './store.ts'

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

/** A migration that a database had: when it was made, which is its name to drizzle, and its hash with a mark. */
export interface AppliedMigration {
  readonly at: number
  readonly hash: string
}

/** What a copy of a store writes next to its migrations: one that has not ended, or that writes go to the other one. */
export type CopyMark = Extract<StoreFacts['schema'], 'unfinished' | 'moved'>
/** Later than any migration: a version that does not know the mark takes the store for a newer one. */
export const markedAt = 9_000_000_000_000_000

/** Begins a migration that only adds what the version before can do without: both serve with these tables. */
const compatibleComment = '-- compatible'
/** Ends the hash of one, so that a version that does not know the migration can read it. */
const compatibleMark = ' compatible'

/**
 * Applies the migrations of this build that a database has not had. Drizzle's own function reads them from a folder,
 * which an executable does not have: this reads them as assets, and nothing is written to the file system.
 */
export async function migrateAll<Session>(dialect: Dialect, database: object): Promise<void> {
  // `as`: the declarations of drizzle hide both members, and its function `migrate` uses them in the same way.
  const { dialect: statements, session } = database as Migrated<Session>
  const migrations = readJournal(dialect).map(({ tag, when, breakpoints }) => {
    const text = readMigration(dialect, tag)
    const hash = createHash('sha256').update(text).digest('hex')
    const mark = text.startsWith(compatibleComment) ? compatibleMark : ''
    const parts = text.split('--> statement-breakpoint')
    return { sql: parts, bps: breakpoints, folderMillis: when, hash: hash + mark }
  })
  await statements.migrate(migrations, session, {})
}

function readJournal(dialect: Dialect): Journal['entries'] {
  // `as`: drizzle-kit writes it, and it is part of this build.
  return (JSON.parse(readTextAsset(`drizzle/${dialect}/meta/_journal.json`)) as Journal).entries
}

function readMigration(dialect: Dialect, tag: string): string {
  return readTextAsset(`drizzle/${dialect}/${tag}.sql`)
}

/**
 * Compares the tables of a database, by the migrations it had, with those of this build. `ahead`: a newer version added
 * to them, and this one serves with them.
 */
export function schemaState(
  dialect: Dialect,
  applied: readonly AppliedMigration[],
): Exclude<StoreFacts['schema'], 'missing' | 'foreign'> {
  const known = readJournal(dialect).map(({ when }) => when)
  const isComplete = known.every((instant) => applied.some(({ at }) => at === instant))
  const marked = applied.find(({ at }) => at === markedAt)
  if (marked !== undefined) return marked.hash as CopyMark // that `mark` of copy.ts wrote
  const added = applied.filter(({ at }) => !known.includes(at))
  if (added.length === 0) return isComplete ? 'current' : 'older'
  return isComplete && added.every(({ hash }) => hash.endsWith(compatibleMark)) ? 'ahead' : 'newer'
}

/**
 * Returns how many migrations a database had, if this build has one that changes what the version before needs: then
 * going back takes a copy of the database.
 */
export function schemaToLeave(dialect: Dialect, applied: readonly AppliedMigration[]): number | undefined {
  const missing = readJournal(dialect).filter(({ when }) => !applied.some(({ at }) => at === when))
  const isOneWay = missing.some(({ tag }) => !readMigration(dialect, tag).startsWith(compatibleComment))
  return isOneWay ? applied.length : undefined
}

/** Whether this build serves with these tables as they are. */
export function isServed(schema: StoreFacts['schema']): boolean {
  return schema === 'current' || schema === 'ahead'
}

/** The instant at which the newest migration was made, in seconds: no clock was before it when this version ran first. */
export function newestMigration(): number {
  return Math.floor(Math.max(...readJournal('sqlite').map(({ when }) => when)) / 1000)
}

/** Whether what is in it can be read: no server starts with one that was moved. */
export function isRead(schema: StoreFacts['schema']): boolean {
  return isServed(schema) || schema === 'moved'
}

/** What the operator reads when a database is not for this build, or for no server. It is left as it is. */
const reasons: Readonly<Partial<Record<StoreFacts['schema'], string>>> = {
  foreign: 'it belongs to another program',
  newer: 'the database was made by a newer version of Lychgate; it was left as it is',
  unfinished: 'a copy into it has not ended; run lychgate store copy again',
  moved:
    'its contents were moved: start with the store that has them, or take the move back with lychgate store resume',
}

/** Returns why this build opens no database with these tables. */
export function reasonAgainst(schema: StoreFacts['schema']): string | undefined {
  return reasons[schema]
}

/** @throws {Error} unless this build opens or migrates a database with these tables. */
export function assertOurs(schema: StoreFacts['schema']): void {
  const reason = reasons[schema]
  if (reason !== undefined) throw new Error(reason)
}
