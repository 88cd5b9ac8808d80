import { accessSync, chmodSync, constants, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { mintSecret, secretBytes } from '../domain/secret.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import { type ResolvedConfig, resolveConfig, storeUrl } from '../settings/load.ts'
import type { Store } from '../storage/store.ts'
import { type RandomSource, systemClock, systemRandom } from '../system/system.ts'
import { CommandFailed } from './failure.ts'
import type { LocationFlags } from './flags.ts'
import { visible } from './print.ts'

/** Runs an operator's command on the store of this configuration, and closes the store afterwards. */
export async function withStore<T>(
  { config: file, data }: LocationFlags,
  action: (store: Store, config: Config) => Promise<T>,
): Promise<T> {
  // By the rules of `dev`, because most commands need no secret.
  const config = withServedIssuer(
    resolveConfig({ mode: 'dev', flags: { data }, environment: process.env, file }),
  )
  const store = await openConfiguredStore(config)
  const notices = config.mail.url === undefined ? undefined : await noticesOf(config, store)
  try {
    return await action(notices?.store ?? store, config)
  } finally {
    await notices?.settled()
    await store.close()
  }
}

/** Loaded late: most commands send no email. */
async function noticesOf(config: Config, store: Store) {
  const { announcing } = await import('../pages/emails/notices.ts')
  return announcing(config, store, (line) => void process.stderr.write(`lychgate: ${visible(line)}\n`))
}

/**
 * Opens the store of this configuration.
 * @param isShared Other processes of the same server use it all the time.
 */
export async function openConfiguredStore(config: Config, isShared = false): Promise<Store> {
  if (config.store === undefined) requireFolder(config.data)
  // Loaded here: a wrong option should not wait for a database driver.
  const { openStore } = await import('../storage/open.ts')
  try {
    return await openStore(storeUrl(config), { connections: config.storeConnections, isShared })
  } catch (cause) {
    throw new CommandFailed(`store: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** Creates the data folder of a development server, accessible to this user only. */
export function makeFolder(data: string): void {
  try {
    // An existing folder keeps the mode its owner gave it.
    if (mkdirSync(data, { recursive: true }) !== undefined) chmodSync(data, 0o700)
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? cause.code : cause
    throw new ConfigError(`data: cannot create the folder ${data} (${reason})`, { cause })
  }
}

/** @throws {ConfigError} unless this user can work in the data folder. */
export function requireFolder(data: string): void {
  const stats = statSync(data, { throwIfNoEntry: false })
  if (stats === undefined) {
    throw new ConfigError(
      `data: the folder ${data} does not exist; create it, or name another with --data or LYCHGATE_DATA`,
    )
  }
  if (!stats.isDirectory()) throw new ConfigError(`data: ${data} is not a folder`)
  try {
    accessSync(data, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new ConfigError(`data: the folder ${data} cannot be read and written by this user`, { cause })
  }
}

/** Stores the issuer of a server in its data folder, for other commands. Returns the one before, if it differs. */
export function rememberIssuer(config: Config): string | undefined {
  const before = readServedIssuer(config)
  if (config.store !== undefined || before === config.issuer) return undefined
  writeFileSync(join(config.data, 'issuer'), `${config.issuer}\n`, { mode: 0o600 })
  return before
}

/**
 * Returns the settings of a command with the issuer of the server whose data folder it works on. Prints it on standard
 * error if the settings result in another issuer.
 * @throws {ConfigError} when the settings name another issuer than the server does.
 */
export function withServedIssuer({ config, origins }: ResolvedConfig): Config {
  const served = readServedIssuer(config)
  if (served === undefined || served === config.issuer) return config
  const [issuer, port] = [origins.get('issuer'), origins.get('port')]
  // A port that only the server needs names no issuer here; as a flag of the command it does.
  if (issuer !== undefined && (issuer !== port || port.kind === 'flag')) {
    throw new ConfigError(
      `issuer: ${issuer.name} makes it ${config.issuer}, but the server of ${config.data} was last started as ${served}; leave ${issuer.name} out, name another folder with --data, or start the server with that issuer first`,
    )
  }
  process.stderr.write(`lychgate: issuer ${visible(served)}, as the server of ${visible(config.data)}\n`)
  return { ...config, issuer: served }
}

/** Returns the issuer of the last server on this data folder. A store elsewhere has none. */
function readServedIssuer({ store, data }: Pick<Config, 'store' | 'data'>): string | undefined {
  if (store !== undefined) return undefined
  try {
    const text = readFileSync(join(data, 'issuer'), 'utf8').trim()
    return URL.canParse(text) ? text : undefined
  } catch {
    // No server has been started here, or not by this user: the settings apply.
    return undefined
  }
}

/** Returns the secret of a development server. It is created once in the data folder, readable by this user only. */
export function keepDevSecret(data: string, random: RandomSource): string {
  const stored = readDevSecret(data)
  if (stored !== undefined) return stored
  const secret = mintSecret('sealing', random(secretBytes))
  try {
    writeFileSync(join(data, 'dev-secret'), `${secret}\n`, { mode: 0o600, flag: 'wx' })
    return secret
  } catch (error) {
    // Two servers started at once: the secret of the first one counts.
    const other = readDevSecret(data)
    if (other === undefined) throw error
    return other
  }
}

/** Reads the development secret of this data folder, if there is one. */
export function readDevSecret(data: string): string | undefined {
  try {
    return readFileSync(join(data, 'dev-secret'), 'utf8').trim() || undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error && ['ENOENT', 'ENOTDIR'].includes(String(error.code)))
      return undefined
    throw error
  }
}

/** Returns the secret of the configuration, or that of a development server in its data folder. */
export function secretOf(config: Config): string | undefined {
  return config.secret ?? readDevSecret(config.data)
}

/**
 * Opens the keys of this store for reading.
 * @throws {ConfigError} for a missing secret.
 * @throws {WrongSecret}
 */
export async function openConfiguredKeys(store: Store, config: Config): Promise<KeyRing> {
  const secret = await requireSecret(store, config)
  // Loaded late, as below: most commands do not need jose.
  const { loadKeyRing } = await import('../keys/key-ring.ts')
  return await loadKeyRing({ store, secret, clock: systemClock, random: systemRandom })
}

/** @throws {WrongSecret} unless this key opens every key that is not retired. */
export async function assertSecret(store: Store, sealingKey: Buffer): Promise<void> {
  const { assertOpen } = await import('../keys/change-keys.ts')
  const { sealingKeysOf } = await import('../keys/sealing-keys.ts')
  const { opening } = await sealingKeysOf(store, sealingKey)
  assertOpen(await store.list('key'), opening, systemClock())
}

/** Returns the secret of a store that has keys. */
export async function requireSecret(store: Store, config: Config): Promise<string> {
  const secret = secretOf(config)
  if (secret === undefined) {
    throw new ConfigError('secret: the keys are encrypted; set LYCHGATE_SECRET or LYCHGATE_SECRET_FILE')
  }
  if ((await store.list('key')).length > 0) return secret
  throw new CommandFailed('this store has no keys yet; a server creates them when it starts')
}
