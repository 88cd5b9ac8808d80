import type { ReadName, RowOfRead, WriteName } from './statements.ts'

/** One run of a prepared statement, or of a text with its values. Of a read with `isOne` the first row is enough. */
export type Step =
  | { readonly statement: ReadName | WriteName; readonly values: object; readonly isOne?: true }
  | { readonly text: string; readonly values: readonly unknown[] }

/**
 * What a read or a transaction does, for both databases: it yields steps and is given the rows of what it reads and the
 * number of rows it changed. SQLite runs the steps at once, PostgreSQL awaits them.
 */
export type Script<T> = Generator<Step, T, unknown>

/** Reads one row. */
export function* one<N extends ReadName, T>(
  statement: N,
  values: object,
  to: (row: RowOfRead<N>) => T | undefined,
): Script<T | undefined> {
  const rows = (yield { statement, values, isOne: true }) as readonly RowOfRead<N>[] // the rows of this statement
  return rows[0] && to(rows[0])
}

/** Reads rows, without those that become undefined. */
export function* many<N extends ReadName, T>(
  statement: N,
  values: object,
  to: (row: RowOfRead<N>) => T | undefined,
): Script<readonly T[]> {
  const rows = (yield { statement, values }) as readonly RowOfRead<N>[] // the rows of this statement
  return rows.flatMap((row) => to(row) ?? [])
}

/** Runs a statement that writes; returns how many rows it changed. */
export function* change(statement: WriteName, values: object): Script<number> {
  return (yield { statement, values }) as number // the result of a write
}
