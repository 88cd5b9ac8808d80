import { channel } from 'node:diagnostics_channel'
import { consentKey } from '../domain/connections.ts'
import type { Condition, Decision, GrantOwners, Write } from '../domain/decision.ts'
import type {
  AuditEvent,
  AuditEventName,
  Client,
  Consent,
  Grant,
  GrantOfToken,
  Rejection,
  Seconds,
  Session,
  StoredKey,
  User,
} from '../domain/model.ts'
import type { RecordKind } from '../domain/record.ts'
import type { SecretChange } from '../domain/secret-change.ts'

/**
 * What has a table of its own, and what its key is. A grant is found only while its client and its user exist: removing
 * either invalidates all their tokens at once.
 */
export interface Rows {
  /** By client id. */
  client: Client
  /** By user id. */
  user: User
  /** By canonical user name or email address. */
  userByLogin: User
  /** By client id: for decisions that do not change it, which do not wait for each other. It stays until they are written. */
  actingClient: ActingClient
  /** By the hash of the cookie. */
  session: Session
  grant: Grant
  /** By `grantOfTokenKey(grantId, tokenId)`. */
  grantOfToken: GrantOfToken
  /** By the id of a grant: its user, and its client. */
  userOfGrant: User
  clientOfGrant: Client
  /** By `sessionConsentKey(session, clientId)`; found while the session lasts and its user is not locked. */
  sessionConsent: SessionConsent
  /** By request id. */
  rejection: Rejection
  key: StoredKey
  /** Every key, oldest first, under any text: decisions about the ring as a whole wait for each other. */
  keyRing: readonly StoredKey[]
}

/**
 * A user with their sessions and their records of some kinds, found by user id. Decisions about it wait for each other.
 */
export interface UserRead<T> {
  /** For metrics. */
  readonly name: string
  readonly kinds: readonly RecordKind<unknown>[]
  /** @param recordsOf Returns the user's records of one of `kinds`, oldest first. */
  compose(user: User, sessions: readonly Session[], recordsOf: <R>(kind: RecordKind<R>) => readonly R[]): T
}

/** Several records of a kind, found by their keys as `keysOf` joins them. Decisions about any of them wait for each other. */
export interface RecordSet<T> {
  /** For metrics. */
  readonly name: string
  readonly each: RecordKind<T>
}

/** The key of several records. Sorted: who waits for one of them has none that another waits for. */
export function keysOf(keys: Iterable<string>): string {
  return JSON.stringify([...new Set(keys)].toSorted())
}

/** What one decision is about if that is of several kinds, by names, found by their keys as `keyOfParts` joins them. */
export interface Parts<P extends Readonly<Record<string, FindKind>>> {
  /** For metrics. */
  readonly name: string
  readonly parts: P
}

/** The key of several parts. */
export function keyOfParts<P extends Readonly<Record<string, FindKind>>>(
  _kind: Parts<P>,
  keys: { readonly [N in keyof P]: string },
): string {
  return JSON.stringify(keys)
}

/** Splits a key of several parts. @returns Each part with its name and its key, in the order of `parts`. */
export function partsOf({ parts }: Parts<Readonly<Record<string, FindKind>>>, key: string) {
  const keys = JSON.parse(key) as Readonly<Record<string, string>> // of `keyOfParts`
  return Object.entries(parts).map(([name, kind]) => ({ name, kind, key: keys[name] ?? '' }))
}

/** What can be found by a key: a row, a record of a kind, or a user with what belongs to them. */
export type FindKind =
  | keyof Rows
  | RecordKind<unknown>
  | RecordSet<unknown>
  | UserRead<unknown>
  | { readonly name: string; readonly parts: Readonly<Record<string, FindKind>> }
export type ListKind = 'client' | 'user' | 'key'
/** What is found by the user it belongs to, too. */
export type OwnedKind = 'session' | 'grant' | RecordKind<unknown>
/** What is found of a kind. */
export type Found<K extends FindKind> = K extends keyof Rows
  ? Rows[K]
  : K extends { parse(body: string): infer T }
    ? T
    : K extends { each: { parse(body: string): infer T } }
      ? ReadonlyMap<string, T>
      : K extends UserRead<infer T>
        ? T
        : K extends { parts: infer P extends Readonly<Record<string, FindKind>> }
          ? { readonly [N in keyof P]: Found<P[N]> | undefined }
          : never

