import type { FastifyInstance, FastifyRequest } from 'fastify'
import { interactionKind } from '../domain/interaction.ts'
import type { Interaction } from '../domain/model.ts'
import { type Parameters, single } from '../domain/parameters.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Needs } from '../feature/deps.ts'

/** Returns the id of a pending request that a query or form names. It is of use only in the browser it was made in. */
export function waitingIn(sent: Parameters, name: string): string | undefined {
  const id = single(sent, name)
  return id !== undefined && /^[\w-]{22}$/.test(id) ? id : undefined
}

/** Finds a request that waits in this browser while its user does something on another page. */
export async function findWaiting(
  app: FastifyInstance,
  { store, clock }: Needs<'store' | 'clock'>,
  request: FastifyRequest,
  id: string | undefined,
): Promise<Interaction | undefined> {
  const secret = app.browser.secret(request)
  if (id === undefined || secret === undefined) return undefined
  const interaction = await store.find(interactionKind, id)
  const isHere = interaction?.browserHash === hashSecret(secret) && clock() < interaction.expiresAt
  return isHere ? interaction : undefined
}

/** Returns the address that continues a request that waits. */
export function waitingUrl(prefix: string, id: string): string {
  return `${prefix}/login?interaction=${id}`
}
