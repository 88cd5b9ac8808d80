import { type Query, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import pg from 'pg'
import type { QueuedWrite, ReadStep, Script } from '../script.ts'
import { binder, buildReads, buildWrites, type Dialect, type Read } from '../statements.ts'
import * as tables from './schema.ts'

/** A statement that a connection prepares at its first use, by its name. */
export interface Named {
  readonly name: string
  readonly text: string
  readonly bind: (values: object) => unknown[]
}

/** `as`: its builder takes the same calls as SQLite's, and so are its statements typed. */
export const dialect = {
  tables,
  builder: drizzle.mock(),
  greatest: 'greatest',
  jsonOf: (column) => sql`cast(${column} as jsonb)`,
  merged: (column, members) => sql`cast(cast(${column} as jsonb) || cast(${members} as jsonb) as text)`,
  // A merge writes it in another order.
  sameJson: (column, text) => sql`cast(${column} as jsonb) = cast(${text} as jsonb)`,
  forShare: 'for share',
  noLimit: '',
  textsIn: (array) => sql`select json_array_elements_text(cast(${array} as json))`,
  readBytes: (column) => column,
  textAt: (json, object, member) =>
    sql`cast(${json} as json) -> ${sql.raw(`'${object}'`)} ->> ${sql.raw(`'${member}'`)}`,
  grantKey: (id) => sql`decode(translate(${id}, '-_', '+/'), 'base64')`,
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

/** Every statement, by its name. */
export interface Statements {
  /** Reads outside of a transaction. */
  readonly finding: ReadonlyMap<string, Named>
  /** Reads in a transaction that decides about them: the rows stay locked until it ends. */
  readonly transacting: ReadonlyMap<string, Named>
  readonly writing: ReadonlyMap<string, Named>
  /** Writes that fail unless they change a row. */
  readonly writingExactly: ReadonlyMap<string, Named>
}

/** Those of a database on one machine. */
export const plainStatements = buildStatements(dialect)

/** Runs a script that reads, one step after the other. */
export async function run<T>(
  client: pg.ClientBase,
  script: Script<T>,
  statements: Statements = plainStatements,
): Promise<T> {
  const reading = { ...statements, reading: statements.finding }
  let step = script.next()
  while (!step.done) step = script.next(await perform(client, step.value, reading))
  return step.value
}

/** Returns the rows of a statement that reads, and how many rows a statement that writes changed. */
export async function perform(
  client: pg.ClientBase,
  step: ReadStep,
  statements: Pick<Statements, 'writing'> & { readonly reading: Statements['finding'] },
): Promise<unknown> {
  if ('together' in step) return Promise.all(step.together.map((one) => perform(client, one, statements)))
  if ('text' in step) return (await client.query(step.text, [...step.values])).rows
  const { statement, values } = step
  const read = statements.reading.get(statement)
  // No text in PostgreSQL contains U+0000; asking for one is an error there, and nothing is found here.
  if (read !== undefined && Object.values(values).some(containsNull)) return []
  const { rows, rowCount } = await client.query(bound(read ?? statements.writing.get(statement), step))
  return read === undefined ? rowCount : rows
}

/** Whether a step changes nothing. Of a text this is not known. */
export function isRead(step: ReadStep): boolean {
  return 'together' in step || ('statement' in step && plainStatements.transacting.has(step.statement))
}

/** Sends a write. If it has to be exact and does not change one row, the database itself fails the transaction. */
export async function send(
  client: pg.ClientBase,
  write: QueuedWrite,
  { writing, writingExactly }: Statements,
): Promise<void> {
  const { statement, exact } = write
  try {
    await client.query(bound((exact === undefined ? writing : writingExactly).get(statement), write))
  } catch (fault) {
    throw exact !== undefined && codeOf(fault) === divisionByZero ? exact(statement) : fault
  }
}

function bound(
  named: Named | undefined,
  { statement, values }: Pick<QueuedWrite, 'values'> & { statement: string },
) {
  if (named === undefined) throw new TypeError(`no statement ${statement}`)
  return { name: named.name, text: named.text, values: named.bind(values) }
}

function containsNull(value: unknown): boolean {
  return typeof value === 'string' && value.includes('\0')
}

/** The SQLSTATE by which an exact statement fails. */
const divisionByZero = '22012'

/** Returns the SQLSTATE of a fault. */
export function codeOf(fault: unknown): string {
  return fault instanceof Error && 'code' in fault ? String(fault.code) : ''
}

/**
 * Builds every statement.
 * @param unlocked The tables whose rows no statement locks.
 */
export function buildStatements(ofDialect: Dialect, unlocked: readonly SQLiteTable[] = []): Statements {
  const reads = Object.entries<Read>(buildReads(ofDialect))
  const writes = Object.entries(buildWrites(ofDialect)).map(([name, query]) => [name, query.toSQL()] as const)
  return {
    finding: new Map(reads.map(([name, { query }]) => [name, named(`find_${name}`, query.toSQL())])),
    transacting: new Map(
      reads.map(([name, read]) => [name, named(`transact_${name}`, lock(read, unlocked).toSQL())]),
    ),
    writing: new Map(writes.map(([name, query]) => [name, named(name, query)])),
    writingExactly: new Map(writes.map(([name, query]) => [name, named(`${name}_exactly`, exactly(query))])),
  }
}

/** Locks the rows that a query finds. */
function lock({ query, lock, ...read }: Read, unlocked: readonly SQLiteTable[]): Read['query'] {
  const locks = read.locks.filter((table) => !unlocked.includes(table))
  if (locks.length > 0) {
    // `as`: PostgreSQL's builder has it, which this query was built by.
    const lockable = query as Read['query'] & { for(strength: string, config: { of: unknown }): unknown }
    lockable.for(lock, { of: locks })
  }
  return query
}

/** Makes a statement fail unless it changes a row: the commit that is sent with it then rolls back. */
function exactly(query: Query): Query {
  return { ...query, sql: `with changed as (${query.sql} returning 1) select 1 / count(*) from changed` }
}

function named(name: string, query: Query): Named {
  return { name, text: query.sql, bind: binder(query) }
}
