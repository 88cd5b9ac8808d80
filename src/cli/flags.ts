import { type Command, InvalidArgumentError } from 'commander'
import { parseDuration } from '../domain/durations.ts'
import type { Seconds } from '../domain/model.ts'

/** Flags that locate the settings and the data. */
export interface LocationFlags {
  readonly config?: string
  readonly data?: string
}

/** Flags of an operator's command on the store. */
export interface OperatorFlags extends LocationFlags {
  readonly json?: true
}

/** Flags of a command that deletes or ends something. */
export interface DestructiveFlags extends OperatorFlags {
  readonly yes?: true
}

/** Flags of the commands that start a server or examine its settings, by option path. */
export interface ServerFlags extends LocationFlags {
  readonly issuer?: string
  readonly host?: string
  readonly port?: string
}

/** Flags of `lychgate serve`. */
export interface ServeFlags extends ServerFlags {
  readonly logFormat?: string
  readonly workers?: string
}

/** Adds the flags every command has. */
export function addLocationFlags(command: Command): Command {
  return command
    .option('--config <file>', 'YAML file with options (LYCHGATE_CONFIG)')
    .option('--data <folder>', 'folder of the SQLite database (LYCHGATE_DATA)')
}

/** Adds the flags of an operator's command, and `help` below the generated help. */
export function addOperatorFlags(command: Command, help: string): Command {
  return addLocationFlags(command).option('--json', 'print JSON').addHelpText('after', help)
}

/** Adds the flag that replaces the confirmation. */
export function addYesFlag(command: Command): Command {
  return command.option('--yes', 'do not ask for confirmation')
}

/** Flags of a command that the last administrator needs `--force` for. */
export interface ForceFlag {
  readonly force?: true
}

/** Adds the flag that lets a command end the last administrator. */
export function addForceFlag(command: Command): Command {
  return command.option('--force', 'even if no administrator is left')
}

/** Adds the flags that set an option. */
export function addServerFlags(command: Command): Command {
  return addLocationFlags(command)
    .option('--issuer <url>', 'the public base URL (LYCHGATE_ISSUER)')
    .option('--host <address>', 'the address to listen on (LYCHGATE_HOST)')
    .option('--port <number>', 'the port to listen on, 0 for a free one (LYCHGATE_PORT)')
}

/** Parses a duration into seconds; commander prints the error. */
export function parseSpan(text: string): Seconds {
  const seconds = parseDuration(text)
  if (seconds === undefined || seconds < 0)
    throw new InvalidArgumentError('It must be a number and a unit, such as 12h or 1d.')
  return seconds
}

/** Collects the values of a flag that may be repeated. */
export function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

/** Parses the largest number of rows to print. */
export function parseLimit(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number of at least 1.')
}
