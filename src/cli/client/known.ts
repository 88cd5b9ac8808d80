import type { Known } from '../../clients/integration.ts'
import type { Config } from '../../config/schema.ts'
import type { Client } from '../../domain/model.ts'
import { withOfflineAccess } from '../../domain/scope-catalogue.ts'
import { clientMembers } from '../../features.ts'
import { CommandFailed } from '../failure.ts'

/** What a client of this server can be about. */
export function knownTo({
  issuer,
  resources,
  scopes,
}: Pick<Config, 'issuer' | 'resources' | 'scopes'>): Known {
  return {
    scopes: withOfflineAccess(scopes).map(({ name }) => name),
    resources: [issuer, ...resources.map(({ identifier }) => identifier)],
    members: clientMembers,
  }
}

/** @throws {CommandFailed} when there is no such client. */
export function requireClient(client: Client | undefined): Client {
  if (client === undefined) throw new CommandFailed('no client has this id')
  return client
}
