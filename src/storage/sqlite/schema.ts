import { defineTables, sqliteColumns } from '../tables.ts'

/*
 * drizzle-kit reads the tables here. The SQL it generates gets `STRICT` (and `WITHOUT ROWID` where the primary key is
 * the only way in) added by hand, which drizzle-kit cannot express; a test asks the database for it.
 */
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
} = defineTables(sqliteColumns)
