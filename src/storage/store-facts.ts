import type { Seconds, StoredKey } from '../domain/model.ts'

/** What can be told of a store without changing anything in it. */
export interface StoreFacts {
  /** Such as `PostgreSQL 17.2`. */
  readonly engine: string
  /** Its tables against those of this build; `foreign`: another program's. */
  readonly schema: 'missing' | 'older' | 'current' | 'newer' | 'foreign'
  /** A reason why nothing can be kept in it: damage, a version too old, a standby. */
  readonly faults: readonly StoreFault[]
  /** Every key, oldest first; absent when the schema is not the current one, as the next. */
  readonly keys?: readonly StoredKey[]
  /** User names of the users a development server made. */
  readonly seededUsers?: readonly string[]
  /** Client ids of those that may leave PKCE out. */
  readonly clientsWithoutPkce?: readonly string[]
  /** The quickest of a few commits; absent when none could be made. */
  readonly commitMilliseconds?: number
  /** The clock of a database that has its own, and the time here before and after it was asked. */
  readonly clock?: { readonly before: Seconds; readonly at: Seconds; readonly after: Seconds }
}

/** One of them. */
export interface StoreFault {
  readonly said: string
  readonly expected: string
  readonly found: string
  readonly remedy: string
}

/** How often a commit is tried: a slow disk is slow every time, a busy moment is not. */
export const commitsTried = 5
