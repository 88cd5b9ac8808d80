import { getTableName } from 'drizzle-orm'
import type { Script, Step } from './script.ts'
import type { Dialect } from './statements.ts'
import type { StoreContents } from './store.ts'

/** Reads every row of every table; the transaction must see one instant. */
export function* readContents({ tables }: Dialect): Script<StoreContents> {
  const contents: Record<string, StoreContents[string]> = {}
  for (const table of Object.values(tables).map(getTableName)) {
    contents[table] = (yield textOf(`select * from "${table}"`)) as StoreContents[string] // rows
  }
  return contents
}

/** Empties every table and inserts the rows there are for it. */
export function* writeContents(contents: StoreContents, dialect: Dialect): Script<void> {
  const { tables, place, lock, renumber } = dialect
  for (const table of Object.values(tables).map(getTableName)) {
    if (lock !== undefined) yield textOf(lock(table))
    yield textOf(`delete from "${table}"`)
    const rows = contents[table] ?? []
    const columns = Object.keys(rows[0] ?? {})
    const names = columns.map((column) => `"${column}"`).join(', ')
    const places = columns.map((_, index) => place(index + 1)).join(', ')
    const text = `insert into "${table}" (${names}) values (${places})`
    for (const row of rows) yield { text, values: columns.map((column) => row[column]) }
    if (renumber !== undefined && columns.includes('seq')) yield textOf(renumber(table))
  }
  // Numbers go on after the last client and the last user there are now, and must not go to those whose grants wait
  // to be swept.
  yield textOf(`delete from grants where client_seq not in (select seq from clients)
    or user_seq not in (select seq from users)`)
}

function textOf(text: string): Step {
  return { text, values: [] }
}
