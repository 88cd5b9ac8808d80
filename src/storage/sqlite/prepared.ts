import type Database from 'better-sqlite3'
import { type Query, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { grantKey } from '../rows.ts'
import type { Script, Step } from '../script.ts'
import {
  type Built,
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
  jsonOf: (column) => sql`${column}`,
  merged: (column, members) => sql`json_patch(${column}, ${members})`,
  sameJson: (column, text) => sql`${column} = ${text}`,
  forShare: '',
  noLimit: 'limit -1',
  textsIn: (array) => sql`select value from json_each(${array})`,
  // For each blob the driver allocates memory, which takes as long as twenty numbers; a text takes a sixth of it.
  readBytes: (column) => sql`case when ${column} is not null then hex(${column}) end`,
  textAt: (json, object, member) => sql`json_extract(${json}, ${sql.raw(`'$.${object}.${member}'`)})`,
  grantKey: (id) => sql`grant_key(${id})`,
  place: () => '?',
}

type Perform = (values: object, isOne?: true) => unknown

const reads = new Map<string, Read>(Object.entries(buildReads(dialect)))
const writes = new Map<string, Built>(Object.entries(buildWrites(dialect)))

/**
 * Runs scripts on a connection. It prepares a statement at its first use and keeps it: building one takes twenty times
 * as long as running it, and a process uses few of them.
 */
export function runnerOf(client: Database.Database): Run {
  client.function('grant_key', { deterministic: true }, (id) => grantKey(String(id)) ?? null)
  const prepared = new Map<string, Perform>()
  const statementOf = (name: string): Perform => {
    const known = prepared.get(name)
    if (known !== undefined) return known
    const statement = prepare(client, name)
    prepared.set(name, statement)
    return statement
  }
  const perform = (step: Step): unknown => {
    if ('isQueued' in step) {
      const changed = statementOf(step.statement)(step.values)
      if (step.exact !== undefined && changed !== 1) throw step.exact(step.statement)
      return undefined
    }
    if ('together' in step) return step.together.map(perform)
    if ('statement' in step) return statementOf(step.statement)(step.values, step.isOne)
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

function prepare(client: Database.Database, name: string): Perform {
  const read = reads.get(name)
  if (read !== undefined) return prepareRead(client, read)
  const built = writes.get(name)?.toSQL()
  if (built === undefined) throw new TypeError(`no statement ${name}`)
  const [statement, bind] = [client.prepare(preparedOnce(built)), binder(built, bound)]
  return (values) => statement.run(bind(values)).changes
}

function prepareRead(client: Database.Database, { query, fields }: Read): Perform {
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
