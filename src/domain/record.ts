import type { Hash, Seconds } from './model.ts'

/**
 * A kind of record in the common table. A kind is data: storage needs no edit for a new one. The key is unique within
 * the kind.
 */
export interface RecordKind<T> {
  readonly name: string
  rowOf(record: T): RecordRow
  parse(body: string): T
  /** The member that is sealed with the operator's secret, under the id of the record: `keys.seal` wants to know it. */
  readonly sealed?: string | undefined
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
  /** A commit of nothing else does not wait for the disk, see `rowOfUse`. It is not stored. */
  readonly isBrief?: true
}

/** Which members of a record are columns of its row. */
export interface RecordColumns<T> {
  id(record: T): string
  userId?(record: T): string | undefined
  clientId?(record: T): string | undefined
  madeAt?(record: T): Seconds
  expiresAt?(record: T): Seconds
  readonly sealed?: keyof T & string
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
    }),
    // `as`: only rowOf writes rows of this kind.
    parse: (body) => JSON.parse(body) as T,
    ...(columns.sealed !== undefined && { sealed: columns.sealed }),
  }
}

/** A use of what may be used once until an instant. */
export interface SingleUse {
  readonly id: Hash
  readonly expiresAt: Seconds
}

/** The name under which uses are stored. */
export const useKind = 'use'

/**
 * Returns the beginning of the keys of the uses that expire at an instant. Keys in the order of time are neighbours in
 * the table: a commit of many uses changes a page or two, where hashes would change a page each, and the sweep needs no
 * index.
 */
export function useKey(expiresAt: Seconds): string {
  return String(expiresAt).padStart(12, '0')
}

/**
 * Converts a use to its row. It counts for seconds: a commit of nothing else does not wait for the disk (SQLite). A
 * process that is killed loses none; a power cut may lose the last ones.
 */
export function rowOfUse({ id, expiresAt }: SingleUse): RecordRow {
  return { kind: useKind, id: useKey(expiresAt) + id, body: '', isBrief: true }
}