/** A client that gets tokens for itself. */
export interface ActingClient {
  readonly client: Client
  /** Of a grant that is inserted in the same transaction; absent where the client was read before. */
  readonly owners?: GrantOwners
}

/** The consent that the user of a session gave a client, and the owners of a grant that is inserted on it. */
export interface SessionConsent {
  readonly consent: Consent
  readonly owners: GrantOwners
}

/** The key of the consent that the user of a session gave a client. */
export function sessionConsentKey({ id, userId }: Pick<Session, 'id' | 'userId'>, clientId: string): string {
  return `${id} ${consentKey(userId, clientId)}`
}

/** The key of a grant with what is known of one of its tokens. */
export function grantOfTokenKey(grantId: string, tokenId: string): string {
  return `${grantId} ${tokenId}`
}

/**
 * What a decision about a record waits for: every decision about a grant, also about a token of it, waits for the
 * others. A decision to insert a grant waits for none: what it reads cannot change until it is committed.
 * @returns The locks, in the order in which they are taken: the same for all who take several.
 */
export function locksOf(kind: FindKind, key: string): readonly string[] {
  if (kind === 'sessionConsent' || kind === 'actingClient') return []
  if (kind === 'grantOfToken') return [`grant ${key.split(' ', 1)[0]}`]
  if (typeof kind === 'string') return [`${kind} ${key}`]
  if ('parts' in kind)
    return partsOf(kind, key)
      .flatMap((part) => locksOf(part.kind, part.key))
      .toSorted()
  if ('each' in kind) return (JSON.parse(key) as string[]).map((one) => `${kind.each.name} ${one}`) // of `keysOf`
  return ['kinds' in kind ? `user ${key}` : `${kind.name} ${key}`]
}

/** Which audit events are wanted; an absent member leaves the choice open. */
export interface AuditFilter {
  readonly since: Seconds
  readonly name?: AuditEventName | undefined
  readonly userId?: string | undefined
  readonly clientId?: string | undefined
  /** At most this many, newest first. */
  readonly limit: number
}

/**
 * The instants and numbers that decide what a sweep deletes in addition to what has expired. Every batch asks for them
 * again, so that they may follow a clock.
 */
export interface SweepBounds {
  readonly now: Seconds
  /** Registered clients that never got a token, from before. */
  readonly clientsUnusedSince: Seconds
  /** The oldest registered clients that never got a token, beyond so many bytes of metadata of all of them. */
  readonly unusedClientBytes: number
  /** Registered clients that got their last token before; 0 takes none. */
  readonly clientsIdleSince: Seconds
  /** Rejections but the last so many. */
  readonly rejectionsKept: number
  /** Audit events from before. */
  readonly auditedSince: Seconds
}

/** The result of one sweep. */
export interface SweepResult {
  /** How many were deleted. */
  readonly rows: number
  /** There was more than one sweep takes: another should follow soon. */
  readonly more: boolean
}

/** What a store tells of itself, at the cost of a few look-ups by key. */
export interface StoreActivity {
  /** As the sweep counted them when it last came by all; absent until it has. */
  readonly activeGrants?: number
  readonly rejectionsKept: number
  /** PostgreSQL pool: total, idle and waiting. */
  readonly connections?: { readonly total: number; readonly idle: number; readonly waiting: number }
}

/** What a start has to know about users; a million of them are no more work than none. */
export interface Population {
  readonly isEmpty: boolean
  /** User names of those a development server made, in their order. */
  readonly seeded: readonly string[]
}

/** A commit that changes shared. */
export interface Commit {
  readonly jobs: number
  readonly seconds: number
}

/** Publishes every commit of gathered changes. Measures nothing without subscribers. */
export const commitChannel = channel('lychgate:commit')

/** A while in which a store brought its journal into its file, and the event loop stood still. */
export interface Checkpoint {
  readonly seconds: number
}

/** Hears of every one of them. */
export const checkpointChannel = channel('lychgate:checkpoint')

