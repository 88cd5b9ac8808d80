import type { Command } from 'commander'
import type { describeDelivery } from '../domain/logout-delivery.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { parseLimit } from './flags.ts'
import { withOperator } from './operate.ts'
import { instant, printList } from './print.ts'

const deliveriesHelp = `
A delivery tells a client that a session of a user has ended (--backchannel-logout-uri of the client). It is pending
until the client responds, and failed after three tries. Finished ones are listed for backchannelLogout.keepSeconds.

Examples:
  lychgate logout deliveries
  lychgate logout deliveries --client client_x1f8… --failed
  lychgate logout deliveries --json
`

/** Adds `lychgate logout …`: the logout tokens sent to clients. */
export function addLogoutCommands(program: Command): void {
  const group = program.command('logout').description('show the logout tokens sent to clients')
  const list = group
    .command('deliveries')
    .description('list the logout tokens that were sent, failed or are still to be sent; the newest last')
    .option('--client <client_id>', 'only to this client')
    .option('--failed', 'only failed ones')
    .option('--limit <number>', 'at most this many', parseLimit, 1000)
  addAnywhereFlags(list, deliveriesHelp).action(deliveries)
}

interface DeliveriesFlags extends ServerFlags {
  readonly client?: string
  readonly failed?: true
  readonly limit: number
}

type Delivery = ReturnType<typeof describeDelivery>

/** `lychgate logout deliveries`: lists finished deliveries, and then pending ones. */
async function deliveries({ client, failed, limit, ...flags }: DeliveriesFlags): Promise<void> {
  await withOperator(flags, ['admin:clients:read'], async ({ list }) => {
    const { listFinished, listPending } = await import('../admin/operations/activity.ts')
    const all: Delivery[] = []
    for (const operation of [listFinished, listPending]) {
      const some = (await list(operation, {})) as readonly Delivery[] // as it describes them
      all.push(...some.toSorted((one, other) => one.ended_at - other.ended_at))
    }
    const deliveries = all.filter(
      (one) => (client === undefined || one.client_id === client) && (!failed || one.state === 'failed'),
    )
    printList(flags, deliveries.slice(-limit), (one) => one, lineOf)
  })
}

function lineOf(delivery: Delivery): string[] {
  const tried = delivery.tries === 1 ? '1 try' : `${delivery.tries} tries`
  const when = 'finished_at' in delivery ? instant(delivery.finished_at) : `due ${instant(delivery.due_at)}`
  const ended = `session ended ${instant(delivery.ended_at)}`
  return [delivery.state, delivery.client_id, delivery.sub, ended, tried, when, delivery.error ?? '']
}
