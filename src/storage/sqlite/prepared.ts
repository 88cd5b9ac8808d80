import type Database from 'better-sqlite3'
import { is, Placeholder, type Query, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { Reading, ReadStep } from '../reads.ts'
import {
  buildReads,
  buildWrites,
  type Dialect,
  type Fields,
  isBytes,
  type Read,
  type ReadName,
  type WriteName,
} from '../statements.ts'
import * as tables from './schema.ts'

/** Runs the statements of one connection. */
export interface Prepared {
  /** The rows of a read. */
  read(step: ReadStep): readonly unknown[]
  /** How many rows a write changed. */
  write(statement: WriteName, values: Values): number
}

type Values = Readonly<Record<string, unknown>>

const dialect: Dialect = {
  tables,
  builder: drizzle.mock(),
  greatest: 'max',
  noLimit: 'limit -1',
  // For each blob the driver allocates memory, which takes as long as twenty numbers; a text takes a sixth of it.
  readBytes: (column) => sql`case when ${column} is not null then hex(${column}) end`,
}

/** Prepares every statement: building one takes twenty times as long as running it. */
export function prepare(client: Database.Database): Prepared {
  const reads = entries(buildReads(dialect)).map(([name, read]) => [name, prepareRead(client, read)] as const)
  const writes = entries(buildWrites(dialect)).map(([name, query]) => {
    const { statement, bind } = compile(client, query.toSQL())
    return [name, (values: Values) => statement.run(bind(values)).changes] as const
  })
  const readers = Object.fromEntries(reads) as Record<ReadName, ReturnType<typeof prepareRead>>
  const writers = Object.fromEntries(writes) as Record<WriteName, (values: Values) => number>
  return {
    read: ({ read, values }) => readers[read](values),
    write: (statement, values) => writers[statement](values),
  }
}

/** Runs a read at once. */
export function run<T>(prepared: Prepared, reading: Reading<T>): T {
  let step = reading.next([])
  while (!step.done) step = reading.next(prepared.read(step.value))
  return step.value
}

function prepareRead(
  client: Database.Database,
  { query, fields }: Read,
): (values: Values) => readonly unknown[] {
  const { statement, bind } = compile(client, query.toSQL())
  const conversions = conversionsOf(fields)
  return (values) => {
    const rows = statement.all(bind(values)) as Record<string, unknown>[] // the driver makes one of every row
    for (const row of rows) for (const convert of conversions) convert(row)
    return rows
  }
}

/** What makes the values of records of those that are read. */
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

function compile(client: Database.Database, { sql: text, params }: Query) {
  const sources = params.map((param) => {
    if (!is(param, Placeholder)) return () => param
    const { name } = param
    return (values: Values) => bound(values[name])
  })
  return {
    statement: client.prepare<unknown[]>(text),
    bind: (values: Values) => sources.map((source) => source(values)),
  }
}

/** SQLite has no booleans; an absent member is NULL. */
function bound(value: unknown): unknown {
  if (value === undefined) return null
  return typeof value === 'boolean' ? Number(value) : value
}

function entries<T extends object>(table: T): [keyof T & string, T[keyof T]][] {
  return Object.entries(table) as [keyof T & string, T[keyof T]][] // its own members, by their names
}
