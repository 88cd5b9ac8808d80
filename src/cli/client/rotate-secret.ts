import { rotateClientSecret } from '../../clients/integration.ts'
import { auditEvent } from '../../domain/audit.ts'
import { withWrites } from '../../domain/decision.ts'
import { systemRandom } from '../../system.ts'
import { confirmOrAbort, type DestructiveFlags } from '../confirm-or-abort.ts'
import { withStore } from '../open.ts'
import { operatorContext } from '../operator.ts'
import { printJson, printMembers } from '../print.ts'
import { requireClient } from './known.ts'

/** `lychgate client rotate-secret`: a new secret, shown once; the old one is dead at once. */
export async function clientRotateSecret(clientId: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, name } = requireClient(await store.find('client', clientId))
    await confirmOrAbort(
      flags,
      `Replace the secret of ${name ?? id}? The old one is dead at once.`,
      'nothing was changed',
    )
    const fresh = systemRandom(32)
    const event = auditEvent('client-secret-changed', operatorContext(), { clientId })
    const secret = await store.transact('client', clientId, (client) =>
      withWrites(rotateClientSecret(client, fresh), event),
    )
    const credentials = { client_id: clientId, client_secret: secret }
    if (flags.json) printJson(credentials)
    else printMembers(credentials)
  })
}
