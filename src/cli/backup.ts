import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { systemClock } from '../system.ts'
import { configuredFile, failedWith } from './database-file.ts'
import { CommandFailed } from './failure.ts'
import { addLocationFlags, type LocationFlags } from './open.ts'
import { instant, printJson, printMembers } from './print.ts'

interface BackupFlags extends LocationFlags {
  readonly force?: true
  readonly json?: true
}

const help = `
The copy is one instant of the database, in one file, checked and on the disk when the command ends.
The secret that opens the keys in it is not in it: keep both, apart from each other.

Examples:
  lychgate backup /backup/lychgate.db
  lychgate backup --force /backup/last.db
  lychgate backup --json /backup/lychgate-$(date +%F).db | jq .bytes
`

/** Adds `lychgate backup`: a copy of the database, also while servers use it. */
export function addBackupCommand(program: Command): void {
  const backup = program
    .command('backup <file>')
    .description('copy the database into this file, also while a server runs')
    .addHelpText('after', help)
  addLocationFlags(backup)
    .option('--force', 'replace the file if there is one')
    .option('--json', 'print JSON')
    .action(backupCommand)
}

async function backupCommand(target: string, flags: BackupFlags): Promise<void> {
  const database = configuredFile(flags, 'pg_dump --format=custom copies it while servers run')
  if (!existsSync(database)) {
    throw new CommandFailed(
      `store: there is no database ${database}; name its folder with --data or LYCHGATE_DATA`,
    )
  }
  const file = resolve(target)
  if (file === resolve(database)) throw new CommandFailed('file: is the database itself; name another')
  if (existsSync(file) && !flags.force) throw exists(file)
  if (!existsSync(dirname(file))) {
    throw new CommandFailed(`file: the folder ${dirname(file)} does not exist; make it`)
  }
  const { copyDatabase, sync } = await import('../storage/sqlite/copy-database.ts')
  const unfinished = `${file}.unfinished-${process.pid}`
  const at = systemClock()
  try {
    const contents = copyDatabase(database, unfinished)
    name(unfinished, file, flags)
    sync(dirname(file))
    if (flags.json) return printJson({ file, database, at, ...contents })
    printMembers({ backup: file, of: database, at: instant(at), ...contents })
    process.stdout.write('\nThe secret is not in it: a restore needs both.\n')
  } catch (cause) {
    throw failedWith(`file: nothing was backed up to ${file}`, cause)
  }
}

/** The whole file or none has the name; another process may have taken it since we looked. */
function name(unfinished: string, file: string, { force }: BackupFlags): void {
  try {
    if (force) renameSync(unfinished, file)
    else linkSync(unfinished, file)
  } catch (cause) {
    throw cause instanceof Error && 'code' in cause && cause.code === 'EEXIST' ? exists(file) : cause
  } finally {
    rmSync(unfinished, { force: true })
  }
}

function exists(file: string): CommandFailed {
  return new CommandFailed(`file: ${file} exists; name another, or replace it with --force`)
}
