import type { Write } from '../domain/decision.ts'
import {
  accountRow,
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
  refusalRow,
  secondFactorRow,
  sessionRow,
  throttleKey,
  throttleRow,
} from './rows.ts'

/** The prepared statements of an adapter that write: one for each `op`, and what a removal takes along. */
export type WriteStatement =
  | Exclude<Write['op'], 'deleteClient' | 'deleteAccount'>
  | 'deleteClientRow'
  | 'deleteConsentsOfClient'
  | 'deleteAccountRow'
  | 'deletePasskeysOf'
  | 'revokeGrantsOfConnection'

/** One run of a prepared statement. */
export interface Step {
  readonly statement: WriteStatement
  readonly values: Readonly<Record<string, unknown>>
  /** It follows from what was read in this transaction; if it meets no row, the transaction must not commit. */
  readonly exact?: true
}

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
    case 'insertAccount':
    case 'updateAccount':
      return [{ statement: write.op, values: { ...accountRow(write.account) } }]
    case 'deleteAccount':
      return [
        { statement: 'deleteSessionsOf', values: { accountId: write.accountId, except: '' } },
        { statement: 'deleteConsentsOf', values: { accountId: write.accountId } },
        { statement: 'deletePasskeysOf', values: { accountId: write.accountId } },
        { statement: 'deleteSecondFactor', values: { accountId: write.accountId } },
        { statement: 'deleteLinksOf', values: { accountId: write.accountId } },
        { statement: 'deleteAccountRow', values: { id: write.accountId } },
      ]
    case 'insertSession':
      return [{ statement: write.op, values: { ...sessionRow(write.session) } }]
    case 'extendSession':
      return [{ statement: write.op, values: { id: write.sessionId, idleExpiresAt: write.idleExpiresAt } }]
    case 'deleteSession':
      return [{ statement: write.op, values: { id: write.sessionId } }]
    case 'deleteSessionsOf':
      return [{ statement: write.op, values: { accountId: write.accountId, except: write.except ?? '' } }]
    case 'insertPasskey':
    case 'updatePasskey':
      return [{ statement: write.op, values: { ...passkeyRow(write.passkey) } }]
    case 'deletePasskey':
      return [{ statement: write.op, values: { id: write.passkeyId } }]
    case 'putSecondFactor':
      return [{ statement: write.op, values: { ...secondFactorRow(write.secondFactor) } }]
    case 'deleteConsentsOf':
    case 'deleteSecondFactor':
    case 'deleteLinksOf':
      return [{ statement: write.op, values: { accountId: write.accountId } }]
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
      return [{ statement: write.op, values: { accountId: write.accountId, clientId: write.clientId } }]
    case 'insertGrant':
      return [{ statement: write.op, values: { ...grantRow(write.grant) } }]
    case 'redeemGrant':
      return [{ statement: write.op, values: transition(write), exact: true }]
    case 'rotateGrant':
      return [{ statement: write.op, values: { ...transition(write), fromSeq: write.fromSeq }, exact: true }]
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
    case 'insertRefusal':
      return [{ statement: write.op, values: { ...refusalRow(write.refusal) } }]
    case 'insertAuditEvent':
      return [{ statement: write.op, values: { ...auditEventRow(write.event) } }]
    default:
      throw new TypeError(`no statement for ${(write satisfies never as Write).op}`)
  }
}

function revokeGrantsOf(write: Extract<Write, { op: 'revokeGrantsOf' }>): Step {
  const { accountId, clientId, at, rule: by } = write
  return clientId === undefined
    ? { statement: 'revokeGrantsOf', values: { accountId, at, by } }
    : { statement: 'revokeGrantsOfConnection', values: { accountId, clientId, at, by } }
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
