import { consentKind } from '../domain/connections.ts'
import type { Condition, RecordReads } from '../domain/decision.ts'
import { referenceLength } from '../domain/errors.ts'
import { finishedDeliveryKind, unreachableClients } from '../domain/logout-delivery.ts'
import type { AuditEvent, Grant, Rejection, Seconds, Session } from '../domain/model.ts'
import type { RecordKind } from '../domain/record.ts'
import { secretChangeKey, secretChangeKind } from '../domain/secret-change.ts'
import {
  grantKey,
  grantOfTokenValues,
  rangeOf,
  recordKey,
  sessionConsentValues,
  toAuditEvent,
  toClient,
  toGrant,
  toGrantOfKey,
  toGrantOfToken,
  toKey,
  toRejection,
  toSession,
  toUser,
} from './rows.ts'
import { many, one, type Script, sideBySide, together } from './script.ts'
import type { RowOfRead } from './statements.ts'
import {
  type AuditFilter,
  type AuditPage,
  type AuditPageFilter,
  type ChallengeCount,
  type ConnectionPage,
  type Connections,
  type Counts,
  type DayCount,
  type FindKind,
  type Found,
  type GrantPage,
  type GrantsFound,
  type ListKind,
  type NewestGrants,
  type NewestRejections,
  type Numbered,
  type OwnedKind,
  type Parts,
  type Population,
  type PrefixPage,
  partsOf,
  type RecordPage,
  type RecordSet,
  type RowPage,
  type Rows,
  type StoreFacts,
  type TurnPage,
  type UserAuditPage,
  type UserMatches,
  type UserRead,
} from './store.ts'

/** Loads what `find` finds and `transact` decides about. */
export function load<K extends FindKind>(kind: K, key: string): Script<Found<K> | undefined> {
  return loadAny(kind, key) as Script<Found<K> | undefined> // what the kind says
}

function loadAny(kind: FindKind, key: string): Script<unknown> {
  if (typeof kind === 'object') {
    if ('parts' in kind) return loadParts(kind, key)
    if ('each' in kind) return loadRecords(kind, key)
    return 'kinds' in kind ? loadUserRead(kind, key) : loadRecord(kind, key)
  }
  switch (kind) {
    case 'client':
      return one('client', { key }, toClient)
    case 'actingClient':
      return one('actingClient', { key }, ({ clientSeq, ...row }) => ({
        client: toClient(row),
        owners: { clientSeq },
      }))
    case 'user':
      return one('user', { key }, toUser)
    case 'userByLogin':
      return one('userByLogin', { key }, toUser)
    case 'session':
      return one('session', { key }, toSession)
    case 'grant':
      return ofGrant(key, (id) => one('grant', { key: id }, (row) => toGrantOfKey(row, id)))
    case 'userOfGrant':
      return ofGrant(key, (id) => one('userOfGrant', { key: id }, toUser))
    case 'clientOfGrant':
      return ofGrant(key, (id) => one('clientOfGrant', { key: id }, toClient))
    case 'grantOfToken': {
      const values = grantOfTokenValues(key)
      if (values === undefined) return nothing()
      return one('grantOfToken', values, (row) => toGrantOfToken(row, values.key))
    }
    case 'sessionConsent':
      return one('consentOfGrant', sessionConsentValues(key), ({ body, ...owners }) => ({
        consent: consentKind.parse(body),
        owners,
      }))
    case 'key':
      return one('key', { key }, toKey)
    case 'keyRing':
      return many('keys', {}, toKey)
    case 'rejection':
      if (key.length > referenceLength) return one('rejection', { key }, toRejection)
      // Ids are of hexadecimal digits and hyphens, whose order is the same in every collation.
      return one('rejectionFrom', { reference: key, end: `${key}g` }, toRejection)
  }
}

/** Reads by the key of a grant; no other text finds anything. */
function ofGrant<T>(id: string, read: (key: Buffer) => Script<T | undefined>): Script<T | undefined> {
  const key = grantKey(id)
  return key === undefined ? nothing() : read(key)
}

function* loadParts(kind: Parts<Readonly<Record<string, FindKind>>>, key: string): Script<unknown> {
  const parts = partsOf(kind, key)
  const found = yield* sideBySide(parts.map((part) => load(part.kind, part.key)))
  return Object.fromEntries(parts.map(({ name }, index) => [name, found[index]]))
}