/** A store that is unavailable now (locked, full, unreachable): 503 with `Retry-After`, never a wrong 200. */
export class StoreUnavailable extends Error {
  constructor(cause: unknown) {
    super('the store is unavailable', { cause })
    this.name = 'StoreUnavailable'
  }
}

/** An insert met a record that has the same unique key (a taken user name, say). Nothing was written. */
export class RecordExists extends Error {
  constructor(cause: unknown) {
    super('a record with this key exists', { cause })
    this.name = 'RecordExists'
  }
}

/** Writes an insert. @returns false, with nothing written, if the key exists. */
export async function insertOnce(store: Pick<Store, 'write'>, write: Write): Promise<boolean> {
  try {
    await store.write(write)
    return true
  } catch (error) {
    if (error instanceof RecordExists) return false
    throw error
  }
}

/**
 * Something that a decision was based on ended before the decision was written: the session, the user's access or a
 * remembered consent. Nothing was written.
 */
export class Overtaken extends Error {
  /** The condition that does not hold; absent for the others. */
  readonly condition: Pick<Condition, 'rule' | 'why'> | undefined
  constructor(statement: string, condition?: Pick<Condition, 'rule' | 'why'>) {
    super(`${statement}: what it was based on has ended`)
    this.name = 'Overtaken'
    this.condition = condition
  }
}

/** Everything a store holds: the stored rows of each table. */
export type StoreContents = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>

/** Which connections are listed. */
export interface ConnectionPage {
  readonly now: Seconds
  readonly limit: number
  readonly offset: number
}

/** A client that has valid grants of a user, or remembered consent. */
export interface ConnectionSummary {
  readonly clientId: string
  /** How many valid grants. */
  readonly grants: number
  /** Whether consent is remembered. */
  readonly remembered: boolean
}

export interface Connections {
  /** Of all pages. */
  readonly count: number
  readonly page: readonly ConnectionSummary[]
}

/** Which grants of a client are read. */
export interface NewestGrants {
  readonly now: Seconds
  readonly limit: number
}

/** Which grants are listed, in the order of their ids: as they were approved. */
export interface GrantPage {
  /** `next` of the page before it. */
  readonly after?: string | undefined
  readonly userId?: string | undefined
  readonly clientId?: string | undefined
  readonly limit: number
}

/** A page of grants. It may have few, or none, and yet not be the last. */
export interface GrantsFound {
  readonly grants: readonly Grant[]
  /** Absent on the last page. */
  readonly next?: string
}

/** Which page of the audit log is read; an absent member leaves the choice open. */
export interface AuditPageFilter extends Omit<AuditFilter, 'since'> {
  readonly since?: Seconds
  /** Of this time or earlier. */
  readonly until?: Seconds
  /** `next` of the page before it. */
  readonly before?: number | undefined
}

/** Which events of a user are read. */
export interface UserAuditPage {
  readonly userId: string
  /** `next` of the page before it. */
  readonly after?: number | undefined
  readonly limit: number
}

/** A page of the audit log. */
export interface AuditPage {
  readonly events: readonly AuditEvent[]
  /** Absent on the last page. A page may have few events, or none, and yet not be the last. */
  readonly next?: number
}

/** Which rejections are listed. */
export interface NewestRejections {
  /** Only those with a smaller number. */
  readonly before?: number | undefined
  readonly limit: number
}

/** How many events a day has; its number counts from the epoch. */
export interface DayCount {
  readonly day: number
  readonly count: number
}

/** How many recent codes a client got, and how many of them for a request with a `code_challenge`. */
export interface ChallengeCount {
  readonly clientId: string
  readonly codes: number
  readonly challenges: number
}

/** How many there are of each. */
export interface Counts {
  readonly users: number
  readonly clients: number
  readonly groups: number
}

/** Which records of a kind are listed. */
export interface RecordPage {
  /** Made then or before. */
  readonly madeUntil: Seconds
  readonly limit: number
}

/** Which records of a kind are listed in turn. */
export interface TurnPage extends RecordPage {
  /** At most this many of one client. */
  readonly ofClient: number
}

/** Which rows are listed, in the order in which they were added. */
export interface RowPage {
  /** The number of the last row of the page before. */
  readonly after?: number | undefined
  readonly limit: number
  /** Users: whether they are locked. Clients: where they came from. Absent: all. */
  readonly only?: 'locked' | 'unlocked' | Client['origin'] | undefined
}

