import { isUnusedSince } from '../../clients/use.ts'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { accept, type Decision, remove } from '../../domain/decision.ts'
import type { Client, Seconds } from '../../domain/model.ts'
import { systemClock } from '../../system.ts'
import { confirmOrAbort, type DestructiveFlags } from '../confirm-or-abort.ts'
import { withStore } from '../open.ts'
import { operatorContext } from '../operator.ts'
import { printJson, printMembers } from '../print.ts'
import { requireClient } from './known.ts'

/** `lychgate client remove`: a client goes, and every token it has. */
export async function clientRemove(clientId: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, name } = requireClient(await store.find('client', clientId))
    await confirmOrAbort(flags, `Remove ${name ?? id}? Every token it has dies.`, 'nothing was removed')
    const context = operatorContext()
    await store.transact('client', id, (client) => removal(requireClient(client), context))
    if (flags.json) printJson({ client_id: id, removed: true })
    else printMembers({ removed: id })
  })
}

/** `lychgate client remove-unused`: those that registered themselves and got no token for so long. */
export async function clientRemoveUnused(unused: Seconds, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const context = operatorContext()
    const since = systemClock() - unused
    const isDue = (client: Client) => client.origin === 'registered' && isUnusedSince(client, since)
    const due = (await store.list('client')).filter(isDue)
    if (due.length > 0) {
      const what = due.length === 1 ? 'one client' : `${due.length} clients`
      await confirmOrAbort(
        flags,
        `Remove ${what} that registered themselves? Their tokens die.`,
        'nothing was removed',
      )
    }
    const removed: string[] = []
    for (const { id } of due) {
      // Used in the meantime: it stays.
      const isGone = await store.transact('client', id, (client) =>
        client !== undefined && isDue(client) ? removal(client, context) : accept(false),
      )
      if (isGone) removed.push(id)
    }
    if (flags.json) printJson({ removed })
    else process.stdout.write(`removed ${removed.length}\n`)
  })
}

function removal({ id: clientId, name }: Client, context: AuditContext): Decision<boolean> {
  const event = auditEvent('client-removed', context, { clientId, ...(name && { name }) })
  return accept(true, remove('client', clientId), event)
}
