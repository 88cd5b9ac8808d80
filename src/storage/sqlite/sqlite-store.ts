import Database from 'better-sqlite3'
import { readContents, writeContents } from '../contents.ts'
import { createStore } from '../create-store.ts'
import { load } from '../reads.ts'
import { one } from '../script.ts'
import {
  type FindKind,
  type Found,
  RecordExists,
  type Store,
  type StoreOptions,
  StoreUnavailable,
} from '../store.ts'
import { type BatchedReads, batchedReads } from './batched-reads.ts'
import { checkpoints } from './checkpoints.ts'
import { GroupCommit } from './group-commit.ts'
import { openDatabase } from './open-database.ts'
import { dialect, runnerOf } from './prepared.ts'

/**
 * Opens the store in one SQLite file (or `:memory:`), written to by this connection in group commits.
 * @param isShared Other processes of the same server write all the time, too.
 */
export async function openSqliteStore(
  file: string,
  { isShared = false }: Pick<StoreOptions, 'isShared'> = {},
): Promise<Store> {
  const client = await openDatabase(file)
  // From here on nothing waits for a lock inside a statement: the group commit does, and the process goes on.
  client.pragma('busy_timeout = 0')
  const run = runnerOf(client)
  const clients = remembering((key) => run(load('client', key)))
  const turns = batchedReads(client, clients.forget, isShared)
  const journal = checkpoints(client, turns.end)
  const commits = new GroupCommit(transactionsOf(client, turns), journal, isShared)

  /** A read outside the batches: it sees what is committed, and nothing waits for it. */
  function read<T>(work: () => T): Promise<T> {
    try {
      turns.begin()
      return Promise.resolve(work())
    } catch (fault) {
      return Promise.reject(translate(fault))
    }
  }

  const store = createStore({
    isFar: false,
    read: (script) => read(() => run(script)),
    transact: (script, _lock, isBrief) => commits.submit(() => run(script()), isBrief),
    contents: () => read(() => run(readContents(dialect))),
    replace: (contents) => commits.submit(() => ({ result: run(writeContents(contents, dialect)) })),
    // Through the write lock: a server that can read and not write is not ready, and hardly any request only reads.
    ping: () => commits.submit(() => ({ result: run(one('key', { key: '' }, () => undefined)) })),
    close: async () => {
      await commits.close()
      turns.end()
      client.close()
    },
  })
  return {
    ...store,
    find: <K extends FindKind>(kind: K, key: string) =>
      kind === 'client'
        ? (read(() => clients.load(key)) as Promise<Found<K> | undefined>) // a client
        : store.find(kind, key),
  }
}

/** Reads each record once, until it is to forget: most requests of a turn are of the same few clients. */
function remembering<T>(load: (key: string) => T) {
  const read = new Map<string, T>()
  return {
    load: (key: string): T => {
      const remembered = read.get(key)
      if (remembered !== undefined) return remembered
      const found = load(key)
      read.set(key, found)
      return found
    },
    forget: () => read.clear(),
  }
}

function transactionsOf(client: Database.Database, turns: BatchedReads) {
  const [begin, commit, rollback] = ['begin immediate', 'commit', 'rollback'].map((text) =>
    client.prepare(text),
  )
  let isFlushed = true
  return {
    begin: (flush: boolean) => {
      turns.end()
      // NORMAL leaves the journal to the system, which survives this process.
      if (flush !== isFlushed) client.pragma(`synchronous = ${flush ? 'FULL' : 'NORMAL'}`)
      isFlushed = flush
      begin?.run()
    },
    commit: () => void commit?.run(),
    rollback: () => void (client.inTransaction && rollback?.run()),
    isLocked: (fault: unknown) =>
      fault instanceof Database.SqliteError && fault.code.startsWith('SQLITE_BUSY'),
    translate,
  }
}

/** Locked, full, unreadable, moved, or closed: nothing the caller did, and worth trying again. */
const unavailable =
  /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|PROTOCOL|NOMEM|CORRUPT|NOTADB|CONSTRAINT_TRIGGER)/
const exists = /^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY|ROWID)$/

function translate(fault: unknown): unknown {
  if (fault instanceof Database.SqliteError && unavailable.test(fault.code))
    return new StoreUnavailable(fault)
  if (fault instanceof Database.SqliteError && exists.test(fault.code)) return new RecordExists(fault)
  if (fault instanceof TypeError && fault.message.includes('connection is not open'))
    return new StoreUnavailable(fault)
  return fault
}
