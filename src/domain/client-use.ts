import type { Decision } from './decision.ts'
import type { Client, Seconds } from './model.ts'

/**
 * A decision that gives a client tokens, and notes this as its use: the first one, which tells a used registration
 * from an abandoned one, then once a day. Nothing less counts as a use: what a user agreed to cannot be had by
 * whoever registers clients by the thousand, and naming or even authenticating a client can.
 */
export function noteUse<T>(decision: Decision<T>, client: Client, now: Seconds): Decision<T> {
  const at = dueUse(client, now)
  if ('rejection' in decision || at === undefined) return decision
  return { ...decision, writes: [...decision.writes, { op: 'touchClient', clientId: client.id, at }] }
}

/** Whether it got no token since then, and had the time to. */
export function isUnusedSince({ usedAt, issuedAt }: Client, since: Seconds): boolean {
  return Math.max(usedAt, issuedAt) < since
}

function dueUse(client: Client, now: Seconds): Seconds | undefined {
  if (client.usedAt <= client.issuedAt) return Math.max(now, client.issuedAt + 1)
  return now - client.usedAt >= secondsPerDay ? now : undefined
}

const secondsPerDay = 86_400
