import { loadConfig, storeUrl } from '../settings/load.ts'
import { CommandFailed } from './failure.ts'
import { type LocationFlags, requireFolder } from './open.ts'

/**
 * The database file of this configuration, without opening it.
 * @param tool What does the same for PostgreSQL.
 */
export function configuredFile({ config: file, data }: LocationFlags, tool: string): string {
  // `dev` as far as the checks go: copying a file needs no secret.
  const config = loadConfig({ mode: 'dev', flags: { data }, environment: process.env, file })
  if (config.store === undefined) requireFolder(config.data)
  const url = storeUrl(config)
  if (url.startsWith('sqlite:')) return url.slice('sqlite:'.length)
  throw new CommandFailed(`store: is in PostgreSQL; ${tool}`)
}

/** A fault of a file as one line about it. */
export function failedWith(what: string, cause: unknown): CommandFailed {
  if (cause instanceof CommandFailed) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new CommandFailed(`${what}: ${reason}`, { cause })
}
