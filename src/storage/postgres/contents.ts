import type pg from 'pg'
import { deleteOrphans, type StoreContents } from '../store.ts'

/** Every row of every table of ours; the caller has begun a transaction that sees one instant. */
export async function readContents(client: pg.PoolClient): Promise<StoreContents> {
  const contents: Record<string, StoreContents[string]> = {}
  for (const table of await tablesOf(client)) {
    contents[table] = (await client.query(`select * from "${table}"`)).rows
  }
  return contents
}

/** Empties every table of ours and fills those there are rows for; the caller has begun a transaction. */
export async function writeContents(client: pg.PoolClient, contents: StoreContents): Promise<void> {
  for (const table of await tablesOf(client)) {
    // No other writes in between: a row inserted after the deletion would stay.
    await client.query(`lock table "${table}" in exclusive mode`)
    await client.query(`delete from "${table}"`)
    const rows = contents[table] ?? []
    const columns = Object.keys(rows[0] ?? {})
    const names = columns.map((column) => `"${column}"`).join(', ')
    const places = columns.map((_, index) => `$${index + 1}`).join(', ')
    for (const row of rows) {
      const values = columns.map((column) => row[column])
      await client.query(`insert into "${table}" (${names}) values (${places})`, values)
    }
    // Rows that number themselves go on behind the last; where they do not, there is no sequence, and nothing is done.
    if (columns.includes('seq')) {
      await client.query(
        `select setval(pg_get_serial_sequence($1, 'seq'), greatest((select max(seq) from "${table}"), 1))`,
        [table],
      )
    }
  }
  await client.query(deleteOrphans)
}

async function tablesOf(client: pg.PoolClient): Promise<readonly string[]> {
  const found = await client.query(
    'select tablename from pg_tables where schemaname = current_schema() order by tablename',
  )
  return found.rows
    .map(({ tablename }) => String(tablename))
    .filter((table) => !table.startsWith('__drizzle'))
}
