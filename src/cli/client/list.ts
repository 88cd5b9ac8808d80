import { isUnusedSince } from '../../clients/use.ts'
import type { Client, ClientOrigin, Seconds } from '../../domain/model.ts'
import { systemClock } from '../../system.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { instant, printColumns, printJson } from '../print.ts'
import { authenticationOf, describeClient } from './description.ts'

interface ListFlags extends LocationFlags {
  readonly json?: true
  readonly origin?: ClientOrigin
  readonly unused?: Seconds
}

/** `lychgate client list`: every client, or some of them, oldest first. */
export async function clientList({ origin, unused, json, ...location }: ListFlags): Promise<void> {
  await withStore(location, async (store, config) => {
    const since = unused === undefined ? undefined : systemClock() - unused
    const isWanted = (client: Client) =>
      (origin === undefined || client.origin === origin) &&
      (since === undefined || isUnusedSince(client, since))
    const clients = (await store.list('client')).filter(isWanted)
    if (json) return printJson(clients.map((client) => describeClient(client, config)))
    printColumns(clients.map(lineOf))
  })
}

function lineOf(client: Client): string[] {
  const { id, origin, issuedAt, usedAt, name = '' } = client
  const used = usedAt <= issuedAt ? 'never used' : `used ${instant(usedAt).slice(0, 10)}`
  const rules = [authenticationOf(client), ...weaknessesOf(client)].join(', ')
  return [id, origin, rules, instant(issuedAt).slice(0, 10), used, name]
}

/** What an operator switched off for this client. */
function weaknessesOf({ pkceOptional, consent }: Client): string[] {
  return [...(pkceOptional ? ['PKCE optional'] : []), ...(consent === 'skip' ? ['consent skipped'] : [])]
}
