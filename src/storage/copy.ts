import { createHash } from 'node:crypto'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import { type CopyMark, markedAt } from './migrations.ts'
import * as schema from './sqlite/schema.ts'

/*
 * Copies all rows of a store into another one, of either database, by comparing both in the order of their keys: what
 * is there and equal stays, the rest is deleted and inserted. So a copy that was interrupted goes on where it was, and
 * a second pass takes what changed since the first one began. The target is marked: no server starts with it.
 */

/** The values of a row, in the order of its columns. Their types are the same in both databases. */
type Row = readonly unknown[]

/** One of the two stores of a copy, with two connections: one reads, the other one writes. */
export interface CopyEnd {
  /** Returns the rows of a query one after the other. */
  rows(text: string): AsyncIterable<Row>
  /** Runs a statement with values, or several without; committed when it resolves. */
  run(text: string, values?: readonly unknown[]): Promise<void>
  close(): Promise<void>
  /** The table that has the migrations. */
  readonly journal: string
  /** Returns the placeholder of the value with this number, from 1. */
  place(number: number): string
  /** Orders by the bytes of a column of texts. */
  inBytes(column: string): string
  /** Selects the last number that a table gave to a row. */
  lastNumber(table: string): string
  /** Lets a table go on after this number. */
  numberFrom(table: string, last: number): string
  /** Makes every write to a table fail as if the store were unavailable, and takes that back. */
  pause(table: string): string
  resume(table: string): string
}

interface Table {
  readonly name: string
  readonly columns: readonly { readonly name: string; readonly isText: boolean; readonly isKey: boolean }[]
  readonly isNumbered: boolean
}

/** Every table of the schema. */
const tables: readonly Table[] = Object.values(schema).map((table) => {
  const { name, columns, primaryKeys } = getTableConfig(table)
  const keys = primaryKeys.flatMap((key) => key.columns.map((column) => column.name))
  return {
    name,
    columns: columns.map((column) => ({
      name: column.name,
      isText: column.getSQLType() === 'text',
      isKey: column.primary || keys.includes(column.name),
    })),
    isNumbered: columns.some((column) => column.primary && column.name === 'seq'),
  }
})

/** What a pass found: rows and a digest of all of them, the same in both stores, and how many were not yet there. */
export interface Copied {
  readonly rows: Readonly<Record<string, number>>
  readonly digest: string
  readonly changed: number
}

/**
 * Copies what is not in the target yet.
 * @param onTable Is called after each table; what it throws ends the copy.
 * @throws {Error} if the target has other rows afterwards than were read.
 */
export async function copyRows(
  from: CopyEnd,
  to: CopyEnd,
  onTable: (table: string, rows: number) => void = () => undefined,
): Promise<Copied> {
  const digest = createHash('sha256')
  const rows: Record<string, number> = {}
  let changed = 0
  for (const table of tables) {
    const read = () => digestOf(to.rows(selectAll(to, table)))
    const [source, target] = [digestOf(from.rows(selectAll(from, table))), read()]
    const count = await copyTable(source.rows, target.rows, to, table)
    const copy = count === 0 ? target : read()
    if (count > 0) for await (const _ of copy.rows);
    if (source.end() !== copy.end()) throw new Error(`${table.name}: another process wrote to the copy`)
    digest.update(source.end())
    changed += count
    if (table.isNumbered) {
      const [last] = (await first(from.rows(from.lastNumber(table.name)))) ?? []
      await to.run(to.numberFrom(table.name, Math.max(Number(last), 1)))
    }
    rows[table.name] = source.count()
    onTable(table.name, source.count())
  }
  return { rows, digest: digest.digest('hex'), changed }
}

/** Whether no table has a row. */
export async function isEmpty(end: CopyEnd): Promise<boolean> {
  for (const { name } of tables) {
    if ((await first(end.rows(`select 1 from "${name}" limit 1`))) !== undefined) return false
  }
  return true
}

/** Marks a store, so that no server of any version starts with it, or takes the mark off. */
export async function mark(end: CopyEnd, hash: CopyMark | undefined): Promise<void> {
  const begin = `delete from ${end.journal} where created_at = ${markedAt}`
  await end.run(begin)
  if (hash !== undefined)
    await end.run(`insert into ${end.journal} (hash, created_at) values ('${hash}', ${markedAt})`)
}

/** Lets nothing be written to a store, also by servers that run: they respond 503, and go on reading. */
export async function pauseWrites(end: CopyEnd): Promise<void> {
  await mark(end, 'moved')
  for (const { name } of tables) await end.run(end.pause(name))
}

