import type { ReadName, RowOfRead, WriteName } from './statements.ts'

/**
 * One run of a prepared statement, or of a text with its values. Of a read with `isOne` the first row is enough. A write
 * that is queued has no result: PostgreSQL gets all of a transaction together with its commit.
 */
export type Step = ReadStep | QueuedWrite

/** A step whose result is awaited. */
export type ReadStep = NamedStep | Together | { readonly text: string; readonly values: readonly unknown[] }

interface NamedStep {
  readonly statement: ReadName | WriteName
  readonly values: object
  readonly isOne?: true
}

/** Reads that run in this order, each with a result; PostgreSQL gets all of them at once. */
export interface Together {
  readonly together: readonly ReadStep[]
}

/** A write whose result is not awaited. */
export interface QueuedWrite {
  readonly statement: WriteName
  readonly values: object
  readonly isQueued: true
  /** If it does not change exactly one row, the transaction fails with this error and nothing of it is written. */
  readonly exact?: (statement: string) => Error
}

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

/** Reads of several statements. @returns The rows of each. */
export function* together(steps: Together['together']): Script<readonly (readonly unknown[])[]> {
  return (yield { together: steps }) as readonly (readonly unknown[])[] // of each read
}

/** Runs scripts that only read, side by side: what they ask for at the same time is one trip. */
export function* sideBySide(scripts: readonly Script<unknown>[]): Script<readonly unknown[]> {
  const steps = scripts.map((script) => ({ script, step: script.next() }))
  for (;;) {
    const open = steps.filter(({ step }) => step.done !== true)
    if (open.length === 0) return steps.map(({ step }) => step.value)
    const results = yield* together(open.map(({ step }) => step.value as ReadStep)) // it reads
    for (const [index, one] of open.entries()) one.step = one.script.next(results[index])
  }
}

/** Reads rows, and leaves out the ones that become undefined. */
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
