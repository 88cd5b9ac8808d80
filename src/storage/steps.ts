import type { GrantBasis, Write } from '../domain/decision.ts'
import {
  auditEventRow,
  clientRow,
  consentRow,
  grantEnds,
  grantKey,
  grantRow,
  interactionRow,
  keyRow,
  linkRow,
  passkeyRow,
  rejectionRow,
  secondFactorRow,
  sessionMethods,
  sessionRow,
  throttleKey,
  throttleRow,
  userRow,
} from './rows.ts'
import { Overtaken } from './store.ts'

/** The prepared statements of an adapter that write: one for each `op`, and what a removal takes along. */
export type WriteStatement =
  | Exclude<Write['op'], 'deleteClient' | 'deleteUser'>
  | 'deleteClientRow'
  | 'deleteConsentsOfClient'
  | 'deleteUserRow'
  | 'deletePasskeysOf'
  | 'revokeGrantsOfConnection'
  | 'insertGrantOfSession'
  | 'insertGrantOfConsent'

/** One run of a prepared statement. */
export interface Step {
  readonly statement: WriteStatement
  readonly values: Readonly<Record<string, unknown>>
  /** If it changes no row, the transaction must not commit and fails with this error. */
  readonly exact?: (statement: WriteStatement) => Error
}

/** The write follows from what was read in the same transaction. */
const notDecidedHere = (statement: WriteStatement) =>
  new Error(`${statement} met no row: its decision was not made here`)
/** The write follows from what was read before the transaction. */
const overtaken = (statement: WriteStatement) => new Overtaken(statement)

/** What a write means in statements, for both adapters. */
export function stepsOf(write: Write): readonly Step[] {
  switch (write.op) {
    case 'insertClient':
    case 'updateClient':
      return [{ statement: write.op, values: { ...clientRow(write.client) } }]
    case 'touchClient':
      return [{ statement: write.op, values: { id: write.clientId, at: write.at } }]
    case 'deleteClient':
      return [
        { statement: 'deleteConsentsOfClient', values: { clientId: write.clientId } },
        { statement: 'deleteClientRow', values: { id: write.clientId } },
      ]
    case 'insertUser':
    case 'updateUser':
      return [{ statement: write.op, values: { ...userRow(write.user) } }]
    case 'deleteUser':
      return [
        { statement: 'deleteSessionsOf', values: { userId: write.userId, except: '' } },
        { statement: 'deleteConsentsOf', values: { userId: write.userId } },
        { statement: 'deletePasskeysOf', values: { userId: write.userId } },
        { statement: 'deleteSecondFactor', values: { userId: write.userId } },
        deleteLinksOf(write),
        { statement: 'deleteUserRow', values: { id: write.userId } },
      ]
    case 'insertSession':
      return [{ statement: write.op, values: { ...sessionRow(write.session) } }]
    case 'extendSession':
      return [{ statement: write.op, values: { id: write.sessionId, idleExpiresAt: write.idleExpiresAt } }]
    case 'deleteSession':
      return [{ statement: write.op, values: { id: write.sessionId } }]
    case 'deleteSessionsOf':
      return [{ statement: write.op, values: { userId: write.userId, except: write.except ?? '' } }]
    case 'replaceSession': {
      const { sessionId: id, by, methods } = write
      return [{ statement: write.op, values: { id, by, ...sessionMethods(methods) }, exact: overtaken }]
    }
    case 'insertPasskey':
    case 'updatePasskey':
      return [{ statement: write.op, values: { ...passkeyRow(write.passkey) } }]
    case 'deletePasskey':
      return [{ statement: write.op, values: { id: write.passkeyId } }]
    case 'putSecondFactor':
      return [{ statement: write.op, values: { ...secondFactorRow(write.secondFactor) } }]
    case 'deleteConsentsOf':
    case 'deleteSecondFactor':
      return [{ statement: write.op, values: { userId: write.userId } }]
    case 'deleteLinksOf':
      return [deleteLinksOf(write)]
    case 'insertLink':
      return [{ statement: write.op, values: { ...linkRow(write.link) } }]
    case 'deleteLinksFor':
      return [{ statement: write.op, values: { purpose: write.purpose } }]
    case 'deleteLink':
      return [{ statement: write.op, values: { id: write.linkId } }]
    case 'insertInteraction':
    case 'updateInteraction':
      return [{ statement: write.op, values: { ...interactionRow(write.interaction) } }]
    case 'deleteInteraction':
      return [{ statement: write.op, values: { id: write.interactionId } }]
    case 'putConsent':
      return [{ statement: write.op, values: { ...consentRow(write.consent) } }]
    case 'deleteConsent':
      return [{ statement: write.op, values: { userId: write.userId, clientId: write.clientId } }]
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
    case 'insertKey':
    case 'updateKey':
      return [{ statement: write.op, values: { ...keyRow(write.key) } }]
    case 'deleteKey':
      return [{ statement: write.op, values: { id: write.keyId } }]
    case 'putThrottle':
      return [{ statement: write.op, values: { ...throttleRow(write.throttle) } }]
    case 'deleteThrottle':
      return [{ statement: write.op, values: { key: throttleKey(write.key) } }]
    case 'insertRejection':
      return [{ statement: write.op, values: { ...rejectionRow(write.rejection) } }]
    case 'insertAuditEvent':
      return [{ statement: write.op, values: { ...auditEventRow(write.event) } }]
    default:
      throw new TypeError(`no statement for ${(write satisfies never as Write).op}`)
  }
}

function grantStep(row: Step['values'], basis: GrantBasis | undefined): Step {
  if (basis === undefined) return { statement: 'insertGrant', values: row }
  const { sessionId, consent } = basis
  return consent === undefined
    ? { statement: 'insertGrantOfSession', values: { ...row, sessionId }, exact: overtaken }
    : {
        statement: 'insertGrantOfConsent',
        values: { ...row, sessionId, allowed: consentRow(consent).allowed },
        exact: overtaken,
      }
}

function deleteLinksOf({ userId, only, except }: LinksOf): Step {
  return { statement: 'deleteLinksOf', values: { userId, only: only ?? '', except: except ?? '' } }
}

type LinksOf = Omit<Extract<Write, { op: 'deleteLinksOf' }>, 'op'>

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
