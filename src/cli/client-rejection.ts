import { codeOf } from './failure.ts'
import type { Json, Operator } from './operate.ts'
import { instant } from './print.ts'

/** Returns the last rejected request of a client that is stored, and what would let such a request pass. */
export async function lastRejection({ perform }: Operator, clientId: string): Promise<Json | undefined> {
  // Loaded late: `--help` needs none of it.
  const { readClientRejection } = await import('../admin/operations/client-rejection.ts')
  try {
    return await perform(readClientRejection, { client_id: clientId })
  } catch (error) {
    if (codeOf(error) === 'not_found') return undefined
    throw error
  }
}

/** Returns the same as lines of a client. */
export function linesOf(rejection: Json | undefined): Json {
  if (rejection === undefined) return {}
  const { id, at, error, why, rule, stored, received, change } = rejection
  const changes = Array.isArray(change) ? change : []
  return {
    last_rejection: `${instant(Number(at))} ${error}: ${why}`,
    'last_rejection.request': id,
    'last_rejection.rule': rule,
    'last_rejection.received': received,
    'last_rejection.stored': stored,
    ...Object.fromEntries(changes.map((text, at) => [`last_rejection.change ${at + 1}`, text])),
  }
}
