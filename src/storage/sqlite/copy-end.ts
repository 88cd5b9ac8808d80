import Database from 'better-sqlite3'
import type { CopyEnd } from '../copy.ts'

/** How long a statement waits for a server that writes. */
const busyMilliseconds = 5000
const operations = ['insert', 'update', 'delete']

/** A SQLite file as one end of a copy; a server may have it open. */
export function openSqliteEnd(file: string): CopyEnd {
  const [reader, writer] = [0, 1].map(
    () => new Database(file, { fileMustExist: true, timeout: busyMilliseconds }),
  )
  if (reader === undefined || writer === undefined) throw new TypeError('no connection')
  reader.pragma('query_only = on')
  writer.pragma('synchronous = FULL')
  return {
    journal: '__drizzle_migrations',
    place: () => '?',
    inBytes: (column) => column,
    async *rows(text) {
      yield* reader.prepare<[], unknown[]>(text).raw().iterate()
    },
    run: async (text, values) => {
      if (values === undefined) writer.exec(text)
      else writer.prepare(text).run(values)
    },
    close: async () => {
      reader.close()
      writer.close()
    },
    // Only a table that gives no number twice has a row there.
    lastNumber: (table) =>
      `select max(seq) from (select seq from "${table}" union all select seq from sqlite_sequence where name = '${table}')`,
    numberFrom: (table, last) => `update sqlite_sequence set seq = ${last} where name = '${table}'`,
    pause: (table) => inTransaction(operations.map((operation) => create(table, operation))),
    resume: (table) => inTransaction(operations.map((operation) => drop(table, operation))),
  }
}

function create(table: string, operation: string): string {
  return `create trigger if not exists "${table}_moved_${operation}" before ${operation} on "${table}"
    begin select raise(abort, 'the store was moved'); end`
}

function drop(table: string, operation: string): string {
  return `drop trigger if exists "${table}_moved_${operation}"`
}

function inTransaction(statements: readonly string[]): string {
  return `begin immediate; ${statements.join('; ')}; commit`
}
