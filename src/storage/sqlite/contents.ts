import type Database from 'better-sqlite3'
import { deleteOrphans, type StoreContents } from '../store.ts'

/** Every row of every table of ours. */
export function readContents(client: Database.Database): StoreContents {
  return Object.fromEntries(
    tablesOf(client).map((table) => [table, client.prepare(`select * from "${table}"`).all() as Row[]]),
  )
}

/** Empties every table of ours and fills those there are rows for; the caller has begun a transaction. */
export function writeContents(client: Database.Database, contents: StoreContents): void {
  for (const table of tablesOf(client)) {
    client.prepare(`delete from "${table}"`).run()
    const rows = contents[table] ?? []
    const columns = Object.keys(rows[0] ?? {})
    if (columns.length === 0) continue
    const names = columns.map((column) => `"${column}"`).join(', ')
    const insert = client.prepare(
      `insert into "${table}" (${names}) values (${columns.map(() => '?').join(', ')})`,
    )
    for (const row of rows) insert.run(columns.map((column) => bound(row[column])))
  }
  client.prepare(deleteOrphans).run()
}

// `as`: better-sqlite3 makes one of every row.
type Row = StoreContents[string][number]

function tablesOf(client: Database.Database): readonly string[] {
  const tables = client
    .prepare("select name from sqlite_schema where type = 'table' order by name")
    .pluck()
    .all()
  return tables.map(String).filter((table) => !/^(sqlite_|__drizzle)/.test(table))
}

/** The contents of a PostgreSQL store have booleans, which SQLite has not. */
function bound(value: unknown): unknown {
  return typeof value === 'boolean' ? Number(value) : value
}