/** Takes that back. */
export async function resumeWrites(end: CopyEnd): Promise<void> {
  for (const { name } of tables) await end.run(end.resume(name))
  await mark(end, undefined)
}

function selectAll(end: CopyEnd, { name, columns }: Table): string {
  const order = columns
    .filter(({ isKey }) => isKey)
    .map((column) => (column.isText ? end.inBytes(`"${column.name}"`) : `"${column.name}"`))
  return `select ${columns.map((column) => `"${column.name}"`).join(', ')} from "${name}" order by ${order.join(', ')}`
}

/** A row, and a text that only an equal row has. */
interface Read {
  readonly row: Row
  readonly text: string
}

/** Reads rows, and has their number and digest when all have been read. */
function digestOf(rows: AsyncIterable<Row>) {
  const hash = createHash('sha256')
  let [count, digest] = [0, '']
  async function* all(): AsyncGenerator<Read, undefined> {
    for await (const row of rows) {
      const text = textOf(row)
      count += 1
      hash.update(`${text}\n`)
      yield { row, text }
    }
    digest = hash.digest('hex')
  }
  return { rows: all(), count: () => count, end: () => `${count} ${digest}` }
}

/** How many rows one statement writes: PostgreSQL takes 65,535 values, SQLite half as many. */
const [inserted, deleted] = [500, 100]

async function copyTable(
  source: AsyncIterable<Read>,
  target: AsyncIterator<Read, undefined>,
  to: CopyEnd,
  table: Table,
): Promise<number> {
  const key = table.columns.flatMap(({ isKey }, at) => (isKey ? [at] : []))
  const next = async () => (await target.next()).value
  let [there, changed] = [await next(), 0]
  const [stale, missing] = [[] as Row[], [] as Row[]]
  const flush = async () => {
    changed += stale.length + missing.length
    await inParts(stale.splice(0), deleted, (part) => deleteRows(to, table, key, part))
    await inParts(missing.splice(0), inserted, (part) => insertRows(to, table, part))
  }
  for await (const { row, text } of source) {
    for (; there !== undefined && compare(there.row, row, key) < 0; there = await next())
      stale.push(there.row)
    if (there?.text === text) {
      there = await next()
      continue
    }
    // A row of the target with this key and other values is one that is deleted.
    missing.push(row)
    if (there !== undefined && compare(there.row, row, key) === 0) {
      stale.push(there.row)
      there = await next()
    }
    // Not before: a name that was given to another user can be in a row of the target that comes later.
    if (there === undefined && missing.length >= inserted) await flush()
  }
  for (; there !== undefined; there = await next()) stale.push(there.row)
  await flush()
  return changed
}

async function inParts(rows: readonly Row[], size: number, work: (part: readonly Row[]) => Promise<void>) {
  for (let at = 0; at < rows.length; at += size) await work(rows.slice(at, at + size))
}

async function deleteRows(
  to: CopyEnd,
  { name, columns }: Table,
  key: readonly number[],
  rows: readonly Row[],
) {
  const values: unknown[] = []
  const conditions = rows.map((row) =>
    key.map((at) => `"${columns[at]?.name}" = ${to.place(values.push(row[at]))}`).join(' and '),
  )
  await to.run(`delete from "${name}" where (${conditions.join(') or (')})`, values)
}

async function insertRows(to: CopyEnd, { name, columns }: Table, rows: readonly Row[]) {
  const values: unknown[] = []
  const places = rows.map((row) => row.map((value) => to.place(values.push(value))).join(', '))
  const names = columns.map((column) => `"${column.name}"`).join(', ')
  await to.run(`insert into "${name}" (${names}) values (${places.join('), (')})`, values)
}

/** Compares two rows by their key, in the order in which both databases return them. */
function compare(one: Row, other: Row, key: readonly number[]): number {
  for (const at of key) {
    const [left, right] = [one[at], other[at]]
    const order =
      typeof left === 'number' ? left - Number(right) : Buffer.compare(bytesOf(left), bytesOf(right))
    if (order !== 0) return order
  }
  return 0
}

function bytesOf(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : Buffer.from(String(value))
}

function textOf(row: Row): string {
  return JSON.stringify(row.map((value) => (value instanceof Buffer ? `\\x${value.toString('hex')}` : value)))
}

async function first(rows: AsyncIterable<Row>): Promise<Row | undefined> {
  for await (const row of rows) return row
  return undefined
}
