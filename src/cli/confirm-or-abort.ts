import type { Command } from 'commander'
import { CommandFailed } from './failure.ts'
import type { LocationFlags } from './open.ts'
import { confirm } from './prompt.ts'

/** Flags of a command that ends something for good. */
export interface DestructiveFlags extends LocationFlags {
  readonly yes?: true
  readonly json?: true
}

/** Adds the flag with which a script says that it means it. */
export function addYesFlag(command: Command): Command {
  return command.option('--yes', 'do not ask')
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
  if (!yes && !(await confirm(question))) throw new CommandFailed(otherwise)
}
