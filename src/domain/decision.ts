import type { OAuthError } from './errors.ts'
import type {
  AuditEvent,
  Client,
  Consent,
  Grant,
  GrantOfToken,
  Hash,
  Rejection,
  Seconds,
  Session,
  StoredKey,
  User,
} from './model.ts'
import { type RecordKind, type RecordRow, rowOfUse, type SingleUse } from './record.ts'

/** What has a table of its own. Everything else is a record, see record.ts. */
export interface Tables {
  readonly client: Client
  readonly user: User
  readonly session: Session
  readonly key: StoredKey
  readonly rejection: Rejection
  readonly auditEvent: AuditEvent
}

type Rows<Kind extends keyof Tables> = { [K in Kind]: { readonly kind: K; readonly record: Tables[K] } }[Kind]
type RecordRows = { readonly kind: 'record'; readonly record: RecordRow }

type Updatable = 'client' | 'user' | 'key'
type Deletable = 'client' | 'key'

/** Every change of state there is. An adapter's switch over `op` ends in `satisfies never`. */
export type Write =
  | ({ readonly op: 'insert' } & (Rows<keyof Tables> | RecordRows))
  | ({ readonly op: 'update' } & (Rows<Updatable> | RecordRows))
  /** Inserts a record, or replaces the one with the same key. */
  | ({ readonly op: 'put' } & RecordRows)
  /** A client's consents go with it, and its grants, codes and tokens become invalid. */
  | { readonly op: 'delete'; readonly kind: Deletable; readonly key: string }
  | { readonly op: 'deleteRecord'; readonly kind: string; readonly key: string }
  /** All records of a kind, or those of one user. */
  | { readonly op: 'deleteRecords'; readonly kind: string; readonly userId?: string }
  /** All records of a kind whose key begins with this text. */
  | { readonly op: 'deleteRecordsFrom'; readonly kind: string; readonly prefix: string }
  | { readonly op: 'touchClient'; readonly clientId: string; readonly at: Seconds }
  /** PKCE is required of a client from now on, if that depends on what it sends. */
  | { readonly op: 'learnPkce'; readonly clientId: string; readonly at: Seconds }
  | { readonly op: 'extendSession'; readonly sessionId: Hash; readonly idleExpiresAt: Seconds }
  /** Gives a session another id and other methods; if it has ended, nothing of the transaction is written. */
  | {
      readonly op: 'replaceSession'
      readonly sessionId: Hash
      readonly by: Hash
      readonly methods: readonly string[]
    }
  /**
   * Deletes a session, and does what is to be done when it ends (see session-end.ts). If another session continues it,
   * that is left to the end of the other one.
   */
  | {
      readonly op: 'endSession'
      readonly sessionId: Hash
      readonly at: Seconds
      readonly continuedBy?: Pick<Session, 'id' | 'expiresAt'>
    }
  /** Ends all sessions of a user except one, including expired ones. */
  | { readonly op: 'endSessionsOf'; readonly userId: string; readonly at: Seconds; readonly except?: Hash }
  /** Ends the sessions of a user and deletes the user with their records; their grants and tokens become invalid. */
  | { readonly op: 'removeUser'; readonly userId: string; readonly at: Seconds }
  /** If the session that a client knows by this `sid` has ended, nothing of the transaction is written. */
  | { readonly op: 'requireSession'; readonly sid: string; readonly at: Seconds }
  /** If the condition does not hold, nothing of the transaction is written. */
  | { readonly op: 'require'; readonly condition: Condition }
  | GrantInsertion
  /** All but the newest `stay` grants of a user at one client: of exchanged grants, or of the others. */
  | {
      readonly op: 'deleteOldestGrants'
      readonly userId: string
      readonly clientId: string
      readonly stay: number
      readonly isExchanged: boolean
    }
  /** Raises `seq` to 1, and forgets what only the code needed: the nonce, and most of the code challenge. */
  | {
      readonly op: 'redeemGrant'
      readonly grantId: string
      readonly at: Seconds
      readonly refreshExpiresAt?: Seconds
      readonly expiresAt: Seconds
    }
  /** Raises `seq` by one from `fromSeq`. */
  | {
      readonly op: 'rotateGrant'
      readonly grantId: string
      readonly fromSeq: number
      readonly at: Seconds
      readonly refreshExpiresAt: Seconds
      readonly expiresAt: Seconds
    }
  /** Moves the end of a grant that is still at `seq`. */
  | {
      readonly op: 'extendGrant'
      readonly grantId: string
      readonly seq: number
      readonly refreshExpiresAt: Seconds
      readonly expiresAt: Seconds
    }
  /** `rule`: the reason, for `lychgate explain`. */
  | { readonly op: 'revokeGrant'; readonly grantId: string; readonly at: Seconds; readonly rule: string }
  /** Every grant of a user, or those at one client, in any state. */
  | {
      readonly op: 'revokeGrantsOf'
      readonly userId: string
      readonly clientId?: string
      readonly at: Seconds
      readonly rule: string
    }
  /** Every grant of a client with this `sid` in `extra.session`: it ends with the session. */
  | {
      readonly op: 'revokeGrantsOfSession'
      readonly userId: string
      readonly clientId: string
      readonly sid: string
      readonly at: Seconds
      readonly rule: string
    }
  | {
      readonly op: 'revokeAccessToken'
      readonly grantId: string
      readonly tokenId: string
      readonly expiresAt: Seconds
    }

