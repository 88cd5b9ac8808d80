import type { Command } from 'commander'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { auditEvent } from '../domain/audit.ts'
import type { AuditEvent } from '../domain/model.ts'
import { assertOpen } from '../keys/change-keys.ts'
import { deriveSealingKey } from '../keys/seal.ts'
import { keysDuring } from '../keys/sealing-keys.ts'
import { loadConfig, storeUrl } from '../settings/load.ts'
import type { Copied, CopyEnd } from '../storage/copy.ts'
import { reasonAgainst } from '../storage/migrations.ts'
import type { StoreFacts } from '../storage/store.ts'
import { systemClock } from '../system/system.ts'
import { hasAdministrator } from '../users/administrators.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { addOperatorFlags, type OperatorFlags } from './flags.ts'
import { secretOf } from './open.ts'
import { operatorContext } from './operator.ts'
import { printJson, printMembers } from './print.ts'
import { addDistributeCommand } from './store-distribute.ts'

const copyHelp = `
Copies the store of these settings into an empty one: from SQLite to PostgreSQL, or back. Servers go on while it copies,
and no server starts with the copy. Run again, it goes on where it was, and copies what has changed.
With --pause it does the same; then it lets nothing be written to this store, copies the rest, compares both, and ends.
In that time servers respond 503 with Retry-After to what changes something, and go on reading. It tells for how long.
From then on this store takes no writes: start every server with the copy, the same secret and the same issuer.
A password in the URL can be read by other users of this machine: leave it out, and set PGPASSWORD.

Examples:
  lychgate store copy --to postgres://lychgate@db.example.org/lychgate
  lychgate store copy --to postgres://lychgate@db.example.org/lychgate --pause
  LYCHGATE_STORE_FILE=/etc/lychgate/store lychgate store copy --pause --to sqlite:/var/lib/lychgate/lychgate.db
`

const resumeHelp = `
Lets servers write to this store again after lychgate store copy --pause. What was written to the copy since then is not
here: run it only if no server has started with the copy.

Examples:
  lychgate store resume
`

const partitionHelp = `
Divides the audit log of a store in PostgreSQL into partitions, so that the events of a long time are dropped at once and
not deleted one by one: for logs of ten million events or more. The servers add and drop the next partitions themselves.
The table that there is becomes the first partition. PostgreSQL reads it once, some seconds for each gigabyte, and in that
time nothing can be written to the log: stop the servers, or they respond 503 with Retry-After. A run that is interrupted
changes nothing.

Examples:
  lychgate store partition
`

interface CopyFlags extends OperatorFlags {
  readonly to: string
  readonly pause?: true
}

/** Adds `lychgate store …`: moves what is stored into another database, divides it, or spreads it over machines. */
export function addStoreCommands(program: Command): void {
  const group = program
    .command('store')
    .description('move the store, divide its audit log, or spread it over several machines')
  const copy = group
    .command('copy')
    .description('copy everything into an empty store, while servers run')
    .requiredOption('--to <url>', 'the other store: sqlite:<file> or postgres://<user>@<host>/<database>')
    .option('--pause', 'let nothing be written to this store any more, and complete the copy')
  addOperatorFlags(copy, copyHelp).action(storeCopy)
  const resume = group.command('resume').description('let servers write again to a store that was moved')
  addOperatorFlags(resume, resumeHelp).action(storeResume)
  const partition = group
    .command('partition')
    .description('divide the audit log into partitions (PostgreSQL)')
  addOperatorFlags(partition, partitionHelp).action(storePartition)
  addDistributeCommand(group)
}

async function storeCopy({ to, pause, ...flags }: CopyFlags): Promise<void> {
  const config = configOf(flags)
  if (!/^(?:sqlite:(?!:memory:).|postgres(?:ql)?:\/\/.)/.test(to))
    throw new WrongUsage('--to: must be sqlite:<file> or postgres://<user>@<host>/<database>')
  await assertSource(config)
  const { copyRows, mark } = await import('../storage/copy.ts')
  await withEnd('store', storeUrl(config), async (source) => {
    await prepareTarget(to)
    await withEnd('--to', to, async (target) => {
      await mark(target, 'unfinished')
      await timed(() => copyRows(source, target, (table, rows) => progress(`${table}: ${rows} rows`)))
      // What changed in the meantime. It takes as long as the pass in which writes wait.
      const [copied, expected] = await timed(() => copyRows(source, target))
      if (!pause) return tell(flags, 'copied', copied, expected)
      const [moved, seconds] = await complete(source, target, expected)
      await note('--to', to, 'store-moved')
      tell(flags, 'moved', moved, seconds)
    })
  })
}

async function complete(source: CopyEnd, target: CopyEnd, expected: number) {
  const { copyRows, mark, pauseWrites, resumeWrites } = await import('../storage/copy.ts')
  progress(`nothing is written to this store from here on; the rest takes about ${expected} seconds`)
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted.abort())
  try {
    const copied = await timed(async () => {
      await pauseWrites(source)
      return copyRows(source, target, () => interrupted.signal.throwIfAborted())
    })
    await mark(target, undefined)
    return copied
  } catch (fault) {
    await resumeWrites(source)
    progress('servers write to this store again')
    throw interrupted.signal.aborted ? new CommandFailed('interrupted; the copy is not complete') : fault
  }
}

async function storeResume(flags: OperatorFlags): Promise<void> {
  const url = storeUrl(configOf(flags))
  const { schema } = (await factsOf('store', url)) ?? {}
  if (schema !== 'moved') throw new CommandFailed('store: its contents were not moved')
  const { resumeWrites } = await import('../storage/copy.ts')
  await withEnd('store', url, resumeWrites)
  await note('store', url, 'store-resumed')
  if (flags.json) printJson({ state: 'resumed' })
  else process.stdout.write('Servers write to this store again.\n')
}

