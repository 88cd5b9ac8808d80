import { consentKind } from '../domain/connections.ts'
import type { AuditEvent, Grant } from '../domain/model.ts'
import type { RecordKind } from '../domain/record.ts'
import {
  grantKey,
  grantOfTokenValues,
  recordKey,
  toAuditEvent,
  toClient,
  toConnections,
  toGrant,
  toGrantOfToken,
  toKey,
  toRejection,
  toSession,
  toUser,
} from './rows.ts'
import type { ReadName, RowOfRead } from './statements.ts'
import type {
  AuditFilter,
  ConnectionPage,
  Connections,
  FindKind,
  ListKind,
  NewestGrants,
  OwnedKind,
  Population,
  UserRead,
} from './store.ts'
import type { StoreFacts } from './store-facts.ts'

/** One run of a statement that reads. */
export interface ReadStep {
  readonly read: ReadName
  readonly values: Readonly<Record<string, unknown>>
}

/**
 * What a read does, for both databases: it yields statements and is given their rows. SQLite runs them at once,
 * PostgreSQL awaits them.
 */
export type Reading<T> = Generator<ReadStep, T, readonly unknown[]>

/** Loads what `find` finds and `transact` decides about. */
export function load(kind: FindKind, key: string): Reading<unknown> {
  if (typeof kind === 'object') return 'kinds' in kind ? loadUserRead(kind, key) : loadRecord(kind, key)
  switch (kind) {
    case 'client':
      return one('client', { key }, toClient)
    case 'user':
      return one('user', { key }, toUser)
    case 'userByLogin':
      return one('userByLogin', { key }, toUser)
    case 'session':
      return one('session', { key }, toSession)
    case 'grant': {
      const id = grantKey(key)
      return id === undefined ? nothing() : one('grant', { key: id }, toGrant)
    }
    case 'grantOfToken': {
      const values = grantOfTokenValues(key)
      return values === undefined ? nothing() : one('grantOfToken', values, toGrantOfToken)
    }
    case 'key':
      return one('key', { key }, toKey)
    case 'keyRing':
      return many('keys', {}, toKey)
    case 'rejection':
      return one('rejection', { key }, toRejection)
  }
}

function loadRecord<T>(kind: RecordKind<T>, id: string): Reading<T | undefined> {
  return one('record', { kind: kind.name, key: recordKey(id) }, ({ body }) => kind.parse(body))
}

// The user first: in a transaction that row is locked, and only then is the rest read.
function* loadUserRead<T>({ kinds, compose }: UserRead<T>, userId: string): Reading<T | undefined> {
  const user = yield* one('user', { key: userId }, toUser)
  if (user === undefined) return undefined
  const records = new Map<string, readonly unknown[]>()
  for (const kind of kinds) records.set(kind.name, yield* listRecords(kind, userId))
  const sessions = yield* many('sessionsOf', { userId }, toSession)
  // `as`: under its name are the records of this kind.
  return compose(user, sessions, <R>({ name }: RecordKind<R>) => (records.get(name) ?? []) as readonly R[])
}

/** Lists every row of a table, oldest first. */
export function list(kind: ListKind): Reading<readonly unknown[]> {
  switch (kind) {
    case 'client':
      return many('clients', {}, toClient)
    case 'user':
      return many('users', {}, toUser)
    case 'key':
      return many('keys', {}, toKey)
  }
}

/** Lists what belongs to a user, oldest first. */
export function listOf(kind: OwnedKind, userId: string): Reading<readonly unknown[]> {
  if (typeof kind === 'object') return listRecords(kind, userId)
  return kind === 'session'
    ? many('sessionsOf', { userId }, toSession)
    : many('grantsOf', { userId }, toGrant)
}

function listRecords<T>(kind: RecordKind<T>, userId: string): Reading<readonly T[]> {
  return many('recordsOf', { userId, kind: kind.name }, ({ body }) => kind.parse(body))
}

/** One page of the clients a user is connected with. */
export function* connections(userId: string, page: ConnectionPage): Reading<Connections> {
  const values = { userId, consent: consentKind.name, ...page }
  return toConnections(yield* many('connections', values, (row) => row))
}

/** The newest valid grants of a user at one client. */
export function grantsOf(userId: string, clientId: string, newest: NewestGrants): Reading<readonly Grant[]> {
  return many('newestGrants', { userId, clientId, ...newest }, toGrant)
}

/** The newest audit events that a filter lets through, the oldest of them first. */
export function* audit(filter: AuditFilter): Reading<readonly AuditEvent[]> {
  const read = filter.userId === undefined ? 'audit' : 'auditOf'
  return (yield* many(read, { ...filter }, toAuditEvent)).toReversed()
}

/** What a start has to know of the users. */
export function* population(): Reading<Population> {
  const users = yield* many('anyUser', {}, ({ id }) => id)
  const seeded = yield* many('seededUsers', {}, ({ username }) => username)
  return { isEmpty: users.length === 0, seeded }
}

/** What `doctor` reads. */
export function* storeRecords(): Reading<
  Required<Pick<StoreFacts, 'keys' | 'seededUsers' | 'clientsWithoutPkce'>>
> {
  return {
    keys: yield* many('keys', {}, toKey),
    seededUsers: yield* many('seededUsers', {}, ({ username }) => username),
    clientsWithoutPkce: yield* many('clientsWithoutPkce', {}, ({ id }) => id),
  }
}

/** How many rejections are stored. */
export function* rejectionCount(): Reading<number> {
  return (yield* one('rejectionCount', {}, ({ count }) => count)) ?? 0
}

function* one<N extends ReadName, T>(
  read: N,
  values: ReadStep['values'],
  to: (row: RowOfRead<N>) => T | undefined,
): Reading<T | undefined> {
  const [row] = yield { read, values }
  return row === undefined ? undefined : to(row as RowOfRead<N>) // the rows of this statement
}

function* many<N extends ReadName, T>(
  read: N,
  values: ReadStep['values'],
  to: (row: RowOfRead<N>) => T | undefined,
): Reading<readonly T[]> {
  const rows = (yield { read, values }) as readonly RowOfRead<N>[] // the rows of this statement
  return rows.flatMap((row) => to(row) ?? [])
}

function* nothing(): Reading<undefined> {}
