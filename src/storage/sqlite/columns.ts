import { blob, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** The parts that tables.ts builds tables of, in SQLite's dialect. */
export const columns = {
  table: sqliteTable,
  text,
  integer: (name: string) => integer(name),
  bool: (name: string) => integer(name, { mode: 'boolean' }),
  bytes: (name: string) => blob(name, { mode: 'buffer' }),
  /** Numbers rows in the order of writing. */
  seq: () => integer('seq').primaryKey(),
  /** The same, and no number is given again. */
  lastingSeq: () => integer('seq').primaryKey({ autoIncrement: true }),
  index,
  primaryKey,
}

export type Columns = typeof columns