function loadRecord<T>(kind: RecordKind<T>, id: string): Script<T | undefined> {
  return one('record', { kind: kind.name, key: recordKey(id) }, ({ body }) => kind.parse(body))
}

function* loadRecords<T>({ each }: RecordSet<T>, keys: string): Script<ReadonlyMap<string, T>> {
  const ids = JSON.parse(keys) as readonly string[] // of `keysOf`
  const rows = yield* together(
    ids.map((id) => ({ statement: 'record', values: { kind: each.name, key: recordKey(id) }, isOne: true })),
  )
  const entries = ids.flatMap((id, index): (readonly [string, T])[] => {
    const [row] = rows[index] as readonly RowOfRead<'record'>[] // of this statement
    return row === undefined ? [] : [[id, each.parse(row.body)]]
  })
  return new Map(entries)
}

// The user first: in a transaction that row is locked, and only then is the rest read.
function* loadUserRead<T>({ kinds, compose }: UserRead<T>, userId: string): Script<T | undefined> {
  const [users, sessions, ...records] = yield* together([
    { statement: 'user', values: { key: userId } },
    { statement: 'sessionsOf', values: { userId } },
    ...kinds.map(({ name }) => ({ statement: 'recordsOf', values: { userId, kind: name } }) as const),
  ])
  // `as`: the rows of these statements.
  const [user] = users as readonly RowOfRead<'user'>[]
  if (user === undefined) return undefined
  const bodies = new Map(kinds.map(({ name }, index) => [name, records[index]]))
  return compose(toUser(user), (sessions as readonly RowOfRead<'sessionsOf'>[]).map(toSession), (kind) =>
    ((bodies.get(kind.name) ?? []) as readonly RowOfRead<'recordsOf'>[]).map(({ body }) => kind.parse(body)),
  )
}

/** Lists every row of a table, oldest first. */
export function list<K extends ListKind>(kind: K): Script<readonly Rows[K][]> {
  const lists = {
    client: () => many('clients', {}, toClient),
    user: () => many('users', {}, toUser),
    key: () => many('keys', {}, toKey),
  }
  return lists[kind]() as Script<readonly Rows[K][]> // what the kind says
}

/** Lists one page of the rows of a table, with their numbers. */
export function page<K extends 'client' | 'user'>(
  kind: K,
  { after = 0, limit, only }: RowPage,
): Script<readonly Numbered<Rows[K]>[]> {
  const values = { after, limit, only }
  const users = only === 'locked' ? 'pageOfLockedUsers' : 'pageOfUnlockedUsers'
  const pages = {
    client: () => many('pageOfClients', values, ({ seq, ...row }) => ({ seq, row: toClient(row) })),
    user: () =>
      many(only === undefined ? 'pageOfUsers' : users, values, ({ seq, ...row }) => ({
        seq,
        row: toUser(row),
      })),
  }
  return pages[kind]() as Script<readonly Numbered<Rows[K]>[]> // what the kind says
}

/**
 * Lists users whose user name or email address begins with a text, each once, sorted by the one that does. A page
 * reads at most twice as many rows as it may show. It may be short and still have a next page.
 */
export function* usersFrom({ prefix, after = '', limit }: PrefixPage): Script<UserMatches> {
  const from = after.startsWith(prefix) ? after + firstCharacter : prefix
  const values = { from, end: prefix + lastCharacter, limit: limit + 1 }
  const byName = yield* many('usersByName', values, (row) => ({ key: row.username, user: toUser(row) }))
  const byEmail = yield* many('usersByEmail', values, (row) => ({ key: row.email ?? '', user: toUser(row) }))
  const matches = [...byName, ...byEmail].toSorted((one, other) => compareBytes(one.key, other.key))
  const last = matches[Math.min(limit, matches.length) - 1]
  // What has the same key stays on one page: the next one begins after it.
  const shown = matches.filter(({ key }) => last !== undefined && compareBytes(key, last.key) <= 0)
  const isFirst = ({ key, user }: (typeof shown)[number]) => {
    const keys = [user.username, user.email].filter((one) => one?.startsWith(prefix))
    return keys.every((one = '') => compareBytes(key, one) <= 0)
  }
  const users = new Map(shown.filter(isFirst).map(({ user }) => [user.id, user]))
  return { users: [...users.values()], ...(shown.length < matches.length && last && { next: last.key }) }
}

