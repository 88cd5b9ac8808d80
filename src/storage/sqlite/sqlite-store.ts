import Database from 'better-sqlite3'
import type { Write } from '../../domain/decision.ts'
import * as reads from '../reads.ts'
import { stepsOf } from '../steps.ts'
import { RecordExists, type Store, StoreUnavailable, type UntypedStore } from '../store.ts'
import { type GrantEnd, grantsPerSlice, sweepBy } from '../sweep.ts'
import { type BatchedReads, batchedReads } from './batched-reads.ts'
import { checkpoints } from './checkpoints.ts'
import { readContents, writeContents } from './contents.ts'
import { GroupCommit, type Outcome } from './group-commit.ts'
import { openDatabase } from './open-database.ts'
import { type Prepared, prepare, run } from './prepared.ts'

/** The store in one SQLite file (or `:memory:`), written to by this connection in group commits. */
export async function openSqliteStore(file: string): Promise<Store> {
  const client = await openDatabase(file)
  // From here on nothing waits for a lock inside a statement: the group commit does, and the process goes on.
  client.pragma('busy_timeout = 0')
  const prepared = prepare(client)
  const apply = applier(prepared)
  const clients = remembering((key) => run(prepared, reads.load('client', key)))
  const turns = batchedReads(client, clients.forget)
  const commits = new GroupCommit(transactionsOf(client, turns), checkpoints(client, turns.end))

  /** A read outside the batches: it sees what is committed, and nothing waits for it. */
  async function read<T>(work: () => T): Promise<T> {
    try {
      turns.begin()
      return work()
    } catch (fault) {
      throw translate(fault)
    }
  }
  const answer = <T>(reading: () => reads.Reading<T>) => read(() => run(prepared, reading()))

  const sweep = sweepBy({
    remove: (statement, values) => commits.submit(() => ({ result: prepared.write(statement, values) })),
    slice: (after) =>
      read(
        () =>
          prepared.read({ read: 'sliceOfGrants', values: { after, limit: grantsPerSlice } }) as GrantEnd[],
      ), // its rows
  })

  const store: UntypedStore = {
    find: (kind, key) =>
      kind === 'client' ? read(() => clients.load(key)) : answer(() => reads.load(kind, key)),
    list: (kind) => answer(() => reads.list(kind)),
    listOf: (kind, userId) => answer(() => reads.listOf(kind, userId)),
    connections: (userId, page) => answer(() => reads.connections(userId, page)),
    grantsOf: (userId, clientId, newest) => answer(() => reads.grantsOf(userId, clientId, newest)),
    transact: (kind, key, decide) =>
      commits.submit(() => {
        const record = run(prepared, reads.load(kind, key))
        const decision = attempt(() => decide(record))
        if ('rejection' in decision) return decision
        apply(decision.result.writes)
        return 'rejection' in decision.result ? { rejection: decision.result.rejection } : decision.result
      }),
    write: (...writes) => commits.submit(() => ({ result: apply(writes) })),
    activity: async () => ({
      ...(sweep.activeGrants !== undefined && { activeGrants: sweep.activeGrants }),
      refusalsKept: await answer(() => reads.rejectionCount()),
    }),
    population: () => answer(() => reads.population()),
    contents: () => read(() => readContents(client)),
    replace: (contents) => commits.submit(() => ({ result: writeContents(client, contents) })),
    audit: (filter) => answer(() => reads.audit(filter)),
    sweep: (bounds) => sweep.run(bounds),
    // Through the write lock: a server that can read and not write is not ready, and hardly any request only reads.
    ping: () => commits.submit(() => ({ result: void prepared.read({ read: 'key', values: { key: '' } }) })),
    close: async () => {
      await commits.close()
      turns.end()
      client.close()
    },
  }
  return store as Store // a read finds what its kind says
}

/** Reads each record once, until it is to forget: most requests of a turn are of the same few clients. */
function remembering<T>(load: (key: string) => T) {
  const known = new Map<string, T>()
  return {
    load: (key: string): T => {
      const found = known.get(key) ?? load(key)
      known.set(key, found)
      return found
    },
    forget: () => known.clear(),
  }
}

/** What `work` throws is the caller's, not the database's: it must not undo the batch. */
function attempt<T>(work: () => T): Outcome<T> {
  try {
    return { result: work() }
  } catch (rejection) {
    return { rejection }
  }
}

function applier(prepared: Prepared): (writes: readonly Write[]) => void {
  return (writes) => {
    for (const { statement, values, lookUp, exact } of writes.flatMap(stepsOf)) {
      const found = lookUp === undefined ? [{}] : prepared.read({ read: lookUp, values })
      // `as`: rows are objects.
      const changes =
        found.length === 0 ? 0 : prepared.write(statement, { ...values, ...(found[0] as object) })
      if (exact && changes !== 1) throw exact(statement)
    }
  }
}

function transactionsOf(client: Database.Database, turns: BatchedReads) {
  const [begin, commit, rollback] = ['begin immediate', 'commit', 'rollback'].map((text) =>
    client.prepare(text),
  )
  return {
    begin: () => {
      turns.end()
      begin?.run()
    },
    commit: () => void commit?.run(),
    rollback: () => void (client.inTransaction && rollback?.run()),
    isLocked: (fault: unknown) =>
      fault instanceof Database.SqliteError && fault.code.startsWith('SQLITE_BUSY'),
    translate,
  }
}

/** Locked, full, unreadable, or closed: nothing the caller did, and worth trying again. */
const unavailable = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|PROTOCOL|NOMEM|CORRUPT|NOTADB)/
const exists = /^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY|ROWID)$/

function translate(fault: unknown): unknown {
  if (fault instanceof Database.SqliteError && unavailable.test(fault.code))
    return new StoreUnavailable(fault)
  if (fault instanceof Database.SqliteError && exists.test(fault.code)) return new RecordExists(fault)
  if (fault instanceof TypeError && fault.message.includes('connection is not open'))
    return new StoreUnavailable(fault)
  return fault
}
