import { type Decision, insert, type Write, withWrites } from './decision.ts'
import { isRetired } from './key-term.ts'
import { mapDefined } from './map-defined.ts'
import type { AuditEvent, AuditEventName, Grant, Seconds, StoredKey } from './model.ts'

/*
 * The audit log. An event is written in the transaction of the change it describes, so that neither exists without the
 * other. Refresh token rotations and API calls are too many to be events. An event contains no secret and nothing that
 * an unknown user typed: users type their passwords into the user name field.
 */

/** The time, the actor and the place of an event. */
export interface AuditContext {
  readonly by: AuditEvent['by']
  readonly at: Seconds
  /** The network a request came from, never the address, or `user@host` of the operator who ran a command. */
  readonly from?: string | undefined
  readonly userAgent?: string | undefined
  /** What else is known of the actor, for every event of the request. */
  readonly facts?: AuditEvent['facts']
}

/** Returns the write of one event; it belongs in the transaction of the change. */
export function auditEvent(
  name: AuditEventName,
  { by, at, from, userAgent, facts: actor }: AuditContext,
  { userId, clientId, ...facts }: Pick<AuditEvent, 'userId' | 'clientId'> & AuditEvent['facts'] = {},
): Write {
  const event: AuditEvent = {
    name,
    at,
    by,
    ...(from !== undefined && { from }),
    ...(userId !== undefined && { userId }),
    ...(clientId !== undefined && { clientId }),
    ...(userAgent !== undefined && { userAgent }),
    facts: actor === undefined ? facts : { ...facts, ...actor },
  }
  return insert('auditEvent', event)
}

/**
 * Adds the events of a decision about a grant. The server is the actor of a revocation after replay or reuse.
 * @param contextOf Called only if there is an event: most decisions are rotations, which have none.
 */
export function auditGrant<T>(
  decision: Decision<T>,
  grant: Pick<Grant, 'id' | 'userId' | 'clientId' | 'scope'> | undefined,
  contextOf: () => Omit<AuditContext, 'by'>,
): Decision<T> {
  if (grant === undefined) return decision
  const eventOf = (name: AuditEventName, facts: AuditEvent['facts']) => {
    const { userId, clientId, id } = grant
    const who = userId === undefined ? { clientId, grant: id } : { userId, clientId, grant: id }
    const by = 'rejection' in decision ? 'server' : 'client'
    return auditEvent(name, { ...contextOf(), by }, { ...who, ...facts })
  }
  const events = mapDefined(decision.writes, (write) => {
    switch (write.op) {
      case 'redeemGrant':
        return eventOf('grant', { scope: grant.scope.join(' ') })
      case 'revokeGrant':
        return eventOf('revocation', { rule: write.rule })
      case 'revokeAccessToken':
        return eventOf('revocation', { rule: accessTokenRule })
      case 'learnPkce':
        return eventOf('client-pkce-learned', {})
      default:
        return undefined
    }
  })
  return withWrites(decision, ...events)
}

/** The rule by which a single access token is revoked. */
const accessTokenRule = 'rfc7009-2-access-revocation'

/**
 * Returns the events of a change of the key ring. The deletion of a retired key is none: its retirement was one.
 */
export function keyEvents(
  before: readonly StoredKey[],
  writes: readonly Write[],
  context: AuditContext,
): readonly Write[] {
  return writes.flatMap((write): Write | readonly Write[] => {
    if (!('kind' in write) || write.kind !== 'key') return []
    switch (write.op) {
      case 'insert':
        return auditEvent('key-made', context, termOf(write.record))
      case 'update': {
        const { id, retiredAt } = write.record
        if (isRetired(write.record, context.at))
          return auditEvent('key-retired', context, termOf(write.record))
        const isFirstEnd = before.find((key) => key.id === id)?.retiredAt === undefined
        const name = retiredAt !== undefined && isFirstEnd ? 'key-rotated' : 'key-changed'
        return auditEvent(name, context, termOf(write.record))
      }
      case 'delete': {
        const key = before.find(({ id }) => id === write.key)
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

/** Describes an event to an operator. */
export function describeEvent({ name, at, by, from, userId, clientId, facts }: AuditEvent) {
  return {
    at,
    event: name,
    by,
    ...(from !== undefined && { from }),
    ...(userId !== undefined && { sub: userId }),
    ...(clientId !== undefined && { client_id: clientId }),
    facts,
  }
}
