import { consentKind } from '../domain/connections.ts'
import type { Write } from '../domain/decision.ts'
import { type AtSessionEnd, atSessionEnd, atSessionEndKind, atSessionEndOf } from '../domain/session-end.ts'
import { holds, listOf, load } from './reads.ts'
import {
  auditEventRow,
  clientRow,
  grantEnds,
  grantKey,
  grantRow,
  rangeOf,
  recordKey,
  recordRow,
  rejectionRow,
  sessionMethods,
  sessionRow,
  userRow,
} from './rows.ts'
import type { Script } from './script.ts'
import type { ReadName, WriteName } from './statements.ts'
import { Overtaken } from './store.ts'

/** One run of a statement that writes. */
interface Change {
  readonly statement: WriteName
  readonly values: object
  /** Read before: its row joins the values. Without a row nothing is written. */
  readonly lookUp?: { readonly statement: ReadName; readonly values: object }
  /** Whether the row of the look-up is as it must be. Otherwise nothing is written. */
  readonly isAsBefore?: (found: object) => boolean
  /** If it changes no row, the transaction must not commit and fails with this error. */
  readonly exact?: (statement: string) => Error
}

/** The write follows from what was read in the same transaction. */
const notDecidedHere = (statement: string) =>
  new Error(`${statement} met no row: its decision was not made here`)
/** The write follows from what was read before the transaction. */
const overtaken = (statement: string) => new Overtaken(statement)

/**
 * Runs every write. If it throws, the transaction must not commit.
 * @throws {Overtaken}
 */
export function* apply(writes: readonly Write[]): Script<void> {
  for (const write of writes) {
    // Most writes are of none of these, and hot.
    const consequences = withReads.has(write.op) ? yield* consequencesOf(write) : undefined
    for (const { statement, values, lookUp, isAsBefore, exact } of changesOf(write)) {
      let isFound = true
      if (lookUp !== undefined) {
        const [found] = (yield lookUp) as readonly object[] // the rows of the look-up
        isFound = found !== undefined && (isAsBefore?.(found) ?? true)
        // Not into a copy: the row of a grant has many members, and a place for these two.
        Object.assign(values, found)
      }
      const changed = isFound ? yield { statement, values } : 0
      if (exact && changed !== 1) throw exact(statement)
    }
    if (consequences !== undefined) yield* apply(yield* consequences())
  }
}

/** The writes that need more than their statements. */
const withReads: ReadonlySet<Write['op']> = new Set<Write['op']>([
  'endSession',
  'replaceSession',
  'endSessionsOf',
  'removeUser',
  'requireSession',
  'require',
])

/**
 * Returns what follows from a write that ends sessions, or lets one take the place of another. It reads once the
 * session is deleted: a transaction that inserted a grant in the session before has committed by then.
 */
function* consequencesOf(write: Write): Script<(() => Script<readonly Write[]>) | undefined> {
  switch (write.op) {
    case 'endSession': {
      const { sessionId, at, continuedBy } = write
      const session = yield* load('session', sessionId)
      if (session === undefined) return undefined
      return function* () {
        const due = yield* dueOf(session.userId, (one) => one.sessionId === sessionId)
        return continuedBy === undefined ? atSessionEnd(due, at) : atSessionEndOf(continuedBy, due)
      }
    }
    case 'replaceSession': {
      const session = yield* load('session', write.sessionId)
      if (session === undefined) return undefined
      return function* () {
        const due = yield* dueOf(session.userId, (one) => one.sessionId === session.id)
        return atSessionEndOf({ ...session, id: write.by }, due)
      }
    }
    case 'endSessionsOf':
      return function* () {
        return atSessionEnd(yield* dueOf(write.userId, (one) => one.sessionId !== write.except), write.at)
      }
    case 'removeUser':
      // First: it reads records of the user, and finds grants by the user.
      yield* apply([{ op: 'endSessionsOf', userId: write.userId, at: write.at }])
      return undefined
    case 'requireSession':
      yield* requireSession(write)
      return undefined
    case 'require':
      if (!(yield* holds(write.condition.holds)))
        throw write.condition.error?.() ?? new Overtaken('require', write.condition)
      return undefined
    default:
      return undefined
  }
}

function* dueOf(userId: string, isDue: (one: AtSessionEnd) => boolean): Script<readonly AtSessionEnd[]> {
  return (yield* listOf(atSessionEndKind, userId)).filter(isDue)
}