/** A row with its number, by which the next page begins. */
export interface Numbered<T> {
  readonly seq: number
  readonly row: T
}

/** Which records of a kind are listed by their keys. */
export interface PrefixPage {
  /** What their keys begin with. */
  readonly prefix: string
  /** Only those with keys after this one. */
  readonly after?: string | undefined
  readonly limit: number
}

/** One page of the users that a search finds. */
export interface UserMatches {
  readonly users: readonly User[]
  /** The `after` of the next page; absent on the last. */
  readonly next?: string
}

/** What `doctor` reads from a store without changing anything in it. */
export interface StoreFacts {
  /** Such as `PostgreSQL 17.2`. */
  readonly engine: string
  /**
   * Its tables against those of this build (`schemaState`); `foreign`: another program's. A copy into an `unfinished` one
   * has not ended, and the contents of a `moved` one are in another store.
   */
  readonly schema: 'missing' | 'older' | 'current' | 'ahead' | 'newer' | 'foreign' | 'unfinished' | 'moved'
  /** A reason why nothing can be kept in it: damage, a version too old, a standby. */
  readonly faults: readonly StoreFault[]
  /** What makes it slower than it has to be. */
  readonly advice?: readonly StoreFault[]
  /** Every key, oldest first; absent when the schema is not the current one, as the next. */
  readonly keys?: readonly StoredKey[]
  /** A change of the secret that has not ended. */
  readonly secretChange?: SecretChange | undefined
  readonly population?: Population
  /** Whether there is an administrator. */
  readonly isAdministered?: boolean
  readonly challenges?: readonly ChallengeCount[]
  /** The clients that operators added, without resource servers. */
  readonly operatorClients?: readonly Client[]
  /** Clients that registered themselves, a thousand of them at most. */
  readonly registeredClients?: readonly Client[]
  /** Clients whose recent logout deliveries all failed. */
  readonly unreachableClients?: readonly string[]
  /** The quickest of a few commits; absent when none could be made. */
  readonly commitMilliseconds?: number
  /** The clock of a database that has its own, and the time here before and after it was asked. */
  readonly clock?: { readonly before: Seconds; readonly at: Seconds; readonly after: Seconds }
}

/** A reason why nothing can be kept in a store, and what to do about it. */
export interface StoreFault {
  readonly said: string
  readonly expected: string
  readonly found: string
  readonly remedy: string
}

/** How often the commit of these facts is tried: a slow disk is slow every time, a busy moment is not. */
export const commitsTried = 5

/** How a store is opened. */
export interface StoreOptions {
  /** At most this many connections to PostgreSQL; default 10. SQLite has one. */
  readonly connections?: number
  /**
   * How long a request waits for a connection or a lock of PostgreSQL before it fails, in milliseconds; default 2000.
   */
  readonly waitMilliseconds?: number
  /** Whether other processes of the same server use the SQLite file all the time. */
  readonly isShared?: boolean
}

/** What a node tells the others that share its database. */
export interface NodeNews {
  readonly node: string
  readonly body: string
  readonly now: Seconds
  /** The others hear it until then. */
  readonly expiresAt: Seconds
}

