import type { Seconds } from './model.ts'
import { recordKind } from './record.ts'
import type { SessionEnded } from './session-end.ts'

/** A logout token that a client is still to be sent, OpenID Connect Back-Channel Logout §2.5. */
export interface LogoutDelivery extends SessionEnded {
  /** How often it was tried so far. */
  readonly tries?: number
  /** When it is tried next; absent: as soon as the session has ended. */
  readonly dueAt?: Seconds
  /** Until then one node sends it, and the others leave it alone. */
  readonly leasedUntil?: Seconds
  /** Why the last try failed. */
  readonly error?: string
}

/** A delivery that has come to an end. */
export interface FinishedDelivery extends SessionEnded {
  readonly outcome: 'delivered' | 'failed'
  readonly tries: number
  readonly finishedAt: Seconds
  readonly expiresAt: Seconds
  readonly error?: string
}

/** Ordered by when they are due: storage inserts them when a session ends. */
export const logoutDeliveryKind = recordKind<LogoutDelivery>('logoutDelivery', {
  id: ({ sid }) => sid,
  clientId: ({ clientId }) => clientId,
  madeAt: ({ endedAt, dueAt = endedAt, leasedUntil = dueAt }) => leasedUntil,
})

/** Returns the clients that took none of these deliveries, and did not take some. */
export function unreachableClients(finished: readonly FinishedDelivery[]): readonly string[] {
  const of = (wanted: FinishedDelivery['outcome']) =>
    new Set(finished.flatMap(({ outcome, clientId }) => (outcome === wanted ? clientId : [])))
  const reached = of('delivered')
  return [...of('failed')].filter((clientId) => !reached.has(clientId))
}

/** For operators: `lychgate logout deliveries` and `lychgate doctor`. */
export const finishedDeliveryKind = recordKind<FinishedDelivery>('finishedLogoutDelivery', {
  id: ({ sid }) => sid,
  clientId: ({ clientId }) => clientId,
  madeAt: ({ finishedAt }) => finishedAt,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** Describes a delivery to an operator. It is pending until it has finished. */
export function describeDelivery(delivery: LogoutDelivery | FinishedDelivery) {
  const { sid, clientId, userId, endedAt, tries = 0, error } = delivery
  return {
    state: 'outcome' in delivery ? delivery.outcome : 'pending',
    client_id: clientId,
    sub: userId,
    sid,
    ended_at: endedAt,
    tries,
    ...('finishedAt' in delivery
      ? { finished_at: delivery.finishedAt }
      : { due_at: delivery.dueAt ?? endedAt }),
    ...(error !== undefined && { error }),
  }
}
