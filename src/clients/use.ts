import { accept, type Decision, update, type Write, withWrites } from '../domain/decision.ts'
import type { Client, Seconds } from '../domain/model.ts'

/**
 * Records the use of a client in a decision that issues tokens: the first one, which distinguishes a used registration
 * from an abandoned one, then once a day. Only tokens count: they need a user's consent, which cannot be had by
 * registering thousands of clients, while naming or authenticating a client can be done by anyone.
 */
export function noteUse<T>(decision: Decision<T>, client: Client, now: Seconds): Decision<T> {
  const use = 'rejection' in decision ? undefined : useOf(client, now)
  return use === undefined ? decision : withWrites(decision, use)
}

/** Returns the write that records the use of a client that has got a token, if it is due. */
export function useOf(client: Client, now: Seconds): Write | undefined {
  const at = dueUse(client, now)
  return at === undefined ? undefined : { op: 'touchClient', clientId: client.id, at }
}

/** Whether the client has received no token since then, and existed before. */
export function isUnusedSince({ usedAt, issuedAt }: Client, since: Seconds): boolean {
  return Math.max(usedAt, issuedAt) < since
}

function dueUse(client: Client, now: Seconds): Seconds | undefined {
  if (client.usedAt <= client.issuedAt) return Math.max(now, client.issuedAt + 1)
  return now - client.usedAt >= secondsPerDay ? now : undefined
}

/** Which of a client's two secrets a request had. */
export type SecretName = 'current' | 'previous'

/**
 * Records that a client used one of its two secrets, to the day, so that an operator sees when the previous one is
 * out of use. A client with one secret has no use for this: see `usedAt`.
 */
export function noteSecretUse(
  client: Client | undefined,
  name: SecretName,
  now: Seconds,
): Decision<undefined> {
  const { previousSecret } = client ?? {}
  if (client === undefined || previousSecret === undefined || !isSecretUseDue(client, name, now))
    return accept(undefined)
  const used =
    name === 'current'
      ? { ...client, secretUsedAt: now }
      : { ...client, previousSecret: { ...previousSecret, usedAt: now } }
  return accept(undefined, update('client', used))
}

/** Whether the use of a secret has to be recorded. */
export function isSecretUseDue(client: Client, name: SecretName, now: Seconds): boolean {
  const { previousSecret, secretUsedAt } = client
  const usedAt = name === 'current' ? secretUsedAt : previousSecret?.usedAt
  return previousSecret !== undefined && now - (usedAt ?? 0) >= secondsPerDay
}

const secondsPerDay = 86_400
