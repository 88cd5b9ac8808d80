import Database from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3/driver'
import type { Write } from '../../domain/decision.ts'
import {
  auditFilterRow,
  consentOfKey,
  grantKey,
  grantOfTokenValues,
  throttleKey,
  toAuditEvent,
  toClient,
  toConnections,
  toConsent,
  toGrant,
  toGrantOfToken,
  toInteraction,
  toKey,
  toLink,
  toPasskey,
  toRejection,
  toSecondFactor,
  toSession,
  toThrottle,
  toUser,
} from '../rows.ts'
import { stepsOf } from '../steps.ts'
import {
  type ListableKind,
  type OwnedKind,
  RecordExists,
  type RecordKind,
  type Records,
  type Store,
  StoreUnavailable,
} from '../store.ts'
import { sweepBy } from '../sweep.ts'
import { type BatchedReads, batchedReads } from './batched-reads.ts'
import { checkpoints } from './checkpoints.ts'
import { readContents, writeContents } from './contents.ts'
import { GroupCommit, type Outcome } from './group-commit.ts'
import { openDatabase } from './open-database.ts'
import { prepareReads, prepareWrites } from './statements.ts'
import { sweepSteps } from './sweep-steps.ts'

type Loads = { readonly [K in RecordKind]: (key: string) => Records[K] | undefined }
type OwnLists = { readonly [K in OwnedKind]: (userId: string) => readonly Records[K][] }
type Lists = { readonly [K in ListableKind]: () => readonly Records[K][] }

/** The store in one SQLite file (or `:memory:`), written to by this connection in group commits. */
export async function openSqliteStore(file: string): Promise<Store> {
  const client = await openDatabase(file)
  // From here on nothing waits for a lock inside a statement: the group commit does, and the process goes on.
  client.pragma('busy_timeout = 0')
  const db = drizzle(client)
  const reads = prepareReads(db)
  const [load, lists, ownLists] = [loadsOf(reads), listsOf(reads), ownListsOf(reads)]
  const apply = applier(prepareWrites(db))
  const clients = remembering(load.client)
  const find: Loads = { ...load, client: clients.load }
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

  const sweep = sweepBy(sweepSteps(db, { read, submit: (work) => commits.submit(work) }))

  return {
    find: (kind, key) => read(() => find[kind](key)),
    list: (kind) => read(() => lists[kind]()),
    listOf: (kind, userId) => read(() => ownLists[kind](userId)),
    connections: (userId, page) => read(() => toConnections(reads.connections.all({ userId, ...page }))),
    grantsOf: (userId, clientId, newest) =>
      read(() =>
        reads.newestGrants.all({ userId, clientId, ...newest }).flatMap((row) => toGrant(row) ?? []),
      ),
    transact: (kind, key, decide) =>
      commits.submit(() => {
        const record = load[kind](key)
        const decision = attempt(() => decide(record))
        if ('rejection' in decision) return decision
        apply(decision.result.writes)
        return 'rejection' in decision.result ? { rejection: decision.result.rejection } : decision.result
      }),
    write: (...writes) => commits.submit(() => ({ result: apply(writes) })),
    activity: () =>
      read(() => ({
        ...(sweep.livingGrants !== undefined && { activeGrants: sweep.livingGrants }),
        refusalsKept: reads.refusalsKept.get()?.count ?? 0,
      })),
    population: () =>
      read(() => ({
        isEmpty: reads.somebody.get() === undefined,
        seeded: reads.seededUsers.all().map(({ username }) => username),
      })),
    contents: () => read(() => readContents(client)),
    replace: (contents) => commits.submit(() => ({ result: writeContents(client, contents) })),
    audit: (filter) =>
      read(() => {
        const statement = filter.userId === undefined ? reads.audit : reads.auditOf
        return statement.all(auditFilterRow(filter)).map(toAuditEvent).reverse()
      }),
    sweep: (bounds) => sweep.run(bounds),
    // Through the write lock: a server that can read and not write is not ready, and hardly any request only reads.
    ping: () => commits.submit(() => ({ result: void load.key('') })),
    close: async () => {
      await commits.close()
      turns.end()
      client.close()
    },
  }
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

function loadsOf(reads: ReturnType<typeof prepareReads>): Loads {
  return {
    client: (key) => mapped(reads.client.get({ key }), toClient),
    user: (key) => mapped(reads.user.get({ key }), toUser),
    userByLogin: (key) => mapped(reads.userByLogin.get({ key }), toUser),
    userCredentials: (key) => {
      const user = mapped(reads.user.get({ key }), toUser)
      if (user === undefined) return undefined
      const secondFactor = mapped(reads.secondFactor.get({ key }), toSecondFactor)
      return {
        user,
        passkeys: reads.passkeysOf.all({ userId: key }).map(toPasskey),
        ...(secondFactor !== undefined && { secondFactor }),
        sessions: reads.sessionsOf.all({ userId: key }).map(toSession),
      }
    },
    session: (key) => mapped(reads.session.get({ key }), toSession),
    passkey: (key) => mapped(reads.passkey.get({ key }), toPasskey),
    secondFactor: (key) => mapped(reads.secondFactor.get({ key }), toSecondFactor),
    link: (key) => mapped(reads.link.get({ key }), toLink),
    interaction: (key) => mapped(reads.interaction.get({ key }), toInteraction),
    consent: (key) => mapped(reads.consent.get(consentOfKey(key)), toConsent),
    grant: (id) => {
      const key = grantKey(id)
      return key && mapped(reads.grant.get({ key }), toGrant)
    },
    grantOfToken: (key) => {
      const values = grantOfTokenValues(key)
      return values && mapped(reads.grantOfToken.get(values), toGrantOfToken)
    },
    throttle: (key) => mapped(reads.throttle.get({ key: throttleKey(key) }), toThrottle),
    key: (key) => mapped(reads.key.get({ key }), toKey),
    keyRing: () => reads.keys.all().map(toKey),
    rejection: (key) => mapped(reads.rejection.get({ key }), toRejection),
  }
}

function listsOf(reads: ReturnType<typeof prepareReads>): Lists {
  return {
    client: () => reads.clients.all().map(toClient),
    user: () => reads.accounts.all().map(toUser),
    key: () => reads.keys.all().map(toKey),
  }
}

function ownListsOf(reads: ReturnType<typeof prepareReads>): OwnLists {
  return {
    session: (userId) => reads.sessionsOf.all({ userId }).map(toSession),
    passkey: (userId) => reads.passkeysOf.all({ userId }).map(toPasskey),
    consent: (userId) => reads.consentsOf.all({ userId }).map(toConsent),
    grant: (userId) => reads.grantsOf.all({ userId }).flatMap((row) => toGrant(row) ?? []),
  }
}

function mapped<Row, T>(row: Row | undefined, toRecord: (row: Row) => T | undefined): T | undefined {
  return row === undefined ? undefined : toRecord(row)
}

function applier(statements: ReturnType<typeof prepareWrites>): (writes: readonly Write[]) => void {
  return (writes) => {
    for (const step of writes.flatMap(stepsOf)) {
      const { changes } = statements[step.statement].run(step.values)
      if (step.exact && changes !== 1) throw step.exact(step.statement)
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