/** Inserts a grant. With a basis: only while that still holds, otherwise nothing of the transaction is written. */
export interface GrantInsertion {
  readonly op: 'insertGrant'
  readonly grant: Grant
  readonly basis?: GrantBasis
  /** Instead of a basis, where the same transaction has read it: the owners that it found. */
  readonly owners?: GrantOwners
  /** Instead of both, where the client was read before: it is inserted only if that one has not changed. */
  readonly client?: Client
}

/** Inserts a row of a table, or a record. An insert whose key exists fails with `RecordExists`. */
export function insert<K extends keyof Tables>(kind: K, row: Tables[K]): Write
export function insert<T>(kind: RecordKind<T>, record: T): Write
export function insert(kind: keyof Tables | RecordKind<unknown>, record: unknown): Write {
  return { op: 'insert', ...rowOf(kind, record) } as Write // the overloads pair the kind with its record
}

/** Inserts a use until it expires. The second of the same fails with `RecordExists`. */
export function insertUse(use: SingleUse): Write {
  return { op: 'insert', kind: 'record', record: rowOfUse(use) }
}

/** Replaces the row or record with the same key; writes nothing if there is none. */
export function update<K extends Updatable>(kind: K, row: Tables[K]): Write
export function update<T>(kind: RecordKind<T>, record: T): Write
export function update(kind: Updatable | RecordKind<unknown>, record: unknown): Write {
  return { op: 'update', ...rowOf(kind, record) } as Write // the overloads pair the kind with its record
}

/** Inserts a record, or replaces the one with the same key. */
export function put<T>(kind: RecordKind<T>, record: T): Write {
  return { op: 'put', kind: 'record', record: kind.rowOf(record) }
}

/** Deletes a row or a record by its key. */
export function remove<T>(kind: Deletable | RecordKind<T>, key: string): Write {
  return typeof kind === 'string' ? { op: 'delete', kind, key } : { op: 'deleteRecord', kind: kind.name, key }
}

/** Deletes all records of a kind, or those of one user. */
export function removeAll<T>(kind: RecordKind<T>, userId?: string): Write {
  return { op: 'deleteRecords', kind: kind.name, ...(userId !== undefined && { userId }) }
}

/**
 * Ends a session.
 * @param continuedBy The session of the same user that takes its place.
 */
