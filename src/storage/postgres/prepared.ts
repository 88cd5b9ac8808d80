import { is, Placeholder, type Query } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import type { Reading, ReadStep } from '../reads.ts'
import {
  buildReads,
  buildWrites,
  type Dialect,
  type Read,
  type ReadName,
  type WriteName,
} from '../statements.ts'
import * as tables from './schema.ts'

type Values = Readonly<Record<string, unknown>>

/** A statement that a connection prepares at its first use, by its name. */
interface Named {
  readonly name: string
  readonly text: string
  readonly bind: (values: Values) => unknown[]
}

/** `as`: its builder takes the same calls as SQLite's, and so are its statements typed. */
const dialect = {
  tables,
  builder: drizzle.mock(),
  greatest: 'greatest',
  noLimit: '',
  readBytes: (column) => column,
} as Omit<Dialect, 'builder'> & { builder: unknown } as Dialect

/** Reads an int8 as a number: seconds and counts are far below 2^53. For the options of a connection. */
export const numbers = {
  types: {
    getTypeParser: (oid: number, format?: 'text' | 'binary') =>
      oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format),
  },
} as pg.ClientConfig // its types leave the format of a parser open

const [reads, locking, writes] = buildAll()

/** Runs a read. In a transaction that decides about what it reads, the rows stay locked until it ends. */
export async function runRead(
  client: pg.ClientBase,
  { read, values }: ReadStep,
  purpose: 'find' | 'transact',
): Promise<readonly unknown[]> {
  // No text in PostgreSQL contains U+0000; asking for one is an error there, and nothing is found here.
  if (Object.values(values).some((value) => typeof value === 'string' && value.includes('\0'))) return []
  const { name, text, bind } = (purpose === 'find' ? reads : locking)[read]
  return (await client.query({ name, text, values: bind(values) })).rows
}

/** Runs a read, one statement after the other. */
export async function run<T>(
  client: pg.ClientBase,
  reading: Reading<T>,
  purpose: 'find' | 'transact',
): Promise<T> {
  let step = reading.next([])
  while (!step.done) step = reading.next(await runRead(client, step.value, purpose))
  return step.value
}

/** Runs a write; returns how many rows it changed. */
export async function runWrite(client: pg.ClientBase, statement: WriteName, values: Values): Promise<number> {
  const { name, text, bind } = writes[statement]
  return (await client.query({ name, text, values: bind(values) })).rowCount ?? 0
}

function buildAll() {
  const built = Object.entries<Read>(buildReads(dialect))
  const plain = built.map(([name, { query }]) => [name, named(`find_${name}`, query.toSQL())] as const)
  const locked = built.map(([name, read]) => [name, named(`transact_${name}`, lock(read).toSQL())] as const)
  const changes = Object.entries(buildWrites(dialect)).map(
    ([name, query]) => [name, named(name, query.toSQL())] as const,
  )
  return [
    Object.fromEntries(plain) as Record<ReadName, Named>,
    Object.fromEntries(locked) as Record<ReadName, Named>,
    Object.fromEntries(changes) as Record<WriteName, Named>,
  ] as const
}

/** The query with a lock on the rows it finds. */
function lock({ query, locks, lock }: Read): Read['query'] {
  if (locks.length > 0) {
    // `as`: PostgreSQL's builder has it, which this query was built by.
    const lockable = query as Read['query'] & { for(strength: string, config: { of: unknown }): unknown }
    lockable.for(lock, { of: locks })
  }
  return query
}

function named(name: string, { sql: text, params }: Query): Named {
  return {
    name,
    text,
    bind: (values) => params.map((param) => (is(param, Placeholder) ? values[param.name] : param)),
  }
}
