import { hostname, userInfo } from 'node:os'
import { Writable } from 'node:stream'
import type { Config } from '../config/schema.ts'
import type { AuditContext } from '../domain/audit.ts'
import type { Store } from '../storage/store.ts'
import { systemClock } from '../system/system.ts'
import { CommandFailed } from './failure.ts'
import type { DestructiveFlags, ForceFlag } from './flags.ts'
import { visible } from './print.ts'
import { shellWord } from './started-as.ts'

/** Returns who runs this command, for the audit log: `user@host`, where the user is the one who called sudo. */
export function operatorName(): string {
  return `${process.env['SUDO_USER'] || ownName()}@${hostname()}`
}

/** Returns the audit context of a command that changes something now. */
export function operatorContext(): AuditContext {
  return { by: 'operator', at: systemClock(), from: operatorName() }
}

/** Returns the group of administrators that a command keeps a member of; undefined with `--force`. */
export function administratorsIn({ admin }: Config, { force }: ForceFlag): string | undefined {
  return force ? undefined : admin.group
}

/** Whether this server has something that administrators alone can open. */
export function needsAdministrator({ admin }: Config): boolean {
  return admin.pages === 'on' || admin.api === 'on'
}

/** Returns the commands that make a user an administrator: one who exists, and a new one. */
export function administratorCommands({ admin }: Config, username = 'USER'): readonly string[] {
  return [`lychgate group add ${shellWord(admin.group)} ${username}`, 'lychgate user add NAME --admin']
}

/** Returns a line about a store in which no user is an administrator, with the command; undefined otherwise. */
export async function lineWithoutAdministrator(
  store: Pick<Store, 'holds'>,
  config: Config,
  username?: string,
): Promise<string | undefined> {
  if (!needsAdministrator(config)) return undefined
  const { hasAdministrator } = await import('../users/administrators.ts')
  if (await store.holds((read) => hasAdministrator(config.admin.group, read))) return undefined
  const [existing, added] = administratorCommands(config, username)
  return `no administrator can sign in, and only administrators open ${config.issuer}/admin; make one: ${existing}, or ${added}`
}

/** Says on standard error that the user who was just added leaves the store without an administrator; a server has one. */
export async function warnWithoutAdministrator(
  { store, config }: { readonly store?: Pick<Store, 'holds'>; readonly config?: Config },
  username: string,
): Promise<void> {
  if (store === undefined || config === undefined) return
  const line = await lineWithoutAdministrator(store, config, username)
  if (line === undefined) return
  process.stderr.write(`lychgate: ${visible(line)}; the link that lychgate serve printed has ended\n`)
}

/** A container may run as a user that its system has no name for. */
function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}

/**
 * Continues only with `--yes` or after the operator confirmed.
 * @throws {CommandFailed} otherwise, and without a terminal to ask on.
 */
export async function confirmOrAbort(
  { yes }: DestructiveFlags,
  question: string,
  otherwise: string,
): Promise<void> {
  if (yes) return
  if (!process.stdin.isTTY)
    throw new CommandFailed('cannot ask for confirmation without a terminal; use --yes')
  const typed = await ask(`${question} [y/N] `, process.stderr)
  if (!/^y(es)?$/i.test(typed.trim())) throw new CommandFailed(otherwise)
}

/**
 * Reads a new password exactly as typed: twice without echo on a terminal, else the first line of standard input.
 * Never an argument: those show in process lists and shell histories.
 * @throws {CommandFailed} if the password is too short, too long or too common.
 */
export async function readNewPassword(): Promise<string> {
  const password = process.stdin.isTTY ? await askTwice() : await firstLine()
  const { passwordFault } = await import('../users/passwords.ts')
  const fault = passwordFault(password)
  if (fault === undefined) return password
  throw new CommandFailed(
    fault === 'length'
      ? 'the password must have 8 to 256 characters'
      : 'the password is one of the 3,000 most common ones; choose another',
  )
}

async function askTwice(): Promise<string> {
  const password = await askSecretly('Password: ')
  if (password !== (await askSecretly('Repeat the password: ')))
    throw new CommandFailed('the two passwords differ')
  return password
}

async function firstLine(): Promise<string> {
  const { text } = await import('node:stream/consumers')
  const [line = ''] = (await text(process.stdin)).split(/\r?\n/, 1)
  return line
}

async function askSecretly(question: string): Promise<string> {
  // readline edits the line as usual and discards its echo.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  process.stderr.write(question)
  try {
    return await ask('', nowhere)
  } finally {
    process.stderr.write('\n')
  }
}

/** Asks one question on a terminal. */
export async function ask(question: string, output: NodeJS.WritableStream): Promise<string> {
  // Loaded late: most commands do not ask.
  const { createInterface } = await import('node:readline')
  const prompt = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 })
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new CommandFailed('nothing was changed'))
    prompt.once('SIGINT', () => prompt.close())
    prompt.once('close', giveUp)
    prompt.question(question, (typed) => {
      prompt.off('close', giveUp)
      prompt.close()
      resolve(typed)
    })
  })
}
