import { consentKind } from '../domain/connections.ts'
import type { GrantBasis, Write } from '../domain/decision.ts'
import type { Grant } from '../domain/model.ts'
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
import type { QueuedWrite, Script, Step } from './script.ts'
import type { WriteName } from './statements.ts'
import { Overtaken } from './store.ts'

/** The write follows from what was read in the same transaction, or is compared with it. */
export class NotDecidedHere extends Error {
  constructor(statement: string) {
    super(`${statement} met no row: its decision was not made here`)
    this.name = 'NotDecidedHere'
  }
}

const notDecidedHere = (statement: string) => new NotDecidedHere(statement)
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
    if (write.op === 'insertGrant') yield yield* insertionOf(write)
    else for (const change of changesOf(write)) yield change
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

/** Returns the change that runs a statement. */
function change(statement: WriteName, values: object, exact?: QueuedWrite['exact']): QueuedWrite {
  return exact === undefined
    ? { statement, values, isQueued: true }
    : { statement, values, isQueued: true, exact }
}

/** Returns the changes of a write. Most statements are named after it and take its members. */
function changesOf(write: Write): readonly QueuedWrite[] {
  switch (write.op) {
    case 'insert':
    case 'update':
    case 'put':
      return [change(`${write.op} ${write.kind}` as WriteName, rowOf(write))] // pairs of `Write` only
    case 'delete':
      return deletionOf(write)
    case 'deleteRecord':
      return [change('delete record', { kind: write.kind, id: recordKey(write.key) })]
    case 'deleteRecords':
      return [change(write.userId === undefined ? 'deleteRecordsOfKind' : write.op, write)]
    case 'deleteRecordsFrom':
      return [change(write.op, { kind: write.kind, ...rangeOf(write.prefix) })]
    case 'touchClient':
    case 'extendSession':
    case 'deleteOldestGrants':
    case 'endSession':
      return [change(write.op, write)]
    case 'learnPkce': {
      const members = { pkceOptional: false, pkceLearnedAt: write.at }
      return [change(write.op, { clientId: write.clientId, members: JSON.stringify(members) })]
    }
    case 'endSessionsOf':
      return [change(write.op, { except: '', ...write })]
    case 'removeUser':
      return [change('deleteRecordsOfUser', write), change(write.op, write)]
    case 'requireSession':
    case 'require':
    case 'insertGrant':
      return []
    case 'replaceSession':
      // A row with another key, in the place of this one: an update of a key would move a row that others wait for.
      return [
        change('copySession', { ...write, ...sessionMethods(write.methods) }),
        change('endSession', write, overtaken),
      ]
    case 'redeemGrant':
    case 'rotateGrant':
    case 'extendGrant': {
      const values = { ...write, grantId: keyOf(write.grantId), ...grantEnds(write) }
      return [change(write.op, values, notDecidedHere)]
    }
    case 'revokeGrant':
    case 'revokeAccessToken':
      return [change(write.op, { ...write, grantId: keyOf(write.grantId) })]
    case 'revokeGrantsOf':
      return [change(write.clientId === undefined ? write.op : 'revokeGrantsOfConnection', write)]
    case 'revokeGrantsOfSession':
      return [change(write.op, { ...write, pattern: `%"session":"${write.sid}"%` })]
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

function deletionOf({ kind, key }: Extract<Write, { op: 'delete' }>): readonly QueuedWrite[] {
  const deletion = change(`delete ${kind}`, { key })
  return kind === 'client' ? [change('deleteRecordsOfClient', { clientId: key }), deletion] : [deletion]
}

/** Reads the numbers of the client and the user of a grant, and whether what it is based on still is as it was. */
function* insertionOf({
  grant,
  basis,
  owners,
  client,
}: Extract<Write, { op: 'insertGrant' }>): Script<QueuedWrite> {
  const row = grantRow(grant, owners)
  if (client !== undefined) {
    Object.assign(row, { clientId: client.id, clientMetadata: clientRow(client).metadata })
    return change('insertGrantOfClient', row, notDecidedHere)
  }
  if (owners === undefined) {
    const [lookedUp] = (yield lookUpOf(grant, basis)) as readonly { readonly body?: string }[] // the rows of the look-up
    const body = basis?.consent && consentKind.rowOf(basis.consent).body
    if (lookedUp === undefined || lookedUp.body !== body) throw overtaken('insertGrant')
    // Not into a copy: the row has many members, and a place for these two.
    Object.assign(row, lookedUp)
  }
  return change('insertGrant', row)
}

function lookUpOf({ clientId, userId }: Grant, basis: GrantBasis | undefined): Step {
  if (basis === undefined) return { statement: 'ownersOfGrant', values: { clientId, userId } }
  const { sessionId, consent } = basis
  if (consent === undefined) return { statement: 'sessionOfGrant', values: { clientId, userId, sessionId } }
  const { kind, id } = consentKind.rowOf(consent)
  const values = { clientId, userId, sessionId, kind, consentId: recordKey(id) }
  return { statement: 'consentOfGrant', values }
}

function keyOf(grantId: string): Buffer {
  const key = grantKey(grantId)
  if (key === undefined) throw new TypeError('not the id of a grant')
  return key
}
