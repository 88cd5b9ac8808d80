import type { Command } from 'commander'
import {
  describeDelivery,
  type FinishedDelivery,
  finishedDeliveryKind,
  type LogoutDelivery,
  logoutDeliveryKind,
} from '../domain/logout-delivery.ts'
import { addOperatorFlags, type OperatorFlags, parseLimit } from './flags.ts'
import { withStore } from './open.ts'
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
    .option('--failed', 'only those that failed')
    .option('--limit <number>', 'at most this many', parseLimit, 1000)
  addOperatorFlags(list, deliveriesHelp).action(deliveries)
}

interface DeliveriesFlags extends OperatorFlags {
  readonly client?: string
  readonly failed?: true
  readonly limit: number
}

type Delivery = LogoutDelivery | FinishedDelivery

/** `lychgate logout deliveries`: lists finished deliveries, and then those that are pending. */
async function deliveries({ client, failed, limit, ...flags }: DeliveriesFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const all = { madeUntil: Number.MAX_SAFE_INTEGER, limit: mostRead }
    const finished = await store.listKind(finishedDeliveryKind, all)
    const pending = await store.listKind(logoutDeliveryKind, all)
    const wanted = [...finished, ...pending].filter(
      (one) => (client === undefined || one.clientId === client) && (!failed || stateOf(one) === 'failed'),
    )
    printList(flags, wanted.slice(-limit), describeDelivery, lineOf)
  })
}

/** Of each kind; the oldest are read first. */
const mostRead = 100_000

function stateOf(one: Delivery): 'pending' | FinishedDelivery['outcome'] {
  return 'outcome' in one ? one.outcome : 'pending'
}

function lineOf(one: Delivery): string[] {
  const { clientId, userId, endedAt, tries = 0, error = '' } = one
  const tried = tries === 1 ? '1 try' : `${tries} tries`
  const when = 'finishedAt' in one ? instant(one.finishedAt) : `due ${instant(dueAt(one))}`
  return [stateOf(one), clientId, userId, `session ended ${instant(endedAt)}`, tried, when, error]
}

function dueAt({ endedAt, dueAt = endedAt }: LogoutDelivery): number {
  return dueAt
}
