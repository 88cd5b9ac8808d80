import { isGrantAlive } from '../../domain/grant.ts'
import type { Grant, Seconds } from '../../domain/model.ts'
import type { Store } from '../../storage/store.ts'
import { systemClock } from '../../system.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { instant, printColumns, printJson } from '../print.ts'
import { usersFor } from '../users-for.ts'
import { describeGrant, stateOf } from './grant-state.ts'

interface ListFlags extends LocationFlags {
  readonly user?: string
  readonly client?: string
  readonly ended?: true
  readonly json?: true
}

/** `lychgate grant list`: what users granted to clients, by user, oldest first. */
export async function grantList({ user, client, ended, json, ...location }: ListFlags): Promise<void> {
  await withStore(location, async (store) => {
    const now = systemClock()
    const rows: (readonly [Grant, string])[] = []
    for (const { id, username } of await usersFor(store, user)) {
      const grants = (await store.listOf('grant', id)).filter(
        (grant) => (client === undefined || grant.clientId === client) && (ended || isGrantAlive(grant, now)),
      )
      rows.push(...grants.map((grant) => [grant, username] as const))
    }
    if (json) return printJson(rows.map(([grant, username]) => describeGrant(grant, username, now)))
    const names = await clientNames(store)
    printColumns(
      rows.map(([grant, username]) => lineOf(grant, username, names.get(grant.clientId) ?? '', now)),
    )
  })
}

async function clientNames(store: Store): Promise<ReadonlyMap<string, string>> {
  return new Map((await store.list('client')).map(({ id, name = '' }) => [id, name]))
}

function lineOf(grant: Grant, username: string, client: string, now: Seconds): string[] {
  const { id, clientId, approvedAt, rotatedAt, scope } = grant
  const refreshed = rotatedAt === undefined ? 'not refreshed' : `refreshed ${instant(rotatedAt)}`
  const cells = [id, stateOf(grant, now), username, clientId, client, instant(approvedAt), refreshed]
  return [...cells, scope.join(' ')]
}
