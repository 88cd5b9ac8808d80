import type { Seconds } from './model.ts'

/**
 * A kind of record in the common table. A kind is data: storage needs no edit for a new one. The key is unique within
 * the kind.
 */
export interface RecordKind<T> {
  readonly name: string
  rowOf(record: T): RecordRow
  parse(body: string): T
}

/** A record as the common table stores it. */
export interface RecordRow {
  readonly kind: string
  readonly id: string
  /** Deleting this user deletes the record. */
  readonly userId?: string | undefined
  /** Deleting this client deletes the record. */
  readonly clientId?: string | undefined
  /** When it was made: lists are in this order. */
  readonly madeAt?: Seconds | undefined
  /** The sweep deletes it from then on. Readers must check it themselves. */
  readonly expiresAt?: Seconds | undefined
  /** JSON of the whole record. */
  readonly body: string
  /** See `RecordColumns`. It is not stored. */
  readonly isBrief?: true
}

/** Which members of a record are columns of its row. */
export interface RecordColumns<T> {
  id(record: T): string
  userId?(record: T): string | undefined
  clientId?(record: T): string | undefined
  madeAt?(record: T): Seconds
  expiresAt?(record: T): Seconds
  /**
   * They count for seconds: a commit of nothing else does not wait for the disk (SQLite). A process that is killed
   * loses none; a power cut may lose the last ones.
   */
  readonly isBrief?: true
}

/** Defines a kind of record. `name` is stored: renaming a kind needs a migration. */
export function recordKind<T extends object>(name: string, columns: RecordColumns<T>): RecordKind<T> {
  return {
    name,
    rowOf: (record) => ({
      kind: name,
      id: columns.id(record),
      userId: columns.userId?.(record),
      clientId: columns.clientId?.(record),
      madeAt: columns.madeAt?.(record),
      expiresAt: columns.expiresAt?.(record),
      body: JSON.stringify(record),
      ...(columns.isBrief && { isBrief: true }),
    }),
    // `as`: only rowOf writes rows of this kind.
    parse: (body) => JSON.parse(body) as T,
  }
}
