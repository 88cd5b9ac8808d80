import { realpathSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'

/** How this process was started. */
export interface Start {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** The program as it was typed, which is Node or the executable. */
  readonly argv0: string
  /** The script of `node src/lychgate.js`; for an executable its own file. */
  readonly script: string
  readonly folder: string
}

/**
 * Returns what to type in place of `lychgate` in a shell in this folder: npm finds the program for its own scripts only.
 */
export function startedAs({ environment, argv0, script, folder }: Start = thisStart()): string {
  if (environment['npm_lifecycle_event'] !== undefined) return 'npx lychgate'
  if (isInPath(script, environment)) return 'lychgate'
  if (!script.endsWith('.js')) return shellWord(argv0)
  return `${shellWord(argv0)} ${shellWord(relative(folder, script) || script)}`
}

function thisStart(): Start {
  const { env: environment, argv0, argv, execPath } = process
  const [, script = ''] = argv
  return { environment, argv0, script: script.endsWith('.js') ? script : execPath, folder: process.cwd() }
}

/** Whether the shell finds this file, or a link to it, by the name of the program. */
function isInPath(file: string, { PATH = '' }: Start['environment']): boolean {
  const found = PATH.split(delimiter).flatMap((folder) => realPathOf(join(folder, 'lychgate')) ?? [])
  return found[0] !== undefined && found[0] === realPathOf(file)
}

function realPathOf(file: string): string | undefined {
  try {
    return realpathSync(file)
  } catch {
    // There is no such file, or not for this user.
    return undefined
  }
}

/** Returns text as one word of a shell. */
export function shellWord(text: string): string {
  return /^[\w./:@+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
