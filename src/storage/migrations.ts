import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assetFolder, readTextAsset } from '../system/assets.ts'

type Dialect = 'sqlite' | 'postgres'

/** The members we read of the journal of a folder of migrations. */
interface Journal {
  readonly entries: readonly { readonly tag: string; readonly when: number }[]
}

/**
 * Calls `migrate` with a folder of the migrations of this build. Drizzle's migrators read one, and the executable has
 * none: there the files are written to a temporary folder.
 */
export async function withMigrations(
  dialect: Dialect,
  migrate: (folder: { readonly migrationsFolder: string }) => void | Promise<void>,
): Promise<void> {
  const folder = assetFolder(`drizzle/${dialect}`)
  if (folder !== undefined) return migrate({ migrationsFolder: folder })
  const migrationsFolder = mkdtempSync(join(tmpdir(), 'lychgate-migrations-'))
  try {
    mkdirSync(join(migrationsFolder, 'meta'))
    const files = readJournal(dialect).map(({ tag }) => `${tag}.sql`)
    for (const file of ['meta/_journal.json', ...files])
      writeFileSync(join(migrationsFolder, file), readTextAsset(`drizzle/${dialect}/${file}`))
    await migrate({ migrationsFolder })
  } finally {
    rmSync(migrationsFolder, { recursive: true, force: true })
  }
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
