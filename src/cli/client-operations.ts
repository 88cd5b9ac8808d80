import { declared } from '../features.ts'
import { CommandFailed, unlessMissing } from './failure.ts'
import type { Json, Operator } from './operate.ts'

/** The scopes of the admin API for what reads and for what changes clients. */
export const [readsClients, changesClients] = [
  ['admin:clients:read'],
  ['admin:clients:read', 'admin:clients:write'],
] as const

/** Loaded late: `--help` needs none of it. */
export async function clientOperations() {
  const { clientLocks, profileClient, rotateSecret } = await import('../admin/operations/client-acts.ts')
  const { clientOperations: operations } = await import('../admin/operations/clients.ts')
  return {
    ...operations(declared),
    ...clientLocks(declared),
    rotate: rotateSecret,
    profile: profileClient(declared),
  }
}

/** Replaces the error for a client that is not there. */
export function ofClient<T>(result: Promise<T>): Promise<T> {
  return unlessMissing(result, 'no client has this id')
}

/** Returns a client as commands print it: without what a PUT would take. */
export function printed({ configured: _, ...description }: Json): Json {
  return description
}

/** @throws {CommandFailed} if no client has this id. */
export async function readClient({ perform }: Operator, clientId: string): Promise<Json> {
  return ofClient(perform((await clientOperations()).read, { client_id: clientId }))
}

/** Returns the name of a client, or its id. */
export function nameOf({ client_id: id, client_name: name = id }: Json): string {
  return String(name)
}

/** Changes some members of a client, according to what it is by then. */
export async function editClient(
  { edit }: Operator,
  clientId: string,
  bodyOf: (found: Json) => object | Promise<object>,
): Promise<Json> {
  const { read, change } = await clientOperations()
  return ofClient(edit(read, change, { client_id: clientId }, bodyOf))
}

/** Returns what an operator configured. @throws {CommandFailed} for a client that no operator added. */
export function configuredOf({ configured }: Json): object {
  if (configured) return configured
  throw new CommandFailed('a client that registered itself changes itself, RFC 7592 section 2.2')
}
