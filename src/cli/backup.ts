import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Seconds } from '../domain/model.ts'
import { loadConfig, storeUrl } from '../settings/load.ts'
import type { CopyContents } from '../storage/sqlite/backup.ts'
import { systemClock } from '../system/system.ts'
import type { BackupSource, CopyPlace } from './backup-folder.ts'
import { CommandFailed, failedWith, WrongUsage } from './failure.ts'
import { addLocationFlags, type LocationFlags, type OperatorFlags, parseLimit, parseSpan } from './flags.ts'
import { requireFolder } from './open.ts'
import { dated, instant, printJson, printMembers } from './print.ts'

const backupHelp = `
The copy shows the database at one instant, in one file. It is verified and written to the disk when the command ends.
It does not contain the secret that opens its keys: keep both, in different places.
With --every the command goes on until it is stopped, and <file> is a folder: each copy has its time as its name, and
those beyond --keep are deleted. It waits for its time if the folder has a newer copy.
<file> may be in an S3 bucket: s3://BUCKET/KEY, and with --every s3://BUCKET/PREFIX/. The options of backup, such as
backup.endpoint, name its server and keys.

Examples:
  lychgate backup /backup/lychgate.db
  lychgate backup --force /backup/last.db
  lychgate backup --json /backup/lychgate-$(date +%F).db | jq .bytes
  lychgate backup --every 6h --keep 28 /backup
  lychgate backup --every 1d --keep 30 s3://backups/lychgate/
`

const restoreHelp = `
Stop the server first. The current database is kept under a dated name in the same folder; restore that one to undo
this. The secret of the server must be the one that was used when the backup was made.
With --rehearse nothing is replaced, and servers may run: the backup is restored next to the database, updated,
opened with the secret, and deleted. The report says what is in it. <file> may be a folder of --every, and in a bucket
(s3://BUCKET/KEY, s3://BUCKET/PREFIX/).

Examples:
  lychgate restore /backup/lychgate.db
  lychgate restore --data /var/lib/lychgate --json /backup/lychgate.db
  lychgate restore --rehearse /backup
  lychgate restore --rehearse s3://backups/lychgate/
`

/** Adds `lychgate backup`: a copy of the database, also while servers use it. */
export function addBackupCommand(program: Command): void {
  const command = program
    .command('backup <file>')
    .description('copy the database into a file, also while a server runs')
    .addHelpText('after', backupHelp)
  addLocationFlags(command)
    .option('--force', 'replace the file if there is one')
    .option('--json', 'print JSON')
    .option('--every <duration>', 'repeat this, such as 6h; <file> is a folder', parseSpan)
    .option('--keep <number>', `with --every: how many copies stay (default: ${keptByDefault})`, parseLimit)
    .action(backup)
}

/** Adds `lychgate restore`: replaces the database with a backup. */
export function addRestoreCommand(program: Command): void {
  const command = program
    .command('restore <file>')
    .description('replace the database with a backup; no server may run')
    .addHelpText('after', restoreHelp)
  addLocationFlags(command)
    .option('--json', 'print JSON')
    .option('--rehearse', 'restore it next to the database, report, and delete it again')
    .action(restore)
}

const keptByDefault = 7

interface BackupFlags extends OperatorFlags {
  readonly force?: true
  readonly every?: Seconds
  readonly keep?: number
}

type CopyFlags = Omit<BackupFlags, 'every' | 'keep'>

interface RestoreFlags extends OperatorFlags {
  readonly rehearse?: true
}

async function backup(target: string, { every, keep, ...flags }: BackupFlags): Promise<void> {
  if (every === undefined) {
    if (keep !== undefined) throw new WrongUsage('--keep goes with --every')
    return isBucket(target) ? uploadOnce(target, flags) : backUp(target, flags)
  }
  if (every < 1) throw new WrongUsage('--every is at least 1s')
  if (flags.force) throw new WrongUsage('--force goes without --every, which replaces no copy')
  const { copiesInFolder, repeatBackups } = await import('./backup-folder.ts')
  const place = isBucket(target)
    ? await copiesInBucket(target, flags)
    : copiesInFolder(resolve(target), (file) => backUp(file, flags))
  await repeatBackups(place, { every, keep: keep ?? keptByDefault })
}

function isBucket(target: string): boolean {
  return target.startsWith('s3://')
}

async function uploadOnce(target: string, flags: CopyFlags): Promise<void> {
  const { openCopies } = await import('./backup-bucket.ts')
  const { key, add, addressOf } = openCopies(target, flags)
  if (key === '' || key.endsWith('/'))
    throw new WrongUsage(`file: ${target} is a folder; name the copy, or repeat it with --every`)
  const database = existingFile(flags)
  const at = systemClock()
  const contents = await add(key, database, { replace: flags.force === true })
  printCopy({ file: addressOf(key), database, at, contents }, flags)
}

async function copiesInBucket(target: string, flags: CopyFlags): Promise<CopyPlace> {
  const { openCopies } = await import('./backup-bucket.ts')
  const copies = openCopies(target.endsWith('/') ? target : `${target}/`, flags)
  return {
    names: copies.names,
    add: async (name) => {
      const [database, at, key] = [existingFile(flags), systemClock(), copies.key + name]
      const contents = await copies.add(key, database, { replace: false })
      printCopy({ file: copies.addressOf(key), database, at, contents }, flags)
    },
    delete: copies.delete,
  }
}

