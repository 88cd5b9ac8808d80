import type { Command } from 'commander'
import { auditEvent } from '../domain/audit.ts'
import { accept, withWrites } from '../domain/decision.ts'
import { rotateClientSecret } from '../domain/integration.ts'
import type { Client } from '../domain/model.ts'
import { systemRandom } from '../system.ts'
import { addClientAddCommand } from './client-add.ts'
import { describeClient } from './client-description.ts'
import { CommandFailed } from './failure.ts'
import { addLocationFlags, type LocationFlags, withStore } from './open.ts'
import { operatorOccasion } from './operator.ts'
import { printColumns, printJson, printMembers } from './print.ts'
import { confirm } from './prompt.ts'

interface ClientFlags extends LocationFlags {
  readonly json?: true
  readonly yes?: true
}

/** Adds `lychgate client …`: the clients an operator arranges, and a view of those that registered themselves. */
export function addClientCommands(program: Command): void {
  const group = program.command('client').description('add, list, show and remove clients')
  addClientAddCommand(group)
  const list = group.command('list').description('every client, oldest first')
  addLocationFlags(list).option('--json', 'print JSON').action(clientList)
  const show = group
    .command('show <client_id>')
    .description('what is stored about a client; never its secret')
  addLocationFlags(show).option('--json', 'print JSON').action(clientShow)
  const remove = group.command('remove <client_id>').description('remove a client; its tokens die with it')
  addLocationFlags(remove).option('--yes', 'do not ask').option('--json', 'print JSON').action(clientRemove)
  const rotate = group
    .command('rotate-secret <client_id>')
    .description('a new secret; the old one is dead at once')
  addLocationFlags(rotate).option('--json', 'print JSON').action(clientRotateSecret)
}

async function clientList(flags: ClientFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const clients = await store.list('client')
    if (flags.json) return printJson(clients.map((client) => describeClient(client, config)))
    printColumns(
      clients.map(({ id, origin, authenticationMethod, name = '' }) => [
        id,
        origin,
        authenticationMethod,
        name,
      ]),
    )
  })
}

async function clientShow(clientId: string, flags: ClientFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const description = describeClient(requireClient(await store.find('client', clientId)), config)
    if (flags.json) printJson(description)
    else printMembers(description)
  })
}

async function clientRemove(clientId: string, flags: ClientFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, name } = requireClient(await store.find('client', clientId))
    if (!flags.yes && !(await confirm(`Remove ${name ?? id}? Every token it has dies.`))) {
      throw new CommandFailed('nothing was removed')
    }
    const event = auditEvent('client-removed', operatorOccasion(), { clientId: id, ...(name && { name }) })
    await store.transact('client', id, (client) =>
      accept(undefined, { op: 'deleteClient', clientId: requireClient(client).id }, event),
    )
    if (flags.json) printJson({ client_id: id, removed: true })
    else printMembers({ removed: id })
  })
}

async function clientRotateSecret(clientId: string, flags: ClientFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const fresh = systemRandom(32)
    const event = auditEvent('client-secret-changed', operatorOccasion(), { clientId })
    const secret = await store.transact('client', clientId, (client) =>
      withWrites(rotateClientSecret(client, fresh), event),
    )
    const credentials = { client_id: clientId, client_secret: secret }
    if (flags.json) printJson(credentials)
    else printMembers(credentials)
  })
}

function requireClient(client: Client | undefined): Client {
  if (client === undefined) throw new CommandFailed('no client has this id')
  return client
}
