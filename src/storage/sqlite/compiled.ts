import type Database from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3/driver'
import { Column, type GetColumnData } from 'drizzle-orm/column'
import { is } from 'drizzle-orm/entity'
import { Param, Placeholder, type Query, type SQL, sql } from 'drizzle-orm/sql'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'

/*
 * Statements that Drizzle writes and the driver runs. At each run Drizzle asks every parameter and every column again
 * what it is, which takes as long as the run itself; here that is decided once.
 */

/** Drizzle over the connection it was made for. */
export type Connected = BetterSQLite3Database & { readonly $client: Database.Database }

type Values = Readonly<Record<string, unknown>>

/** A prepared statement that finds one row. */
export interface Finder<Row> {
  get(values: Values): Row | undefined
}

/** A prepared statement that changes rows. */
export interface Change {
  run(values: Values): Database.RunResult
}

/** What is selected, by the member it becomes. */
type Fields = Readonly<Record<string, SQLiteColumn | SQL>>

type RowOf<F extends Fields> = {
  [M in keyof F]: F[M] extends SQLiteColumn ? GetColumnData<F[M]> : F[M] extends SQL<infer T> ? T : never
}

/** Finds a row of a table. */
export function compileFinder<F extends Fields>(
  db: Connected,
  fields: F,
  table: SQLiteTable,
  where: SQL | undefined,
): Finder<RowOf<F>> {
  const named = Object.entries(fields).map(([member, field]) => [member, asRead(field).as(member)] as const)
  const query = db.select(Object.fromEntries(named)).from(table).where(where)
  const { statement, bind } = compile<Record<string, unknown>>(db, query.toSQL())
  const conversions = Object.entries(fields).flatMap(([member, field]) => {
    const convert = conversionOf(field)
    return convert === undefined ? [] : [{ member, convert }]
  })
  return {
    get: (values) => {
      const row = statement.get(...bind(values))
      if (row === undefined) return undefined
      for (const { member, convert } of conversions)
        if (row[member] !== null) row[member] = convert(row[member])
      return row as RowOf<F> // the driver names the members as they are aliased
    },
  }
}

/** For each blob the driver asks for memory of its own, which takes as long as twenty numbers; a text takes a sixth of it. */
function asRead(field: SQLiteColumn | SQL): SQL {
  return isBytes(field) ? sql`case when ${field} is not null then hex(${field}) end` : sql`${field}`
}

/** What makes a record's value of the one that is read; nothing, where they are the same. */
function conversionOf(field: SQLiteColumn | SQL): ((value: unknown) => unknown) | undefined {
  if (isBytes(field)) return (hex) => Buffer.from(String(hex), 'hex')
  return is(field, Column) && field.dataType === 'boolean'
    ? (value) => field.mapFromDriverValue(value)
    : undefined
}

function isBytes(field: SQLiteColumn | SQL): boolean {
  return is(field, Column) && field.dataType === 'buffer'
}

/** Changes rows; the values are those of the placeholders. */
export function compileChange(db: Connected, query: { toSQL(): Query }): Change {
  const { statement, bind } = compile(db, query.toSQL())
  return { run: (values) => statement.run(...bind(values)) }
}

function compile<Row>(db: Connected, { sql: text, params }: Query) {
  const sources = params.map(sourceOf)
  return {
    statement: db.$client.prepare<unknown[], Row>(text),
    bind: (values: Values) => sources.map((source) => source(values)),
  }
}

/** Where the value of a parameter comes from, in the form the driver takes. */
function sourceOf(param: unknown): (values: Values) => unknown {
  if (is(param, Placeholder)) return ({ [String(param.name)]: value }) => value
  if (is(param, Param) && is(param.value, Placeholder)) {
    const { encoder, value: placeholder } = param
    const name = String(placeholder.name)
    return (values) => encoder.mapToDriverValue(values[name])
  }
  return () => param
}
