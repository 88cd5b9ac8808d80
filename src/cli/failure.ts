import { ConfigError } from '../config/error.ts'
import { OAuthError } from '../domain/errors.ts'
import { ForeignKeys, WrongSecret } from '../keys/seal.ts'
import { visibleLines } from './print.ts'

/** Exit codes of the command line, those of sysexits.h where it has one. */
export const exitCode = { ok: 0, failed: 1, wouldChange: 2, usage: 64, tryAgain: 75, config: 78 } as const

/** A command that failed for a known reason; the message is one line for the operator. */
export class CommandFailed extends Error {
  /** The `error` of the response of a server. */
  readonly code: string | undefined

  constructor(line: string, { code, ...options }: ErrorOptions & { readonly code?: string } = {}) {
    super(line, options)
    this.name = 'CommandFailed'
    this.code = code
  }
}

/** Returns the line of a fault, after what was not done because of it. */
export function failedWith(what: string, cause: unknown): CommandFailed {
  if (cause instanceof CommandFailed) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new CommandFailed(`${what}: ${reason}`, { cause })
}

/** Returns the error code with which an operation rejected, on a store or on a server. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof OAuthError || error instanceof CommandFailed ? error.code : undefined
}

/** Replaces the error of an operation for what is not there. */
export async function unlessMissing<T>(result: Promise<T>, line: string): Promise<T> {
  try {
    return await result
  } catch (error) {
    throw codeOf(error) === 'not_found' ? new CommandFailed(line) : error
  }
}

/** Invalid flags or arguments, or an invalid combination of them. */
export class WrongUsage extends CommandFailed {
  constructor(line: string) {
    super(line)
    this.name = 'WrongUsage'
  }
}

/** Returns undefined instead of the error of an operation for what is not there. */
export async function ifFound<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result
  } catch (error) {
    if (codeOf(error) === 'not_found') return undefined
    throw error
  }
}

/** Another change came first, or the server has no time: the same command may succeed if it is run again. */
export class TryAgain extends CommandFailed {
  constructor(line: string, options?: ConstructorParameters<typeof CommandFailed>[1]) {
    super(line, options)
    this.name = 'TryAgain'
  }
}

/** A dry run found that something would change. It is no failure, and everything is printed. */
export class WouldChange extends Error {}

/**
 * Prints the reason on standard error, and returns the exit code. Prints one line, or one for each fault of the
 * configuration, and the stack of an unexpected error.
 */
export function reportFailure(error: unknown): number {
  if (error instanceof WouldChange) return exitCode.wouldChange
  const line = error instanceof ConfigError ? error.faults.join('\nlychgate: ') : expectedLine(error)
  process.stderr.write(visibleLines(`lychgate: ${line ?? unexpected(error)}\n`))
  const isConfigured =
    error instanceof ConfigError || error instanceof WrongSecret || error instanceof ForeignKeys
  if (error instanceof WrongUsage) return exitCode.usage
  if (error instanceof TryAgain) return exitCode.tryAgain
  return isConfigured ? exitCode.config : exitCode.failed
}

function expectedLine(error: unknown): string | undefined {
  const damage = damageOf(error)
  if (damage !== undefined) {
    const line = error instanceof CommandFailed ? error.message : `store: ${damage.message}`
    // Another file, such as a backup, is not replaced by a backup.
    if (!line.startsWith('store: ')) return line
    return `${line}; stop the server, and replace the database by a backup: lychgate restore FILE`
  }
  if (error instanceof WrongSecret) return `secret: ${error.message}`
  if (error instanceof ForeignKeys) return `store: ${error.message}`
  if (error instanceof CommandFailed || error instanceof OAuthError) return error.message
  if (!(error instanceof Error)) return undefined
  if (isUnavailable(error)) return `${unavailableLine(error)}; is another process writing, or the disk full?`
  return isSystemFault(error) ? systemLine(error) : undefined
}

/** Returns the error by which SQLite says that its file is damaged or none, wherever it is among the causes. */
function damageOf(error: unknown): Error | undefined {
  if (!(error instanceof Error)) return undefined
  const code = 'code' in error ? String(error.code) : ''
  return /^SQLITE_(?:CORRUPT|NOTADB)/.test(code) ? error : damageOf(error.cause)
}

/** Returns the message for a store that may be available again soon; undefined for any other error. */
export function passingLine(error: unknown): string | undefined {
  if (isUnavailable(error)) return unavailableLine(error)
  const isPassing =
    error instanceof CommandFailed && error.cause instanceof Error && isUnavailable(error.cause.cause)
  return isPassing ? error.message : undefined
}

/** Returns whether it is a StoreUnavailable. Compared by name, because its module loads a database driver. */
function isUnavailable(error: unknown): error is Error {
  return error instanceof Error && error.name === 'StoreUnavailable'
}

function unavailableLine({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}

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
