import { put, remove, type Write } from './decision.ts'
import type { Hash, Seconds, Session } from './model.ts'
import { recordKind } from './record.ts'

/**
 * What is to be done for one client when a session ends. It is inserted with a grant that was approved in the session,
 * and storage does it in the transaction that ends the session, whatever ends it and in whatever process: no place that
 * ends sessions has to know it.
 */
export interface AtSessionEnd {
  /** What the client calls the session: unique, and different for each client. */
  readonly sid: string
  readonly sessionId: Hash
  readonly userId: string
  readonly clientId: string
  /** The latest end of the session. */
  readonly expiresAt: Seconds
  /** Inserts a record of this kind, a `SessionEnded`. */
  readonly inserts?: string
  /** Revokes the grants of the client with this `sid` in `extra.session`. The value is the rule that revokes them. */
  readonly revokes?: string
}

/** What a record that is inserted at the end of a session begins with. */
export interface SessionEnded {
  readonly sid: string
  readonly userId: string
  readonly clientId: string
  readonly endedAt: Seconds
}

export const atSessionEndKind = recordKind<AtSessionEnd>('atSessionEnd', {
  id: ({ sid }) => sid,
  userId: ({ userId }) => userId,
  clientId: ({ clientId }) => clientId,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** Returns the writes of sessions that end now. */
export function atSessionEnd(due: readonly AtSessionEnd[], at: Seconds): readonly Write[] {
  return due.flatMap(({ sid, userId, clientId, inserts, revokes }): readonly Write[] => {
    const ended: SessionEnded = { sid, userId, clientId, endedAt: at }
    // Without the user as its owner: it stays when the user is removed.
    const row = inserts && { kind: inserts, id: sid, clientId, madeAt: at, body: JSON.stringify(ended) }
    return [
      remove(atSessionEndKind, sid),
      ...(row ? [{ op: 'put', kind: 'record', record: row } as const] : []),
      ...(revokes
        ? [{ op: 'revokeGrantsOfSession', userId, clientId, sid, at, rule: revokes } as const]
        : []),
    ]
  })
}

/** Returns the writes when another session takes the place of one: what is to be done waits for the end of that. */
export function atSessionEndOf(
  { id: sessionId, expiresAt }: Pick<Session, 'id' | 'expiresAt'>,
  due: readonly AtSessionEnd[],
): readonly Write[] {
  return due.map((one) => put(atSessionEndKind, { ...one, sessionId, expiresAt }))
}