/** @throws {Overtaken} if the session has ended. Reads only: what ends it revokes the grant, which is locked here. */
function* requireSession({ sid, at }: Extract<Write, { op: 'requireSession' }>): Script<void> {
  const known = yield* load(atSessionEndKind, sid)
  const session = known && (yield* load('session', known.sessionId))
  if (session === undefined || at >= session.idleExpiresAt || at >= session.expiresAt)
    throw new Overtaken('requireSession')
}

/** Returns the changes of a write. Most statements are named after it and take its members. */
function changesOf(write: Write): readonly Change[] {
  switch (write.op) {
    case 'insert':
    case 'update':
    case 'put':
      return [{ statement: `${write.op} ${write.kind}` as WriteName, values: rowOf(write) }] // pairs of `Write` only
    case 'delete':
      return deletionOf(write)
    case 'deleteRecord':
      return [{ statement: 'delete record', values: { kind: write.kind, id: recordKey(write.key) } }]
    case 'deleteRecords':
      return [{ statement: write.userId === undefined ? 'deleteRecordsOfKind' : write.op, values: write }]
    case 'deleteRecordsFrom':
      return [{ statement: write.op, values: { kind: write.kind, ...rangeOf(write.prefix) } }]
    case 'touchClient':
    case 'extendSession':
    case 'deleteOldestGrants':
    case 'endSession':
      return [{ statement: write.op, values: write }]
    case 'endSessionsOf':
      return [{ statement: write.op, values: { except: '', ...write } }]
    case 'removeUser':
      return [
        { statement: 'deleteRecordsOfUser', values: write },
        { statement: write.op, values: write },
      ]
    case 'requireSession':
    case 'require':
      return []
    case 'replaceSession':
      return [
        { statement: write.op, values: { ...write, ...sessionMethods(write.methods) }, exact: overtaken },
      ]
    case 'insertGrant':
      return [insertionOf(write)]
    case 'redeemGrant':
    case 'rotateGrant':
    case 'extendGrant': {
      const values = { ...write, grantId: keyOf(write.grantId), ...grantEnds(write) }
      return [{ statement: write.op, values, exact: notDecidedHere }]
    }
    case 'revokeGrant':
    case 'revokeAccessToken':
      return [{ statement: write.op, values: { ...write, grantId: keyOf(write.grantId) } }]
    case 'revokeGrantsOf':
      return [
        { statement: write.clientId === undefined ? write.op : 'revokeGrantsOfConnection', values: write },
      ]
    case 'revokeGrantsOfSession':
      return [{ statement: write.op, values: { ...write, pattern: `%"session":"${write.sid}"%` } }]
    default:
      throw new TypeError(`no statement for ${(write satisfies never as Write).op}`)
  }
}

function rowOf(write: Extract<Write, { op: 'insert' | 'update' | 'put' }>): object {
  switch (write.kind) {
    case 'record':
      return recordRow(write.record)
    case 'client':
      return clientRow(write.record)
    case 'user':
      return userRow(write.record)
    case 'session':
      return sessionRow(write.record)
    case 'key':
      return write.record
    case 'rejection':
      return rejectionRow(write.record)
    case 'auditEvent':
      return auditEventRow(write.record)
  }
}

function deletionOf({ kind, key }: Extract<Write, { op: 'delete' }>): readonly Change[] {
  const deletion: Change = { statement: `delete ${kind}`, values: { key } }
  switch (kind) {
    case 'client':
      return [{ statement: 'deleteRecordsOfClient', values: { clientId: key } }, deletion]
    default:
      return [deletion]
  }
}

function insertionOf({ grant, basis, owners }: Extract<Write, { op: 'insertGrant' }>): Change {
  const insertion = { statement: 'insertGrant', values: grantRow(grant, owners) } as const
  if (owners !== undefined) return insertion
  const { clientId, userId } = grant
  if (basis === undefined)
    return { ...insertion, lookUp: { statement: 'ownersOfGrant', values: { clientId, userId } } }
  const { sessionId, consent } = basis
  if (consent === undefined) {
    const values = { clientId, userId, sessionId }
    return { ...insertion, lookUp: { statement: 'sessionOfGrant', values }, exact: overtaken }
  }
  const { kind, id, body } = consentKind.rowOf(consent)
  const values = { clientId, userId, sessionId, kind, consentId: recordKey(id) }
  const isAsBefore = (found: { readonly body?: string }) => found.body === body
  return { ...insertion, lookUp: { statement: 'consentOfGrant', values }, isAsBefore, exact: overtaken }
}

function keyOf(grantId: string): Buffer {
  const key = grantKey(grantId)
  if (key === undefined) throw new TypeError('not the id of a grant')
  return key
}
