import { fileURLToPath } from 'node:url'
import { readMigrationFiles } from 'drizzle-orm/migrator'

/** Where this build's migrations lie; `parent` is for builds that carry them elsewhere. */
export function migrationsFolder(dialect: 'sqlite' | 'postgres', parent?: string): string {
  return `${parent ?? fileURLToPath(new URL('../../drizzle', import.meta.url))}/${dialect}`
}

/** The instants by which drizzle names the migrations of this build. */
export function knownMigrations(folder: string): ReadonlySet<number> {
  return new Set(readMigrationFiles({ migrationsFolder: folder }).map((migration) => migration.folderMillis))
}

/** @throws {Error} when the database has a migration this build does not know: a newer version made it. */
export function assertNotNewer(folder: string, applied: readonly number[]): void {
  const known = knownMigrations(folder)
  if (applied.every((instant) => known.has(instant))) return
  throw new Error('the database was made by a newer version of Lychgate; it was left as it is')
}