async function backUp(target: string, flags: CopyFlags): Promise<void> {
  const database = existingFile(flags)
  const file = resolve(target)
  if (file === resolve(database)) throw new CommandFailed('file: is the database itself; name another')
  if (existsSync(file) && !flags.force) throw exists(file)
  if (!existsSync(dirname(file))) {
    throw new CommandFailed(`file: the folder ${dirname(file)} does not exist; make it`)
  }
  const { copyDatabase, sync } = await import('../storage/sqlite/backup.ts')
  const unfinished = `${file}.unfinished-${process.pid}`
  const at = systemClock()
  try {
    const contents = copyDatabase(database, unfinished)
    nameCopy(unfinished, file, flags)
    sync(dirname(file))
    printCopy({ file, database, at, contents }, flags)
  } catch (cause) {
    throw failedWith(`file: nothing was backed up to ${file}`, cause)
  }
}

interface Copy {
  readonly file: string
  readonly database: string
  readonly at: Seconds
  readonly contents: CopyContents
}

function printCopy({ file, database, at, contents }: Copy, flags: CopyFlags): void {
  if (flags.json) {
    printJson({ file, database, at, ...contents })
    return
  }
  printMembers({ backup: file, of: database, at: instant(at), ...contents })
  process.stdout.write('\nThe backup does not contain the secret: a restore needs both.\n')
}

/** Returns the database file of this configuration, which exists. */
function existingFile(flags: LocationFlags): string {
  const database = configuredFile(flags, 'pg_dump --format=custom copies it while servers run')
  if (existsSync(database)) return database
  const advice = 'name its folder with --data or LYCHGATE_DATA'
  throw new CommandFailed(`store: there is no database ${database}; ${advice}`)
}

/** Renames the complete copy. Another process may have created the file since it was checked. */
function nameCopy(unfinished: string, file: string, { force }: Pick<BackupFlags, 'force'>): void {
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

async function restore(source: string, { rehearse, ...flags }: RestoreFlags): Promise<void> {
  const tool = rehearse
    ? 'restore a dump into an empty database, and run lychgate keys list on that one'
    : 'pg_restore --clean puts a dump of pg_dump in its place, with every server stopped'
  const database = resolve(configuredFile(flags, tool))
  if (!isBucket(source)) return restoreFrom({ file: resolve(source), name: resolve(source) }, database)
  const { openCopies } = await import('./backup-bucket.ts')
  const copies = openCopies(source, flags)
  const isFolder = copies.key === '' || copies.key.endsWith('/')
  if (isFolder && !rehearse) throw new WrongUsage(`file: ${source} is a folder; name one of its copies`)
  const { newestOf } = await import('./backup-folder.ts')
  const newest = isFolder ? newestOf(await copies.names()) : ''
  if (newest === undefined) throw new CommandFailed(`file: ${source} has no copy of --every`)
  const key = copies.key + newest
  return copies.withDownload(key, database, (file) =>
    restoreFrom({ file, name: copies.addressOf(key) }, database),
  )

  async function restoreFrom(from: BackupSource, database: string): Promise<void> {
    if (rehearse) {
      const { rehearseRestore } = await import('./backup-folder.ts')
      return rehearseRestore(from, database, flags)
    }
    const now = systemClock()
    const replacedFile = `${database}-replaced-${dated(now)}`
    const { contents, replaced } = await replace(from, database, replacedFile)
    if (flags.json) {
      const report = { database, from: from.name, at: now, ...contents }
      return printJson({ ...report, ...(replaced && { replaced: replacedFile }) })
    }
    const report = { restored: database, from: from.name, ...contents }
    printMembers({ ...report, replaced: replaced ? replacedFile : undefined })
    process.stdout.write(`\n${consequences}\n`)
  }
}

const consequences = `Tokens that were revoked after the backup was made are valid again until they expire; to end them, retire the handle
key (lychgate keys list, lychgate keys retire). A newer refresh token revokes its grant: the user is asked again.`

async function replace(
  from: BackupSource,
  database: string,
  replaced: string,
): Promise<{ readonly contents: CopyContents; readonly replaced: boolean }> {
  const { copyDatabase, DatabaseInUse, replaceDatabase } = await import('../storage/sqlite/backup.ts')
  const fresh = `${database}.unfinished-${process.pid}`
  let contents: CopyContents
  try {
    contents = copyDatabase(from.file, fresh)
  } catch (cause) {
    throw failedWith(`file: ${from.name} was not restored`, cause)
  }
  try {
    return { contents, replaced: replaceDatabase(fresh, database, replaced) }
  } catch (cause) {
    if (cause instanceof DatabaseInUse) {
      const line = `store: ${database} is open in another process; stop the server first`
      throw new CommandFailed(line, { cause })
    }
    const unreadable = cause instanceof Error && cause.name === 'SqliteError'
    const advice = unreadable ? '; stop every server, move it away, and restore again' : ''
    throw failedWith(`store: ${database} cannot be replaced${advice}`, cause)
  } finally {
    rmSync(fresh, { force: true })
  }
}

/**
 * Returns the database file of this configuration, without opening it.
 * @param tool How to do the same with PostgreSQL.
 */
function configuredFile({ config: file, data }: LocationFlags, tool: string): string {
  // By the rules of `dev`: copying a file needs no secret.
  const config = loadConfig({ mode: 'dev', flags: { data }, environment: process.env, file })
  if (config.store === undefined) requireFolder(config.data)
  const url = storeUrl(config)
  if (url.startsWith('sqlite:')) return url.slice('sqlite:'.length)
  throw new CommandFailed(`store: is in PostgreSQL; ${tool}`)
}