async function storePartition(flags: OperatorFlags): Promise<void> {
  const config = configOf(flags)
  const url = storeUrl(config)
  const { schema } = (await factsOf('store', url)) ?? {}
  if (schema !== 'current') throw new CommandFailed(`store: ${stateOf(schema)}`)
  const { partitionAuditLog } = await import('../storage/open.ts')
  const now = systemClock()
  const since = config.auditSeconds === 0 ? 0 : now - config.auditSeconds
  const next = await attempt('store', () => partitionAuditLog(url, now, since))
  if (next === undefined) throw new CommandFailed('store: the audit log has partitions already')
  await note('store', url, 'store-partitioned')
  if (flags.json) printJson({ state: 'partitioned', next })
  else process.stdout.write(`The audit log has partitions. Event ${next} begins the second one.\n`)
}

/** By the rules of `dev`, as for every command. */
function configOf({ config: file, data }: OperatorFlags): Config {
  return loadConfig({ mode: 'dev', flags: { data }, environment: process.env, file })
}

/** @throws {Error} unless it is a store of this version with keys that the secret opens. */
async function assertSource(config: Config): Promise<void> {
  const { keys, schema, secretChange } = (await factsOf('store', storeUrl(config))) ?? {}
  if (schema !== 'current' && schema !== 'moved') throw new CommandFailed(`store: ${stateOf(schema)}`)
  const secret = secretOf(config)
  if (secret === undefined)
    throw new ConfigError('secret: the copy needs the same one; set LYCHGATE_SECRET or LYCHGATE_SECRET_FILE')
  const { opening } = keysDuring(secretChange, await deriveSealingKey(secret))
  assertOpen(keys ?? [], opening, systemClock())
}

/** Makes the tables of a new store. @throws {CommandFailed} unless it is empty, or a copy that has not ended. */
async function prepareTarget(url: string): Promise<void> {
  const { openStore } = await import('../storage/open.ts')
  const { schema = 'missing' } = (await factsOf('--to', url)) ?? {}
  if (schema === 'unfinished') return
  if (schema === 'missing') await attempt('--to', async () => (await openStore(url)).close())
  else if (schema !== 'current') throw new CommandFailed(`--to: ${stateOf(schema)}; name an empty database`)
  const { isEmpty } = await import('../storage/copy.ts')
  if (!(await withEnd('--to', url, isEmpty)))
    throw new CommandFailed('--to: this store is in use; name an empty database or a new file')
}

function stateOf(schema: StoreFacts['schema'] = 'missing'): string {
  if (schema === 'missing') return 'there is none'
  if (schema === 'older') return 'it is of an earlier version; start this version with it first'
  if (schema === 'ahead') return 'it was made by a newer version of Lychgate; use that one'
  return reasonAgainst(schema) ?? schema
}

/** Looks at a store without a change. Undefined: there is no such file. */
async function factsOf(name: string, url: string): Promise<StoreFacts | undefined> {
  const { examineStore } = await import('../storage/open.ts')
  return attempt(name, () => examineStore(url, (read) => hasAdministrator('', read)))
}

/** Works with one end of the copy; a fault of it names it. */
async function withEnd<T>(name: string, url: string, work: (end: CopyEnd) => Promise<T>): Promise<T> {
  const { openCopyEnd } = await import('../storage/open.ts')
  const end = await attempt(name, () => openCopyEnd(url))
  try {
    return await work({
      ...end,
      rows: async function* (text) {
        try {
          yield* end.rows(text)
        } catch (fault) {
          throw failedAt(name, fault, goesOn)
        }
      },
      run: (text, values) => attempt(name, () => end.run(text, values), goesOn),
    })
  } finally {
    await end.close()
  }
}

const goesOn = '; run this again, and it goes on where it was'

async function attempt<T>(name: string, work: () => Promise<T>, advice?: string): Promise<T> {
  try {
    return await work()
  } catch (fault) {
    throw failedAt(name, fault, advice)
  }
}

function failedAt(name: string, cause: unknown, advice = ''): CommandFailed {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new CommandFailed(`${name}: ${reason}${advice}`, { cause })
}

async function timed<T>(work: () => Promise<T>): Promise<readonly [T, number]> {
  const start = performance.now()
  const result = await work()
  return [result, Math.ceil((performance.now() - start) / 100) / 10]
}

/** Writes to the audit log of a store. */
async function note(name: string, url: string, event: AuditEvent['name']): Promise<void> {
  const { openStore } = await import('../storage/open.ts')
  const store = await attempt(name, () => openStore(url))
  await store.write(auditEvent(event, operatorContext()))
  await store.close()
}

/** @param seconds How long nothing is written, or was, until the copy is complete. */
function tell(
  { json }: OperatorFlags,
  state: 'copied' | 'moved',
  { rows, digest }: Copied,
  seconds: number,
): void {
  if (json) return void printJson({ state, rows, digest, pause_seconds: seconds })
  printMembers({ ...rows, digest })
  process.stdout.write(
    state === 'copied'
      ? `
No server starts with the copy yet. Run this again with --pause: then nothing is written for about
${seconds} seconds, and longer until every server is started with the copy.
`
      : `
The copy is complete; the rest took ${seconds} seconds. Nothing is written to this store any more.
Start every server with the copy, the same secret and the same issuer.
`,
  )
}

function progress(line: string): void {
  process.stderr.write(`lychgate: ${line}\n`)
}
