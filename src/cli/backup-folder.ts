import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Seconds } from '../domain/model.ts'
import { loadConfig } from '../settings/load.ts'
import { systemClock } from '../system/system.ts'
import { CommandFailed, failedWith } from './failure.ts'
import type { OperatorFlags } from './flags.ts'
import { assertSecret, requireSecret } from './open.ts'
import { dated, instant, printJson, printMembers, visible } from './print.ts'

/** Copies of `lychgate backup --every`, and what a killed one left: nothing else in the folder is deleted. */
const copyName = /^lychgate-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.db$/
const unfinishedName = /^lychgate-[\dTZ-]+\.db\.unfinished-\d+(?:-journal)?$/
const mostMilliseconds = 3_600_000
/** After a copy that failed. */
const retrySeconds: Seconds = 60

interface Plan {
  readonly folder: string
  readonly every: Seconds
  readonly keep: number
}

/**
 * Makes a copy every so often, until a signal ends it. Only the first copy may fail the command: a disk that is full
 * today has space again tomorrow.
 */
export async function repeatBackups(plan: Plan, backUp: (file: string) => Promise<void>): Promise<void> {
  const { folder, every, keep } = plan
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort())
  let hasCopied = false
  for (let next = newestTime(folder) + every; !stopped.signal.aborted; ) {
    const wait = Math.min((next - systemClock()) * 1000, mostMilliseconds)
    if (wait > 0) {
      await setTimeout(wait, undefined, { signal: stopped.signal }).catch(() => undefined)
      continue
    }
    const now = systemClock()
    try {
      for (const name of namesIn(folder, unfinishedName)) rmSync(join(folder, name), { force: true })
      await backUp(join(folder, `lychgate-${dated(now)}.db`))
      for (const name of namesIn(folder, copyName).slice(0, -keep)) rmSync(join(folder, name))
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

/** Returns the names of this form, in the order of their times. */
function namesIn(folder: string, form: RegExp): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => form.test(name))
      .sort()
  } catch (cause) {
    throw failedWith(`file: the folder ${folder} cannot be read`, cause)
  }
}

function newestTime(folder: string): Seconds {
  const newest = namesIn(folder, copyName).at(-1)
  if (newest === undefined) return 0
  // A copy made while the clock was ahead puts off no other.
  return Math.min(systemClock(), Math.floor(statSync(join(folder, newest)).mtimeMs / 1000))
}

/** Restores a backup next to the database, opens it with the secret, and deletes it. */
export async function rehearseRestore(source: string, database: string, flags: OperatorFlags): Promise<void> {
  const { config: path, data, json } = flags
  const config = loadConfig({ mode: 'dev', flags: { data }, environment: process.env, file: path })
  const isFolder = statSync(source, { throwIfNoEntry: false })?.isDirectory() === true
  const from = isFolder ? join(source, namesIn(source, copyName).at(-1) ?? 'lychgate-*.db') : source
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
    const contents = copyDatabase(from, rehearsal)
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
