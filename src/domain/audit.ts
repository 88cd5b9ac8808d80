import { addressPrefix } from './address-prefix.ts'
import { type Decision, type Write, withWrites } from './decision.ts'
import { isRetired } from './key-term.ts'
import type { AuditEvent, AuditEventName, Grant, Seconds, StoredKey } from './model.ts'

/*
 * The audit log. An event is written beside the change it tells of, in the same transaction: nothing happens without
 * its event, and nothing is told that did not happen. Rotations of refresh tokens and API calls are no events, for
 * there are too many. No secret and nothing a stranger typed goes in, such as a user name that nobody has: users type
 * their passwords into that field.
 */

/** When something was done, by whom, and from where. */
export interface AuditContext {
  readonly by: AuditEvent['by']
  readonly at: Seconds
  /** The address a request came from, or `user@host` of whoever ran a command. */
  readonly from?: string | undefined
}

/** The write that tells of one event; it goes with the writes that make it happen. */
export function auditEvent(
  name: AuditEventName,
  { by, at, from }: AuditContext,
  { userId, clientId, ...facts }: Pick<AuditEvent, 'userId' | 'clientId'> & AuditEvent['facts'] = {},
): Write {
  const place = from === undefined || from.includes('@') ? from : addressPrefix(from)
  const event: AuditEvent = {
    name,
    at,
    by,
    ...(place !== undefined && { from: place }),
    ...(userId !== undefined && { userId }),
    ...(clientId !== undefined && { clientId }),
    facts,
  }
  return { op: 'insertAuditEvent', event }
}

/** A decision about a grant, with the events of it: redeemed or revoked. A replay and a reuse are ended by the server. */
export function auditGrant<T>(
  decision: Decision<T>,
  grant: Grant | undefined,
  context: Omit<AuditContext, 'by'>,
): Decision<T> {
  if (grant === undefined) return decision
  const who = { userId: grant.userId, clientId: grant.clientId, grant: grant.id }
  const by = 'rejection' in decision ? 'server' : 'client'
  const events = decision.writes.flatMap((write): Write | readonly Write[] => {
    switch (write.op) {
      case 'redeemGrant':
        return auditEvent('grant', { ...context, by }, { ...who, scope: grant.scope.join(' ') })
      case 'revokeGrant':
        return auditEvent('revocation', { ...context, by }, { ...who, rule: write.rule })
      case 'revokeAccessToken':
        return auditEvent('revocation', { ...context, by }, { ...who, rule: accessTokenRule })
      default:
        return []
    }
  })
  return events.length === 0 ? decision : withWrites(decision, ...events)
}

/** Only the one token ends. */
const accessTokenRule = 'rfc7009-2-access-revocation'

/**
 * The events of a change of the key ring. That a key which verified nothing any more is forgotten is none: its end was
 * told when it got one.
 */
export function keyEvents(
  before: readonly StoredKey[],
  writes: readonly Write[],
  context: AuditContext,
): readonly Write[] {
  return writes.flatMap((write): Write | readonly Write[] => {
    switch (write.op) {
      case 'insertKey':
        return auditEvent('key-made', context, termOf(write.key))
      case 'updateKey': {
        const { retiredAt } = write.key
        if (isRetired(write.key, context.at)) return auditEvent('key-retired', context, termOf(write.key))
        const isFirstEnd = before.find(({ id }) => id === write.key.id)?.retiredAt === undefined
        const name = retiredAt !== undefined && isFirstEnd ? 'key-rotated' : 'key-changed'
        return auditEvent(name, context, termOf(write.key))
      }
      case 'deleteKey': {
        const key = before.find(({ id }) => id === write.keyId)
        if (key === undefined || isRetired(key, context.at)) return []
        return auditEvent('key-retired', context, termOf({ ...key, retiredAt: context.at }))
      }
      default:
        return []
    }
  })
}

function termOf({ id, algorithm, activeAt, retiredAt }: StoredKey): AuditEvent['facts'] {
  return { key: id, algorithm, activeAt, ...(retiredAt !== undefined && { retiredAt }) }
}
