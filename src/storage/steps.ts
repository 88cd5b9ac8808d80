import { consentKind } from '../domain/connections.ts'
import type { GrantBasis, Write } from '../domain/decision.ts'
import {
  auditEventRow,
  clientRow,
  grantEnds,
  grantKey,
  grantRow,
  recordKey,
  recordRow,
  rejectionRow,
  sessionMethods,
  sessionRow,
  userRow,
} from './rows.ts'
import type { ReadName, WriteName } from './statements.ts'
import { Overtaken } from './store.ts'

type Values = Readonly<Record<string, unknown>>

/** One run of a statement that writes. */
export interface Step {
  readonly statement: WriteName
  readonly values: Values
  /** Read before: its row joins the values. Without a row nothing is written. */
  readonly lookUp?: ReadName
  /** If it changes no row, the transaction must not commit and fails with this error. */
  readonly exact?: (statement: string) => Error
}

/** The write follows from what was read in the same transaction. */
const notDecidedHere = (statement: string) =>
  new Error(`${statement} met no row: its decision was not made here`)
/** The write follows from what was read before the transaction. */
const overtaken = (statement: string) => new Overtaken(statement)

/** What a write means in statements. */
export function stepsOf(write: Write): readonly Step[] {
  switch (write.op) {
    case 'insert':
      return [insertOf(write)]
    case 'update':
      return [updateOf(write)]
    case 'put':
      return [{ statement: 'putRecord', values: recordRow(write.record) }]
    case 'delete':
      return deletionOf(write)
    case 'deleteRecord':
      return [{ statement: 'deleteRecord', values: { kind: write.kind, id: recordKey(write.key) } }]
    case 'deleteRecords': {
      const { kind, userId } = write
      return userId === undefined
        ? [{ statement: 'deleteRecordsOfKind', values: { kind } }]
        : [{ statement: 'deleteRecordsOf', values: { kind, userId } }]
    }
    case 'touchClient':
      return [{ statement: write.op, values: { id: write.clientId, at: write.at } }]
    case 'extendSession':
      return [{ statement: write.op, values: { id: write.sessionId, idleExpiresAt: write.idleExpiresAt } }]
    case 'deleteSessionsOf':
      return [{ statement: write.op, values: { userId: write.userId, except: write.except ?? '' } }]
    case 'replaceSession': {
      const { sessionId: id, by, methods } = write
      return [{ statement: write.op, values: { id, by, ...sessionMethods(methods) }, exact: overtaken }]
    }
    case 'insertGrant':
      return [grantStep({ ...grantRow(write.grant) }, write.basis)]
    case 'deleteOldestGrants': {
      const { op, userId, clientId, stay } = write
      return [{ statement: op, values: { userId, clientId, stay } }]
    }
    case 'redeemGrant':
      return [{ statement: write.op, values: transition(write), exact: notDecidedHere }]
    case 'rotateGrant':
      return [
        {
          statement: write.op,
          values: { ...transition(write), fromSeq: write.fromSeq },
          exact: notDecidedHere,
        },
      ]
    case 'revokeGrant':
      return [{ statement: write.op, values: { id: grantIdOf(write), at: write.at, by: write.rule } }]
    case 'revokeGrantsOf':
      return [revokeGrantsOf(write)]
    case 'revokeAccessToken':
      return [revokeAccessToken(write)]
    default:
      throw new TypeError(`no statement for ${(write satisfies never as Write).op}`)
  }
}

function insertOf(write: Extract<Write, { op: 'insert' }>): Step {
  switch (write.kind) {
    case 'record':
      return { statement: 'insertRecord', values: recordRow(write.record) }
    case 'client':
      return { statement: 'insertClient', values: { ...clientRow(write.record) } }
    case 'user':
      return { statement: 'insertUser', values: { ...userRow(write.record) } }
    case 'session':
      return { statement: 'insertSession', values: { ...sessionRow(write.record) } }
    case 'key':
      return { statement: 'insertKey', values: { ...write.record } }
    case 'rejection':
      return { statement: 'insertRejection', values: { ...rejectionRow(write.record) } }
    case 'auditEvent':
      return { statement: 'insertAuditEvent', values: { ...auditEventRow(write.record) } }
  }
}

function updateOf(write: Extract<Write, { op: 'update' }>): Step {
  switch (write.kind) {
    case 'record':
      return { statement: 'updateRecord', values: recordRow(write.record) }
    case 'client':
      return { statement: 'updateClient', values: { ...clientRow(write.record) } }
    case 'user':
      return { statement: 'updateUser', values: { ...userRow(write.record) } }
    case 'key':
      return { statement: 'updateKey', values: { ...write.record } }
  }
}

function deletionOf({ kind, key }: Extract<Write, { op: 'delete' }>): readonly Step[] {
  switch (kind) {
    case 'client':
      return [
        { statement: 'deleteRecordsOfClient', values: { clientId: key } },
        { statement: 'deleteClient', values: { key } },
      ]
    case 'user':
      return [
        { statement: 'deleteSessionsOf', values: { userId: key, except: '' } },
        { statement: 'deleteRecordsOfUser', values: { userId: key } },
        { statement: 'deleteUser', values: { key } },
      ]
    case 'session':
      return [{ statement: 'deleteSession', values: { key } }]
    case 'key':
      return [{ statement: 'deleteKey', values: { key } }]
  }
}

function grantStep(row: Values, basis: GrantBasis | undefined): Step {
  if (basis === undefined) return { statement: 'insertGrant', values: row, lookUp: 'ownersOfGrant' }
  const { sessionId, consent } = basis
  if (consent === undefined) {
    const values = { ...row, sessionId }
    return { statement: 'insertGrant', values, lookUp: 'sessionOfGrant', exact: overtaken }
  }
  const { kind, id, body } = consentKind.rowOf(consent)
  const values = { ...row, sessionId, kind, consentId: recordKey(id), consent: body }
  return { statement: 'insertGrant', values, lookUp: 'consentOfGrant', exact: overtaken }
}

function revokeGrantsOf(write: Extract<Write, { op: 'revokeGrantsOf' }>): Step {
  const { userId, clientId, at, rule: by } = write
  return clientId === undefined
    ? { statement: 'revokeGrantsOf', values: { userId, at, by } }
    : { statement: 'revokeGrantsOfConnection', values: { userId, clientId, at, by } }
}

function revokeAccessToken(write: Extract<Write, { op: 'revokeAccessToken' }>): Step {
  const { op, tokenId, expiresAt } = write
  return { statement: op, values: { grantId: grantIdOf(write), tokenId, expiresAt } }
}

function transition(write: Extract<Write, { op: 'redeemGrant' | 'rotateGrant' }>) {
  return {
    id: grantIdOf(write),
    at: write.at,
    ...grantEnds(write),
  }
}

function grantIdOf({ grantId }: { readonly grantId: string }): Buffer {
  const key = grantKey(grantId)
  if (key === undefined) throw new TypeError('not the id of a grant')
  return key
}
