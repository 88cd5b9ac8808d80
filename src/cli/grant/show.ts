import type { Grant } from '../../domain/model.ts'
import type { Store } from '../../storage/store.ts'
import { systemClock } from '../../system.ts'
import { CommandFailed } from '../failure.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { instant, printJson, printMembers } from '../print.ts'
import { describeGrant } from './grant-state.ts'

/** `lychgate grant show`: one grant, and what became of it. */
export async function grantShow(id: string, flags: LocationFlags & { readonly json?: true }): Promise<void> {
  await withStore(flags, async (store) => {
    const grant = await findGrant(store, id)
    const user = await store.find('user', grant.userId)
    const description = describeGrant(grant, user?.username, systemClock())
    if (flags.json) return printJson(description)
    const readable = Object.entries(description).map(([name, value]) => [
      name,
      typeof value === 'number' ? instant(value) : value,
    ])
    printMembers(Object.fromEntries(readable))
  })
}

/** @throws {CommandFailed} when there is no such grant, or its user or client is gone. */
export async function findGrant(store: Store, id: string): Promise<Grant> {
  const grant = await store.find('grant', id)
  if (grant === undefined) throw new CommandFailed('no grant has this id')
  return grant
}
