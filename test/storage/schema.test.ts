import { getTableConfig as postgresTable } from 'drizzle-orm/pg-core'
import { getTableConfig as sqliteTable } from 'drizzle-orm/sqlite-core'
import t from 'tap'
import * as postgres from '../../src/storage/postgres/schema.ts'
import * as sqlite from '../../src/storage/sqlite/schema.ts'

/** What both dialects have to agree on. */
function outline(table: ReturnType<typeof sqliteTable> | ReturnType<typeof postgresTable>) {
  return {
    name: table.name,
    columns: table.columns.map(({ name, notNull, primary }) => ({ name, notNull, primary })),
    primaryKeys: table.primaryKeys.map((key) => key.columns.map(({ name }) => name)),
    indexes: table.indexes.map((index) => index.config.name),
    uniques: table.columns.map(({ isUnique, uniqueName }) => [isUnique, uniqueName]),
  }
}

t.test('both dialects have the same tables, columns, keys and indexes', async (t) => {
  const ofSqlite = Object.values(sqlite).map((table) => outline(sqliteTable(table)))
  const ofPostgres = Object.values(postgres).map((table) => outline(postgresTable(table as never)))
  t.equal(ofSqlite.length, 9)
  t.strictSame(ofPostgres, ofSqlite)
})