/** Before and after every character of a name: they are none themselves. */
const [firstCharacter, lastCharacter] = ['\u0001', '\u{10ffff}']

/** Compares texts as the databases order them. */
function compareBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other))
}

/** Lists what belongs to a user, oldest first. */
export function listOf<K extends OwnedKind>(kind: K, userId: string): Script<readonly Found<K>[]> {
  const script: Script<readonly unknown[]> =
    typeof kind === 'object'
      ? listRecords(kind, userId)
      : kind === 'session'
        ? many('sessionsOf', { userId }, toSession)
        : many('grantsOf', { userId }, toGrant)
  return script as Script<readonly Found<K>[]> // what the kind says
}

function listRecords<T>(kind: RecordKind<T>, userId: string): Script<readonly T[]> {
  return many('recordsOf', { userId, kind: kind.name }, ({ body }) => kind.parse(body))
}

/** Lists the oldest records of a kind. */
export function listKind<T>({ name, parse }: RecordKind<T>, page: RecordPage): Script<readonly T[]> {
  return many('recordsOfKind', { kind: name, ...page }, ({ body }) => parse(body))
}

/** Lists the oldest records of a kind: the first of every client, then the second, and so on. */
export function listInTurn<T>({ name, parse }: RecordKind<T>, page: TurnPage): Script<readonly T[]> {
  return many('recordsInTurn', { kind: name, ...page }, ({ body }) => parse(body))
}

/** Lists records of a kind whose keys begin with a text, in the order of their keys. */
export function listFrom<T>({ name, parse }: RecordKind<T>, page: PrefixPage): Script<readonly T[]> {
  const { prefix, after, limit } = page
  return many('recordsFrom', { kind: name, ...rangeOf(prefix, after), limit }, ({ body }) => parse(body))
}

/** Reads one page of the clients a user is connected with. Each row has the number of all. */
export function* connections(userId: string, page: ConnectionPage): Script<Connections> {
  const rows = yield* many('connections', { userId, consent: consentKind.name, ...page }, same)
  return {
    count: rows[0]?.total ?? 0,
    page: rows.map(({ total, remembered, ...row }) => ({ ...row, remembered: remembered === 1 })),
  }
}

/** Reads the newest valid grants of a user at some clients. */
export function grantsOf(
  userId: string,
  clientIds: readonly string[],
  newest: NewestGrants,
): Script<readonly Grant[]> {
  return many('newestGrants', { userId, clientIds: JSON.stringify(clientIds), ...newest }, toGrant)
}

/** How many grants a page looks at, at most, however few it has. */
const grantsSearched = 2000
/** Before and after the id of every grant. */
const [firstGrant, lastGrant] = [Buffer.alloc(0), Buffer.alloc(13, 0xff)]

/** Lists one page of grants. Those of a user have an index; of the others it looks at the next so many. */
export function* grantsFrom({ after: from = '', userId, clientId, limit }: GrantPage): Script<GrantsFound> {
  const after = grantKey(from) ?? firstGrant
  const end =
    userId === undefined
      ? yield* one('grantAfter', { after, skipped: grantsSearched - 1 }, ({ id }) => id)
      : undefined
  const values = { after, end: end ?? lastGrant, userId, clientId, limit }
  const rows = yield* many(userId === undefined ? 'grantsFrom' : 'grantsOfFrom', values, same)
  const last = rows.length === limit ? rows.at(-1)?.id : end
  const grants = rows.flatMap((row) => toGrant(row) ?? [])
  return { grants, ...(last !== undefined && { next: last.toString('base64url') }) }
}

/** Lists one page of sessions. */
export function sessionsFrom(page: { after: string; limit: number }): Script<readonly Session[]> {
  return many('sessionsFrom', page, toSession)
}

/** Lists some records of a kind that belong to a client. */
export function someOfClient<T>(
  { name, parse }: RecordKind<T>,
  clientId: string,
  limit: number,
): Script<readonly T[]> {
  return many('recordsOfClient', { kind: name, clientId, limit }, ({ body }) => parse(body))
}

/** Reads the newest audit events that a filter lets through, the oldest of them first. */
export function* audit(filter: AuditFilter): Script<readonly AuditEvent[]> {
  const statement = filter.userId === undefined ? 'audit' : 'auditOf'
  return (yield* many(statement, filter, toAuditEvent)).toReversed()
}

/** How many events a page of the audit log looks at, at most. */
const auditSearched = 20_000

