import type { Command } from 'commander'
import { changeIntegration } from '../clients/integration.ts'
import { auditEvent } from '../domain/audit.ts'
import { withWrites } from '../domain/decision.ts'
import { allowedGroupsOf, groupKind } from '../domain/group.ts'
import type { Client } from '../domain/model.ts'
import { declared } from '../features.ts'
import type { Store } from '../storage/store.ts'
import { knownTo } from './client-metadata.ts'
import { WrongUsage } from './failure.ts'
import { requireClient } from './find.ts'
import { addOperatorFlags, collect, type OperatorFlags } from './flags.ts'
import { findGroup } from './group.ts'
import { withStore } from './open.ts'
import { operatorContext } from './operator.ts'
import { printResult } from './print.ts'

const accessHelp = `
Without a flag it shows who may use the client. --allow names every group that may: the members of those groups, and of
the groups below them. Other users see a page that names a contact (groups.contact, or the contact of the client), and
the access that they have ends with the next refresh. Clients that act for themselves are not affected.

Examples:
  lychgate client access client_x1f8…
  lychgate client access client_x1f8… --allow staff --allow 'Students of 2026'
  lychgate client access client_x1f8… --everyone
`

interface AccessFlags extends OperatorFlags {
  readonly allow?: readonly string[]
  readonly everyone?: true
}

/** Adds `lychgate client access`: which groups may use a client. */
export function addClientAccessCommand(client: Command): void {
  const access = client
    .command('access <client_id>')
    .description('show or change which groups of users may use a client')
    .option('--allow <group>', 'a group whose members may use it; may be repeated', collect)
    .option('--everyone', 'every user may use it')
  addOperatorFlags(access, accessHelp).action(clientAccess)
}

/** `lychgate client access`: shows or changes which groups may use a client. */
async function clientAccess(clientId: string, { allow, everyone, ...flags }: AccessFlags): Promise<void> {
  if (allow !== undefined && everyone) throw new WrongUsage('--allow and --everyone exclude each other')
  await withStore(flags, async (store, config) => {
    const found = requireClient(await store.find('client', clientId))
    if (!(member in declared.clientMetadata)) throw new WrongUsage('this server has no groups')
    if (allow === undefined && !everyone) return print(store, flags, found)
    const groups = await Promise.all((allow ?? []).map((name) => findGroup(store, name)))
    const change = { description: { [member]: groups.map(({ id }) => id) } }
    const names = groups.map(({ name }) => name).join(', ')
    const facts = { clientId, changed: member, allowed: names || 'everyone' }
    const event = auditEvent('client-changed', operatorContext(), facts)
    const changed = await store.transact('client', clientId, (current) =>
      withWrites(changeIntegration(current, change, knownTo(config)), event),
    )
    await print(store, flags, changed)
  })
}

/** The member of client metadata that has the ids of the groups. */
const member = 'allowed_groups'

async function print(store: Store, flags: OperatorFlags, client: Client): Promise<void> {
  const ids = allowedGroupsOf(client)
  const groups = await Promise.all((ids ?? []).map((id) => store.find(groupKind, id)))
  const names = ids?.map((id, index) => groups[index]?.name ?? `${id} (deleted)`)
  const described = { client_id: client.id, allowed_groups: names ?? null }
  printResult(flags, described, { ...described, allowed_groups: names ?? 'everyone' })
}
