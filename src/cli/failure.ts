import { ConfigError } from '../config/error.ts'
import { OAuthError } from '../domain/errors.ts'
import { ForeignKeys, WrongSecret } from '../keys/seal.ts'
import { visibleLines } from './print.ts'

/** Exit codes of the command line, those of sysexits.h where it has one. */
export const exitCode = { ok: 0, failed: 1, usage: 64, config: 78 } as const

/** A command that was understood and could not be done; the message is one line for the user who typed it. */
export class CommandFailed extends Error {
  constructor(line: string, options?: ErrorOptions) {
    super(line, options)
    this.name = 'CommandFailed'
  }
}

/** The same for flags and arguments that do not go together or cannot be. */
export class WrongUsage extends CommandFailed {
  constructor(line: string) {
    super(line)
    this.name = 'WrongUsage'
  }
}

/**
 * Says on stderr why the process ends, and returns the exit code: one line, or one for every fault of the
 * configuration. Only our own mistakes are longer.
 */
export function reportFailure(error: unknown): number {
  const line = error instanceof ConfigError ? error.faults.join('\nlychgate: ') : expectedLine(error)
  process.stderr.write(visibleLines(`lychgate: ${line ?? unexpected(error)}\n`))
  const isConfigured =
    error instanceof ConfigError || error instanceof WrongSecret || error instanceof ForeignKeys
  if (error instanceof WrongUsage) return exitCode.usage
  return isConfigured ? exitCode.config : exitCode.failed
}

function expectedLine(error: unknown): string | undefined {
  if (error instanceof WrongSecret) return `secret: ${error.message}`
  if (error instanceof ForeignKeys) return `store: ${error.message}`
  if (error instanceof CommandFailed || error instanceof OAuthError) return error.message
  if (!(error instanceof Error)) return undefined
  if (isUnavailable(error)) return `${unavailableLine(error)}; is another process writing, or the disk full?`
  return isSystemFault(error) ? systemLine(error) : undefined
}

/** What there is to say of a store that may be there again a moment later; undefined of every other fault. */
export function passingLine(error: unknown): string | undefined {
  if (isUnavailable(error)) return unavailableLine(error)
  const isPassing =
    error instanceof CommandFailed && error.cause instanceof Error && isUnavailable(error.cause.cause)
  return isPassing ? error.message : undefined
}

/** Whether it is a StoreUnavailable. Named, not imported: its module loads a database driver. */
function isUnavailable(error: unknown): error is Error {
  return error instanceof Error && error.name === 'StoreUnavailable'
}

function unavailableLine({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}

/** A fault of the operating system carries its whole story in its members. */
interface SystemFault extends NodeJS.ErrnoException {
  readonly address?: string
  readonly port?: number
  readonly hostname?: string
}

function isSystemFault(error: Error): error is SystemFault {
  return 'syscall' in error
}

function systemLine(error: SystemFault): string {
  const { code, address, port, path, hostname } = error
  if (code === 'EADDRINUSE') {
    return `port ${port} on ${address} is in use; choose another with --port or LYCHGATE_PORT`
  }
  if (port !== undefined) return `cannot listen on ${address} port ${port} (${code})`
  if (hostname !== undefined)
    return `${hostname} has no address (${code}); name one with --host or LYCHGATE_HOST`
  return path === undefined ? error.message : `cannot use ${path} (${code})`
}

function unexpected(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
