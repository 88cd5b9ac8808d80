import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import type { ResolvedConfig } from '../settings/load.ts'
import { visible } from './print.ts'

const name = 'issuer'

/** Keeps the issuer of a server in its data folder, for the commands beside it. Returns the one before, if it differs. */
export function rememberIssuer(config: Config): string | undefined {
  const before = readServedIssuer(config)
  if (config.store !== undefined || before === config.issuer) return undefined
  writeFileSync(join(config.data, name), `${config.issuer}\n`, { mode: 0o600 })
  return before
}

/**
 * The settings of a command with the issuer of the server whose data folder it works on. Says so on standard error
 * where that is not the issuer the settings come to.
 * @throws {ConfigError} when the settings name another issuer than the server does.
 */
export function withServedIssuer({ config, origins }: ResolvedConfig): Config {
  const served = readServedIssuer(config)
  if (served === undefined || served === config.issuer) return config
  const [given, port] = [origins.get('issuer'), origins.get('port')]
  // A port that only the server needs names no issuer here; as a flag of the command it does.
  if (given !== undefined && (given !== port || port.kind === 'flag')) {
    throw new ConfigError(
      `issuer: ${given.name} makes it ${config.issuer}, but the server of ${config.data} was last started as ${served}; leave ${given.name} out, name another folder with --data, or start the server with that issuer first`,
    )
  }
  process.stderr.write(`lychgate: issuer ${visible(served)}, as the server of ${visible(config.data)}\n`)
  return { ...config, issuer: served }
}

/** The issuer this data folder was last served with; a store elsewhere has none. */
function readServedIssuer({ store, data }: Pick<Config, 'store' | 'data'>): string | undefined {
  if (store !== undefined) return undefined
  try {
    const text = readFileSync(join(data, name), 'utf8').trim()
    return URL.canParse(text) ? text : undefined
  } catch {
    // No server has been started here, or not by this user: then the settings count.
    return undefined
  }
}
