import type Database from 'better-sqlite3'
import { type Query, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { Script, Step } from '../script.ts'
import {
  binder,
  buildReads,
  buildWrites,
  type Dialect,
  type Fields,
  isBytes,
  type Read,
} from '../statements.ts'
import * as tables from './schema.ts'

/** Runs a script at once. */
export type Run = <T>(script: Script<T>) => T

export const dialect: Dialect = {
  tables,
  builder: drizzle.mock(),
  greatest: 'max',
  noLimit: 'limit -1',
  // For each blob the driver allocates memory, which takes as long as twenty numbers; a text takes a sixth of it.
  readBytes: (column) => sql`case when ${column} is not null then hex(${column}) end`,
  place: () => '?',
}

/** Prepares every statement for a connection: building one takes twenty times as long as running it. */
export function prepare(client: Database.Database): Run {
  const statements = new Map<string, (values: object, isOne?: true) => unknown>()
  for (const [name, read] of Object.entries(buildReads(dialect))) {
    statements.set(name, prepareRead(client, read))
  }
  for (const [name, query] of Object.entries(buildWrites(dialect))) {
    const built = query.toSQL()
    const [statement, bind] = [client.prepare(preparedOnce(built)), binder(built, bound)]
    statements.set(name, (values) => statement.run(bind(values)).changes)
  }
  const perform = (step: Step): unknown => {
    if ('statement' in step) return statements.get(step.statement)?.(step.values, step.isOne)
    const statement = client.prepare(step.text)
    const values = step.values.map(bound)
    return statement.reader ? statement.all(values) : statement.run(values).changes
  }
  return (script) => {
    let step = script.next()
    while (!step.done) step = script.next(perform(step.value))
    return step.value
  }
}

function prepareRead(
  client: Database.Database,
  { query, fields }: Read,
): (values: object, isOne?: true) => readonly unknown[] {
  const built = query.toSQL()
  const [statement, bind] = [client.prepare(preparedOnce(built)), binder(built, bound)]
  const conversions = conversionsOf(fields)
  type Row = Record<string, unknown> // the driver makes one of every row
  const converted = (row: Row) => {
    for (const convert of conversions) convert(row)
    return row
  }
  return (values, isOne) => {
    const binding = bind(values)
    if (!isOne) return (statement.all(binding) as Row[]).map(converted)
    // Most reads are of one row, and the driver takes a tenth less to get it than to list it.
    const row = statement.get(binding) as Row | undefined
    return row === undefined ? [] : [converted(row)]
  }
}

/**
 * Returns the text of a query that SQLite prepares once. It compares a bare `?` with the conditions of partial indexes,
 * and then prepares the statement again for each value: 20 µs and more, where running it takes 2.
 */
function preparedOnce({ sql }: Query): string {
  return sql.replaceAll('?', '+?')
}

/** Returns what turns the values of a row into those of a record. */
function conversionsOf(fields: Fields): readonly ((row: Record<string, unknown>) => void)[] {
  return Object.entries(fields).flatMap(([member, field]) => {
    const convert = isBytes(field) ? fromHex : isBoolean(field) ? Boolean : undefined
    if (convert === undefined) return []
    return (row: Record<string, unknown>) => {
      if (row[member] !== null) row[member] = convert(row[member])
    }
  })
}

function fromHex(hex: unknown): Buffer {
  return Buffer.from(String(hex), 'hex')
}

function isBoolean(field: Fields[string]): boolean {
  return 'dataType' in field && field.dataType === 'boolean'
}

/** SQLite has no booleans; an absent member is NULL. */
function bound(value: unknown): unknown {
  if (value === undefined) return null
  return typeof value === 'boolean' ? Number(value) : value
}
