import { accessSync, chmodSync, constants, mkdirSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { resolveConfig, storeUrl } from '../settings/load.ts'
import type { Store } from '../storage/store.ts'
import { CommandFailed } from './failure.ts'
import { withServedIssuer } from './served-issuer.ts'

/** Flags that say where the settings and the state are. */
export interface LocationFlags {
  readonly config?: string
  readonly data?: string
}

/** Adds the flags every command has. */
export function addLocationFlags(command: Command): Command {
  return command
    .option('--config <file>', 'YAML file with options (LYCHGATE_CONFIG)')
    .option('--data <folder>', 'folder of the SQLite database (LYCHGATE_DATA)')
}

/** Adds the flags of an operator's command, and below its help what else there is to say, with examples. */
export function addOperatorFlags(command: Command, help: string): Command {
  return addLocationFlags(command).option('--json', 'print JSON').addHelpText('after', help)
}

/** Runs an operator's command on the store of this configuration, and closes it whatever happens. */
export async function withStore<T>(
  { config: file, data }: LocationFlags,
  action: (store: Store, config: Config) => Promise<T>,
): Promise<T> {
  // `dev` as far as the checks go: adding a user needs no secret.
  const config = withServedIssuer(
    resolveConfig({ mode: 'dev', flags: { data }, environment: process.env, file }),
  )
  const store = await openConfiguredStore(config)
  try {
    return await action(store, config)
  } finally {
    await store.close()
  }
}

/** The store of this configuration. */
export async function openConfiguredStore(config: Config): Promise<Store> {
  if (config.store === undefined) requireFolder(config.data)
  // Loaded late: a wrong option should not wait for a database driver.
  const { openStore } = await import('../storage/open.ts')
  try {
    return await openStore(storeUrl(config), { connections: config.storeConnections })
  } catch (cause) {
    throw new CommandFailed(`store: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** Makes the data folder of a development server, for this user alone. */
export function makeFolder(data: string): void {
  try {
    // An existing folder keeps the mode its owner gave it.
    if (mkdirSync(data, { recursive: true }) !== undefined) chmodSync(data, 0o700)
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? cause.code : cause
    throw new ConfigError(`data: cannot make the folder ${data} (${reason})`, { cause })
  }
}

/** @throws {ConfigError} unless this user can work in the data folder. */
export function requireFolder(data: string): void {
  const found = statSync(data, { throwIfNoEntry: false })
  if (found === undefined) {
    throw new ConfigError(
      `data: the folder ${data} does not exist; make it, or name another with --data or LYCHGATE_DATA`,
    )
  }
  if (!found.isDirectory()) throw new ConfigError(`data: ${data} is not a folder`)
  try {
    accessSync(data, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new ConfigError(`data: the folder ${data} cannot be read and written by this user`, { cause })
  }
}