/** Reads a page of the audit log, newest first. */
export function* auditPage({
  before,
  limit,
  since = 0,
  until = Number.MAX_SAFE_INTEGER,
  ...filter
}: AuditPageFilter): Script<AuditPage> {
  const end = before ?? ((yield* one('lastAudit', {}, ({ seq }) => seq ?? 0)) ?? 0) + 1
  // The index of a user has only their events.
  const from = filter.userId === undefined ? end - auditSearched : 0
  const statement = filter.userId === undefined ? 'auditPage' : 'auditPageOf'
  const values = { ...filter, since, until, before: end, from, limit: limit + 1 }
  const events = yield* many(statement, values, ({ seq, ...row }) => ({ seq, event: toAuditEvent(row) }))
  const shown = events.slice(0, limit)
  const last = shown.at(-1)
  // The log is in the order of time: what is before the oldest event of this part is older.
  const oldest = since === 0 ? since : yield* one('firstAuditFrom', { from }, ({ at }) => at)
  const next = events.length > limit ? last?.seq : from > 1 && (oldest ?? since) >= since ? from : undefined
  return { events: shown.map(({ event }) => event), ...(next !== undefined && { next }) }
}

/** Reads a page of the events of a user, oldest first. */
export function* auditFrom({ after = 0, ...page }: UserAuditPage): Script<AuditPage> {
  const rows = yield* many('auditOfFrom', { after, ...page }, same)
  const next = rows.length === page.limit ? rows.at(-1)?.seq : undefined
  return { events: rows.map(({ seq: _, ...row }) => toAuditEvent(row)), ...(next !== undefined && { next }) }
}

/** Lists the newest stored rejections, with their numbers. */
export function rejections({
  before = Number.MAX_SAFE_INTEGER,
  limit,
}: NewestRejections): Script<readonly Numbered<Rejection>[]> {
  return many('newestRejections', { before, limit }, ({ seq, ...row }) => ({ seq, row: toRejection(row) }))
}

/** Counts the sign-ins of each day among the newest audit events. */
export function signInsByDay(since: Seconds, most: number): Script<readonly DayCount[]> {
  return many('signInsByDay', { since, most }, same)
}

/** Counts the codes of each client among the newest grants, and those with a code_challenge. */
export function challenges(most: number): Script<readonly ChallengeCount[]> {
  return many('challengesOf', { most }, same)
}

/** Counts users, clients, grants and other records. */
export function* counts(most: number): Script<Counts> {
  return (yield* one('counts', { most }, same)) ?? { users: 0, clients: 0, groups: 0 }
}

/** Reads what a start has to know of the users. */
export function* population(): Script<Population> {
  const users = yield* many('anyUser', {}, same)
  const seeded = yield* many('seededUsers', {}, ({ username }) => username)
  return { isEmpty: users.length === 0, seeded }
}

const recordReads: RecordReads = { find: load, listOf, listFrom, listKind } as RecordReads // its `find` finds less

/** Reads whether a condition holds. */
export function holds(condition: Condition['holds']): Script<boolean> {
  // `as`: it yields what `recordReads` yields.
  return condition(recordReads) as Script<boolean>
}

type StoredFacts = Required<
  Omit<StoreFacts, 'engine' | 'schema' | 'faults' | 'advice' | 'commitMilliseconds' | 'clock'>
>

/** Reads the part of the facts that is in the tables. */
export function* storedFacts(isAdministered: Condition['holds']): Script<StoredFacts> {
  return {
    keys: yield* list('key'),
    secretChange: yield* load(secretChangeKind, secretChangeKey),
    population: yield* population(),
    isAdministered: yield* holds(isAdministered),
    operatorClients: yield* many('operatorClients', {}, toClient),
    registeredClients: yield* many('registeredClients', {}, toClient),
    challenges: yield* challenges(100_000),
    unreachableClients: unreachableClients(yield* listKind(finishedDeliveryKind, mostDeliveries)),
  }
}

/** More than that many deliveries tell no more about a client. */
const mostDeliveries: RecordPage = { madeUntil: Number.MAX_SAFE_INTEGER, limit: 10_000 }

/** Counts the stored rejections. */
export function* rejectionCount(): Script<number> {
  return (yield* one('rejectionCount', {}, ({ count }) => count)) ?? 0
}

function same<T>(row: T): T {
  return row
}

function* nothing(): Script<undefined> {}
