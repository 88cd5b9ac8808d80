import { bigint, bigserial, boolean, customType, index, pgTable, primaryKey, text } from 'drizzle-orm/pg-core'
import { type Columns, defineTables } from '../tables.ts'

const seq = () => bigserial('seq', { mode: 'number' }).primaryKey()

/**
 * The parts of a table in PostgreSQL's dialect. `as`: their types are those of SQLite's parts,
 * because the rows have the same JavaScript types; test/storage/schema.test.ts compares the tables.
 */
const columns = {
  table: pgTable,
  text,
  orderedText: customType<{ data: string }>({ dataType: () => 'text collate "C"' }),
  integer: (name: string) => bigint(name, { mode: 'number' }),
  bool: (name: string) => boolean(name),
  bytes: customType<{ data: Buffer }>({ dataType: () => 'bytea' }),
  seq,
  lastingSeq: seq,
  index,
  primaryKey,
} as unknown as Columns

/* drizzle-kit reads the tables here. */
export const {
  clients,
  users,
  sessions,
  grants,
  revokedAccessTokens,
  keys,
  records,
  rejections,
  auditEvents,
} = defineTables(columns)
