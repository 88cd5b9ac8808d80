import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Seconds } from '../domain/model.ts'
import type { CopyContents } from '../storage/sqlite/copy-database.ts'
import { systemClock } from '../system.ts'
import { configuredFile, failedWith } from './database-file.ts'
import { CommandFailed } from './failure.ts'
import { addLocationFlags, type LocationFlags } from './open.ts'
import { instant, printJson, printMembers } from './print.ts'

interface RestoreFlags extends LocationFlags {
  readonly json?: true
}

const help = `
Stop the server first. The database that is there stays beside the restored one, under a dated name:
restoring that undoes this. The secret of the server must be the one the backup was made with.

Examples:
  lychgate restore /backup/lychgate.db
  lychgate restore --data /var/lib/lychgate --json /backup/lychgate.db
`

/** Adds `lychgate restore`: a backup in the place of the database. */
export function addRestoreCommand(program: Command): void {
  const restore = program
    .command('restore <file>')
    .description('put a backup in the place of the database; no server may run')
    .addHelpText('after', help)
  addLocationFlags(restore).option('--json', 'print JSON').action(restoreCommand)
}

async function restoreCommand(source: string, flags: RestoreFlags): Promise<void> {
  const database = resolve(
    configuredFile(
      flags,
      'pg_restore --clean puts a dump of pg_dump in its place, with every server stopped',
    ),
  )
  const from = resolve(source)
  const now = systemClock()
  const kept = `${database}-replaced-${dated(now)}`
  const { contents, replaced } = await restore(from, database, kept)
  if (flags.json) {
    printJson({ database, from, at: now, ...contents, ...(replaced && { replaced: kept }) })
    return
  }
  printMembers({ restored: database, from, ...contents, replaced: replaced ? kept : undefined })
  process.stdout.write(`\n${consequences}\n`)
}

const consequences = `What was revoked after the backup was made lives again until it expires; to end it, retire the
handle key (lychgate keys list, lychgate keys retire). Newer refresh tokens end their approval: people are asked again.`

async function restore(
  from: string,
  database: string,
  kept: string,
): Promise<{ readonly contents: CopyContents; readonly replaced: boolean }> {
  const { copyDatabase } = await import('../storage/sqlite/copy-database.ts')
  const { DatabaseInUse, replaceDatabase } = await import('../storage/sqlite/replace-database.ts')
  const fresh = `${database}.unfinished-${process.pid}`
  const contents = await attempt(`file: ${from} was not restored`, () => copyDatabase(from, fresh))
  try {
    return { contents, replaced: replaceDatabase(fresh, database, kept) }
  } catch (cause) {
    if (cause instanceof DatabaseInUse) {
      throw new CommandFailed(`store: ${database} is open in another process; stop the server first`, {
        cause,
      })
    }
    const unreadable = cause instanceof Error && cause.name === 'SqliteError'
    const advice = unreadable ? '; stop every server, move it away, and restore again' : ''
    throw failedWith(`store: ${database} cannot be replaced${advice}`, cause)
  } finally {
    rmSync(fresh, { force: true })
  }
}

async function attempt<T>(what: string, work: () => T): Promise<T> {
  try {
    return work()
  } catch (cause) {
    throw failedWith(what, cause)
  }
}

/** `2026-11-20T13-05-00Z`: an instant as part of a file's name. */
function dated(seconds: Seconds): string {
  return `${instant(seconds).replace(' UTC', 'Z').replace(' ', 'T').replaceAll(':', '-')}`
}