export function endSession(
  sessionId: Hash,
  at: Seconds,
  continuedBy?: Pick<Session, 'id' | 'expiresAt'>,
): Write {
  return { op: 'endSession', sessionId, at, ...(continuedBy !== undefined && { continuedBy }) }
}

/** Ends all sessions of a user, except one. */
export function endSessionsOf(userId: string, at: Seconds, except?: Hash): Write {
  return { op: 'endSessionsOf', userId, at, ...(except !== undefined && { except }) }
}

/** Removes a user and ends their sessions. */
export function removeUser(userId: string, at: Seconds): Write {
  return { op: 'removeUser', userId, at }
}

function rowOf(kind: string | RecordKind<unknown>, record: unknown) {
  return typeof kind === 'string' ? { kind, record } : { kind: 'record', record: kind.rowOf(record) }
}

/** What the decision to insert a grant depended on. Its user must also exist and not be locked. */
export interface GrantBasis {
  /** The user's session. */
  readonly sessionId: Hash
  /** The remembered consent; absent: the decision did not depend on one. */
  readonly consent?: Consent | undefined
}

/** The numbers of the rows of a grant's client and user. */
export interface GrantOwners {
  readonly clientSeq: number
  /** Absent: no user approved the grant. */
  readonly userSeq?: number
}

/** What must hold in the transaction that writes. It is read there, so that nothing can end it before the commit. */
export interface Condition {
  /** The rule that it follows from: it revokes the grant otherwise. */
  readonly rule: string
  /** The `error_description` otherwise. */
  readonly why: string
  holds(read: RecordReads): Reading<boolean>
  /** The error that the caller gets otherwise; absent: the caller handles that it was overtaken. */
  error?(): OAuthError
}

/** What reads in a transaction: it delegates to `RecordReads` by `yield*`, and yields nothing else. */
export type Reading<T> = Generator<unknown, T, unknown>

/** Values that a transaction finds by key and that are no records. */
export type FindableKind = 'user' | 'client' | 'grantOfToken'

/** Reads records in the transaction that writes. */
export interface RecordReads {
  find(kind: 'user', key: string): Reading<User | undefined>
  find(kind: 'client', key: string): Reading<Client | undefined>
  find(kind: 'grantOfToken', key: string): Reading<GrantOfToken | undefined>
  find<T>(kind: RecordKind<T>, key: string): Reading<T | undefined>
  listOf<T>(kind: RecordKind<T>, userId: string): Reading<readonly T[]>
  /** The records whose keys begin with a text, and come after another one. */
  listFrom<T>(
    kind: RecordKind<T>,
    page: { readonly prefix: string; readonly after: string; readonly limit: number },
  ): Reading<readonly T[]>
  listKind<T>(
    kind: RecordKind<T>,
    page: { readonly madeUntil: Seconds; readonly limit: number },
  ): Reading<readonly T[]>
}

/** What a decide function returns: a result, or an error to throw, each with writes to commit first. */
export type Decision<T> =
  | { readonly result: T; readonly writes: readonly Write[] }
  | { readonly rejection: OAuthError; readonly writes: readonly Write[] }

/** Accepts: the writes are committed, then `result` is returned. */
export function accept<T>(result: T, ...writes: readonly Write[]): Decision<T> {
  return { result, writes }
}

/** Decides next about the result of a decision. The writes of both are committed together. */
export function andThen<A, B>(first: Decision<A>, decide: (result: A) => Decision<B>): Decision<B> {
  if ('rejection' in first) return first
  const next = decide(first.result)
  return { ...next, writes: [...first.writes, ...next.writes] }
}

/** The same decision with more to write. */
export function withWrites<T>(decision: Decision<T>, ...more: readonly Write[]): Decision<T> {
  if (more.length === 0) return decision
  return { ...decision, writes: [...decision.writes, ...more] }
}

/** Rejects: the writes are committed, then `rejection` is thrown. */
export function reject(rejection: OAuthError, ...writes: readonly Write[]): Decision<never> {
  return { rejection, writes }
}
