import { hash } from 'node:crypto'
import type { MigrationMeta } from 'drizzle-orm/migrator'
import { readTextAsset } from '../assets.ts'

type Dialect = 'sqlite' | 'postgres'

/** What drizzle-kit keeps of a folder of migrations, as far as we read it. */
interface Journal {
  readonly entries: readonly { readonly tag: string; readonly when: number; readonly breakpoints: boolean }[]
}

/** The migrations of this build as drizzle wants them. Its own reader needs a folder, and one file has none. */
export function readMigrations(dialect: Dialect): MigrationMeta[] {
  // `as`: drizzle-kit writes it, and it is part of this build.
  const journal = JSON.parse(readTextAsset(`drizzle/${dialect}/meta/_journal.json`)) as Journal
  return journal.entries.map(({ tag, when, breakpoints }) => {
    const text = readTextAsset(`drizzle/${dialect}/${tag}.sql`)
    return {
      sql: text.split('--> statement-breakpoint'),
      bps: breakpoints,
      folderMillis: when,
      hash: hash('sha256', text),
    }
  })
}

/** The instants by which drizzle names the migrations of this build. */
export function knownMigrations(dialect: Dialect): ReadonlySet<number> {
  return new Set(readMigrations(dialect).map(({ folderMillis }) => folderMillis))
}

/** The tables of a database by the migrations it had, against those of this build. */
export function schemaState(dialect: Dialect, applied: readonly number[]): 'older' | 'current' | 'newer' {
  const known = knownMigrations(dialect)
  if (!applied.every((instant) => known.has(instant))) return 'newer'
  return [...known].every((instant) => applied.includes(instant)) ? 'current' : 'older'
}

/** @throws {Error} when the database has a migration this build does not know: a newer version made it. */
export function assertNotNewer(dialect: Dialect, applied: readonly number[]): void {
  if (schemaState(dialect, applied) !== 'newer') return
  throw new Error('the database was made by a newer version of Lychgate; it was left as it is')
}
