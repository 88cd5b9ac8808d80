import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Seconds } from '../domain/model.ts'
import { loadConfig } from '../settings/load.ts'
import { instantOf, systemClock } from '../system/system.ts'
import { CommandFailed, failedWith } from './failure.ts'
import type { OperatorFlags } from './flags.ts'
import { assertSecret, requireSecret } from './open.ts'
import { dated, instant, printJson, printMembers, visible } from './print.ts'

/** Copies of `lychgate backup --every`, and what a killed one left: nothing else in the folder is deleted. */
const copyName = /^lychgate-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)Z\.db$/
const unfinishedName = /^lychgate-[\dTZ-]+\.db\.unfinished-\d+(?:-journal)?$/
const mostMilliseconds = 3_600_000
/** After a copy that failed. */
const retrySeconds: Seconds = 60

interface Plan {
  readonly every: Seconds
  readonly keep: number
}

/** Where the copies of `--every` are: a folder, or a part of a bucket. */
export interface CopyPlace {
  /** Returns the names of everything there. */
  names(): Promise<readonly string[]>
  add(name: string): Promise<void>
  delete(name: string): Promise<void>
}

/** A backup: the file on this computer, and what the operator calls it. */
export interface BackupSource {
  readonly file: string
  readonly name: string
}

export function copiesInFolder(folder: string, backUp: (file: string) => Promise<void>): CopyPlace {
  return {
    names: async () => namesIn(folder),
    add: async (name) => {
      const unfinished = namesIn(folder).filter((found) => unfinishedName.test(found))
      for (const left of unfinished) rmSync(join(folder, left), { force: true })
      await backUp(join(folder, name))
    },
    delete: async (name) => rmSync(join(folder, name)),
  }
}

/**
 * Makes a copy every so often, until a signal ends it. Only the first copy may fail the command: a disk that is full
 * today has space again tomorrow.
 */
export async function repeatBackups(place: CopyPlace, { every, keep }: Plan): Promise<void> {
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort())
  let hasCopied = false
  for (let next = timeOf(newestOf(await place.names())) + every; !stopped.signal.aborted; ) {
    const wait = Math.min((next - systemClock()) * 1000, mostMilliseconds)
    if (wait > 0) {
      await setTimeout(wait, undefined, { signal: stopped.signal }).catch(() => undefined)
      continue
    }
    const now = systemClock()
    try {
      await place.add(`lychgate-${dated(now)}.db`)
      for (const name of copiesAmong(await place.names()).slice(0, -keep)) await place.delete(name)
      hasCopied = true
      next = now + every
    } catch (fault) {
      if (!hasCopied || !(fault instanceof CommandFailed)) throw fault
      process.stderr.write(
        `${visible(`lychgate: ${fault.message}; next try in ${Math.min(every, retrySeconds)} s`)}\n`,
      )
      next = now + Math.min(every, retrySeconds)
    }
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (cause) {
    throw failedWith(`file: the folder ${folder} cannot be read`, cause)
  }
}

/** Returns the names of the copies, oldest first. */
function copiesAmong(names: readonly string[]): readonly string[] {
  return names.filter((name) => copyName.test(name)).toSorted()
}

/** Returns the name of the newest copy. */
export function newestOf(names: readonly string[]): string | undefined {
  return copiesAmong(names).at(-1)
}

/** Returns when the copy of this name was begun. */
function timeOf(name: string | undefined): Seconds {
  const [, day, hour, minute, second] = copyName.exec(name ?? '') ?? []
  if (day === undefined) return 0
  // A copy made while the clock was ahead puts off no other.
  return Math.min(systemClock(), instantOf(`${day}T${hour}:${minute}:${second}Z`) ?? 0)
}

/** Restores a backup next to the database, opens it with the secret, and deletes it. */
export async function rehearseRestore(
  source: BackupSource,
  database: string,
  flags: OperatorFlags,
): Promise<void> {
  const { config: path, data, json } = flags
  const config = loadConfig({ mode: 'dev', flags: { data }, environment: process.env, file: path })
  const isFolder = statSync(source.file, { throwIfNoEntry: false })?.isDirectory() === true
  const inside = isFolder ? join(source.file, newestOf(namesIn(source.file)) ?? 'lychgate-*.db') : undefined
  const { file, name: from } = inside === undefined ? source : { file: inside, name: inside }
  // A folder: an upgrade keeps a copy next to it.
  const folder = `${database}.rehearsal`
  const rehearsal = join(folder, 'lychgate.db')
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const [{ copyDatabase }, { openStore }, { deriveSealingKey }] = await Promise.all([
    import('../storage/sqlite/backup.ts'),
    import('../storage/open.ts'),
    import('../keys/seal.ts'),
  ])
  const start = performance.now()
  try {
    remove() // what a killed one left
    mkdirSync(folder, { mode: 0o700 })
    const contents = copyDatabase(file, rehearsal)
    const store = await openStore(`sqlite:${rehearsal}`)
    try {
      await assertSecret(store, await deriveSealingKey(await requireSecret(store, config)))
      const [newest] = (await store.audit({ since: 0, limit: 1 })).slice(-1)
      const keys = (await store.list('key')).length
      const seconds = Math.ceil((performance.now() - start) / 100) / 10
      if (json) return printJson({ backup: from, ...contents, keys, newest_event_at: newest?.at, seconds })
      const latest = newest && instant(newest.at)
      printMembers({ rehearsed: from, ...contents, keys, 'newest event': latest, seconds })
      process.stdout.write('\nThe backup is sound, and the secret opens its keys.\n')
    } finally {
      await store.close()
    }
  } catch (cause) {
    throw isExpected(cause) ? cause : failedWith(`file: ${from} cannot be restored`, cause)
  } finally {
    remove()
  }
}

/** A fault of the secret has a line and an exit code of its own. */
function isExpected(cause: unknown): boolean {
  return cause instanceof Error && ['ConfigError', 'WrongSecret'].includes(cause.name)
}
