import type { Config } from '../config/schema.ts'
import {
  type ApiDefinitions,
  type ConfiguredApis,
  definitionsInForce,
  definitionsKey,
  definitionsKind,
  definitionsRevisionKind,
  noDefinitions,
} from '../domain/api-definitions.ts'
import { offlineAccess, standardScopes } from '../domain/scope-catalogue.ts'
import type { Store } from '../storage/store.ts'
import type { DeclaredScopes } from './service.ts'

/** The scopes and resources of a server, configured and stored. */
export interface LiveDefinitions {
  /** The configuration, with the `scopes` and `resources` that are in force now. */
  readonly config: Config
  /** The configuration without what is stored. */
  readonly fileConfig: Config
  /** What the store cannot change. */
  readonly configured: ConfiguredApis
  /** The revision of what is in force. */
  revision(): number
  /** Reads what was changed since the last time, here or at another node. */
  refresh(): Promise<void>
}

/** Returns what operators cannot store: what the configuration has, and the scopes that the server gives a meaning. */
export function configuredApis(config: Config, declared: DeclaredScopes): ConfiguredApis {
  const reserved = new Set([...Object.keys(declared), offlineAccess.name, ...standardScopes])
  return { issuer: config.issuer, scopes: config.scopes, resources: config.resources, reserved }
}

/** Reads the scopes and resources that are stored, and follows their changes. */
export async function openDefinitions(
  store: Pick<Store, 'find'>,
  fileConfig: Config,
  declared: DeclaredScopes,
): Promise<LiveDefinitions> {
  const configured = configuredApis(fileConfig, declared)
  const inForce = (stored: ApiDefinitions) =>
    definitionsInForce({ ...configured, scopes: fileConfig.scopes, resources: fileConfig.resources }, stored)
  let stored = noDefinitions
  let current = inForce(stored)
  const refresh = async () => {
    const { revision = 0 } = (await store.find(definitionsRevisionKind, definitionsKey)) ?? {}
    // Also a lower one: a backup was restored.
    if (revision === stored.revision) return
    stored = (await store.find(definitionsKind, definitionsKey)) ?? noDefinitions
    current = inForce(stored)
  }
  await refresh()
  const config: Config = Object.defineProperties(
    { ...fileConfig },
    {
      scopes: { enumerable: true, get: () => current.scopes },
      resources: { enumerable: true, get: () => current.resources },
    },
  )
  return { config, fileConfig, configured, revision: () => stored.revision, refresh }
}
