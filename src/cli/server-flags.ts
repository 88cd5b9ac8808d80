import type { Command } from 'commander'
import { addLocationFlags, type LocationFlags } from './open.ts'

/** Flags of the commands that start a server, or look at its settings, by option path. */
export interface ServerFlags extends LocationFlags {
  readonly issuer?: string
  readonly host?: string
  readonly port?: string
}

/** Adds the flags that stand for settings. */
export function addServerFlags(command: Command): Command {
  return addLocationFlags(command)
    .option('--issuer <url>', 'the public base URL (LYCHGATE_ISSUER)')
    .option('--host <address>', 'the address to listen on (LYCHGATE_HOST)')
    .option('--port <number>', 'the port to listen on, 0 for a free one (LYCHGATE_PORT)')
}