/** Where all state lives. A resolved promise means committed and on disk. */
export interface Store {
  /** Whether a read is a trip to another process. Then what is likely needed is read ahead, together with something else. */
  readonly isFar: boolean
  /** Replaces the news of this node. @returns The last news of each other one. Absent: there are no other nodes. */
  tellNodes?(news: NodeNews): Promise<readonly string[]>
  find<K extends FindKind>(kind: K, key: string): Promise<Found<K> | undefined>
  /** Every row of the kind, oldest first. For operators' commands, not for requests. */
  list<K extends ListKind>(kind: K): Promise<readonly Rows[K][]>
  /** One page of the rows of a kind. It costs the same wherever the page begins. */
  page<K extends 'client' | 'user'>(kind: K, page: RowPage): Promise<readonly Numbered<Rows[K]>[]>
  /**
   * Finds users by the beginning of a user name or an email address, through an index. `after` is the `next` of the page
   * before. A page may be short and still have a next page.
   */
  usersFrom(page: PrefixPage): Promise<UserMatches>
  /** Everything of this kind that belongs to the user, oldest first, expired or not. */
  listOf<K extends OwnedKind>(kind: K, userId: string): Promise<readonly Found<K>[]>
  /**
   * Loads the record, lets `decide` judge it, and commits its writes, all in one transaction. `decide` must be
   * synchronous and pure: it may run more than once. What it throws is thrown, with nothing written; a rejection
   * it returns is thrown after its writes are committed.
   * @param ahead What was read before. It is decided about without a lock, if the decision writes only where the record
   *   is still as it was then, or nothing; otherwise the record is loaded again.
   */
  transact<K extends FindKind, T>(
    kind: K,
    key: string,
    decide: (record: Found<K> | undefined) => Decision<T>,
    ahead?: Promise<Found<K> | undefined>,
  ): Promise<T>
  /**
   * One page of the clients a user is connected with, the one used last first, and how many there are. The database
   * counts: the cost in memory is that of the page, however many grants there are.
   */
  connections(userId: string, page: ConnectionPage): Promise<Connections>
  /** The newest valid grants of a user at each of these clients, newest first. It looks at the user's grants once. */
  grantsOf(userId: string, clientIds: readonly string[], newest: NewestGrants): Promise<readonly Grant[]>
  /** One page of all grants, or those of a user, or to a client. It looks at a part of the grants only. */
  grantsFrom(page: GrantPage): Promise<GrantsFound>
  /** One page of all sessions, in the order of their ids, including expired ones. */
  sessionsFrom(page: { readonly after: string; readonly limit: number }): Promise<readonly Session[]>
  /** Some records of a kind that belong to a client. */
  someOfClient<T>(kind: RecordKind<T>, clientId: string, limit: number): Promise<readonly T[]>
  /** Commits all writes or none. */
  write(...writes: readonly Write[]): Promise<void>
  /**
   * The oldest records of a kind, by when they were made. It reads all records of the kind: for kinds that have few,
   * and for operators' commands.
   */
  listKind<T>(kind: RecordKind<T>, page: RecordPage): Promise<readonly T[]>
  /** The same, but the first of every client before the second of any: no client hides the records of others. */
  listInTurn<T>(kind: RecordKind<T>, page: TurnPage): Promise<readonly T[]>
  /** A page of the records of a kind whose keys begin with a text, in the order of their keys. It reads only those. */
  listFrom<T>(kind: RecordKind<T>, page: PrefixPage): Promise<readonly T[]>
  /**
   * The newest audit events that the filter lets through, oldest of them first. For operators' commands, not for
   * requests.
   */
  audit(filter: AuditFilter): Promise<readonly AuditEvent[]>
  /** One page of the audit log, newest first. It looks at a part of the log only, so that rare events are no more work. */
  auditPage(filter: AuditPageFilter): Promise<AuditPage>
  /** One page of the events of a user, oldest first. */
  auditFrom(page: UserAuditPage): Promise<AuditPage>
  /** The newest stored rejections, newest first. */
  rejections(newest: NewestRejections): Promise<readonly Numbered<Rejection>[]>
  /** How many users signed in on each day from an instant on. It reads at most this many of the newest audit events. */
  signInsByDay(since: Seconds, most: number): Promise<readonly DayCount[]>
  /** Which clients send a `code_challenge`, by the newest grants. It reads at most this many of them. */
  challenges(most: number): Promise<readonly ChallengeCount[]>
  /** How many users, clients and groups there are. It counts no further than this. */
  counts(most: number): Promise<Counts>
  /** Deletes some of what these bounds take, in transactions of a few rows with requests between them. */
  sweep(bounds: SweepBounds): Promise<SweepResult>
  activity(): Promise<StoreActivity>
  population(): Promise<Population>
  /** Whether a condition holds, outside of any transaction. */
  holds(condition: Condition['holds']): Promise<boolean>
  /** All of it, as of one instant. For development servers, which have little. */
  contents(): Promise<StoreContents>
  /** Replaces all contents in one transaction. */
  replace(contents: StoreContents): Promise<void>
  /** Resolves when the store is available; throws StoreUnavailable otherwise. */
  ping(): Promise<void>
  close(): Promise<void>
}
