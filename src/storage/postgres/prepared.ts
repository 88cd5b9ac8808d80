import { type Query, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import type { Script, Step } from '../script.ts'
import { binder, buildReads, buildWrites, type Dialect, type Read } from '../statements.ts'
import * as tables from './schema.ts'

/** A statement that a connection prepares at its first use, by its name. */
interface Named {
  readonly name: string
  readonly text: string
  readonly bind: (values: object) => unknown[]
}

/** `as`: its builder takes the same calls as SQLite's, and so are its statements typed. */
export const dialect = {
  tables,
  builder: drizzle.mock(),
  greatest: 'greatest',
  noLimit: '',
  textsIn: (array) => sql`select json_array_elements_text(cast(${array} as json))`,
  readBytes: (column) => column,
  place: (number) => `$${number}`,
  lock: (table) => `lock table "${table}" in exclusive mode`,
  // A table without a sequence has no number to set, and nothing is done.
  renumber: (table) =>
    `select setval(pg_get_serial_sequence('"${table}"', 'seq'), greatest((select max(seq) from "${table}"), 1))`,
} as Omit<Dialect, 'builder'> & { builder: unknown } as Dialect

/** Reads an int8 as a number: seconds and counts are far below 2^53. For the options of a connection. */
export const numbers = {
  types: {
    getTypeParser: (oid: number, format?: 'text' | 'binary') =>
      oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format),
  },
} as pg.ClientConfig // its types leave the format of a parser open

const [finding, transacting, writing] = buildAll()

/**
 * Runs a script, one step after the other.
 * @param purpose In a transaction that decides about what it reads, the rows stay locked until it ends.
 */
export async function run<T>(
  client: pg.ClientBase,
  script: Script<T>,
  purpose: 'find' | 'transact',
): Promise<T> {
  const reading = purpose === 'find' ? finding : transacting
  let step = script.next()
  while (!step.done) step = script.next(await perform(client, step.value, reading))
  return step.value
}

/** Returns the rows of a statement that reads, and how many rows a statement that writes changed. */
async function perform(
  client: pg.ClientBase,
  step: Step,
  reading: ReadonlyMap<string, Named>,
): Promise<unknown> {
  if ('text' in step) return (await client.query(step.text, [...step.values])).rows
  const { statement, values } = step
  const read = reading.get(statement)
  // No text in PostgreSQL contains U+0000; asking for one is an error there, and nothing is found here.
  if (read !== undefined && Object.values(values).some(containsNull)) return []
  const { bind, ...named } = read ?? writing.get(statement) ?? unknownStatement(statement)
  const { rows, rowCount } = await client.query({ ...named, values: bind(values) })
  return read === undefined ? rowCount : rows
}

function containsNull(value: unknown): boolean {
  return typeof value === 'string' && value.includes('\0')
}

function unknownStatement(name: string): never {
  throw new TypeError(`no statement ${name}`)
}

function buildAll() {
  const reads = Object.entries<Read>(buildReads(dialect))
  return [
    new Map(reads.map(([name, { query }]) => [name, named(`find_${name}`, query.toSQL())])),
    new Map(reads.map(([name, read]) => [name, named(`transact_${name}`, lock(read).toSQL())])),
    new Map(Object.entries(buildWrites(dialect)).map(([name, query]) => [name, named(name, query.toSQL())])),
  ] as const
}

/** Locks the rows that a query finds. */
function lock({ query, locks, lock }: Read): Read['query'] {
  if (locks.length > 0) {
    // `as`: PostgreSQL's builder has it, which this query was built by.
    const lockable = query as Read['query'] & { for(strength: string, config: { of: unknown }): unknown }
    lockable.for(lock, { of: locks })
  }
  return query
}

function named(name: string, query: Query): Named {
  return { name, text: query.sql, bind: binder(query) }
}
