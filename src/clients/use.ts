import type { Decision } from '../domain/decision.ts'
import type { Client, Seconds } from '../domain/model.ts'

/**
 * Records the use of a client in a decision that issues tokens: the first one, which distinguishes a used registration
 * from an abandoned one, then once a day. Only tokens count: they need a user's consent, which cannot be had by
 * registering thousands of clients, while naming or authenticating a client can be done by anyone.
 */
export function noteUse<T>(decision: Decision<T>, client: Client, now: Seconds): Decision<T> {
  const at = dueUse(client, now)
  if ('rejection' in decision || at === undefined) return decision
  return { ...decision, writes: [...decision.writes, { op: 'touchClient', clientId: client.id, at }] }
}

/** Whether the client has received no token since then, and existed before. */
export function isUnusedSince({ usedAt, issuedAt }: Client, since: Seconds): boolean {
  return Math.max(usedAt, issuedAt) < since
}

function dueUse(client: Client, now: Seconds): Seconds | undefined {
  if (client.usedAt <= client.issuedAt) return Math.max(now, client.issuedAt + 1)
  return now - client.usedAt >= secondsPerDay ? now : undefined
}

const secondsPerDay = 86_400
