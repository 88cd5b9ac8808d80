import type { Decision, Write } from '../domain/decision.ts'
import * as reads from './reads.ts'
import type { Script } from './script.ts'
import { type FindKind, type Found, locksOf, type Store, type StoreActivity } from './store.ts'
import { grantsPerSlice, type PartitionSweeper, rowsPerBatch, sweepBy } from './sweep.ts'
import { apply, NotDecidedHere } from './writes.ts'

/** The result of a transaction. A rejection leaves whatever the transaction has written in place. */
export type Outcome<T> = { readonly result: T } | { readonly rejection: unknown }

/** How a database runs scripts. */
export interface Database
  extends Pick<Store, 'isFar' | 'tellNodes' | 'contents' | 'replace' | 'ping' | 'close'> {
  read<T>(script: Script<T>): Promise<T>
  /**
   * Runs a script in one transaction; transactions under one of the same locks wait for each other. `script` may be called
   * more than once. A rejection is thrown after the commit.
   * @param isBrief A power cut may lose it.
   */
  transact<T>(script: () => Script<Outcome<T>>, locks?: readonly string[], isBrief?: boolean): Promise<T>
  /** Looks after the partitions of a store that may have some. */
  readonly sweepPartitions?: PartitionSweeper
  /** Counts the connections of a pool. */
  connections?(): NonNullable<StoreActivity['connections']>
}

/** Creates the store of a database. */
export function createStore(database: Database): Store {
  const { isFar, tellNodes, read, transact, connections, contents, replace, ping, close } = database
  const { sweepPartitions } = database
  const change = (script: () => Script<number>) => transact(() => resultOf(script()))
  const sweep = sweepBy({
    read,
    change,
    // Each of them is a trip, and a statement outside of a transaction is one, too.
    changeAtOnce: isFar ? (script) => read(script()) : change,
    rowsPerCommit: isFar ? grantsPerSlice : rowsPerBatch,
    sweepPartitions,
  })

  /** @returns Nothing if it has to be decided under the lock. */
  async function decideAhead<R, T>(
    decide: (record: R | undefined) => Decision<T>,
    ahead: Promise<R | undefined>,
  ): Promise<{ readonly result: T } | undefined> {
    const decision = decide(await ahead)
    if (!comparesFirst(decision.writes)) return undefined
    try {
      if (decision.writes.length > 0) await transact(() => resultOf(apply(decision.writes)))
    } catch (error) {
      if (error instanceof NotDecidedHere) return undefined
      throw error
    }
    if ('rejection' in decision) throw decision.rejection
    return decision
  }

  return {
    isFar,
    ...(tellNodes && { tellNodes }),
    find: (kind, key) => read(reads.load(kind, key)),
    list: (kind) => read(reads.list(kind)),
    page: (kind, page) => read(reads.page(kind, page)),
    usersFrom: (page) => read(reads.usersFrom(page)),
    listOf: (kind, userId) => read(reads.listOf(kind, userId)),
    listKind: (kind, page) => read(reads.listKind(kind, page)),
    listInTurn: (kind, page) => read(reads.listInTurn(kind, page)),
    listFrom: (kind, page) => read(reads.listFrom(kind, page)),
    connections: (userId, page) => read(reads.connections(userId, page)),
    grantsOf: (userId, clientIds, newest) => read(reads.grantsOf(userId, clientIds, newest)),
    grantsFrom: (page) => read(reads.grantsFrom(page)),
    sessionsFrom: (page) => read(reads.sessionsFrom(page)),
    someOfClient: (kind, clientId, limit) => read(reads.someOfClient(kind, clientId, limit)),
    rejections: (newest) => read(reads.rejections(newest)),
    signInsByDay: (since, most) => read(reads.signInsByDay(since, most)),
    challenges: (most) => read(reads.challenges(most)),
    counts: (most) => read(reads.counts(most)),
    auditPage: (filter) => read(reads.auditPage(filter)),
    auditFrom: (page) => read(reads.auditFrom(page)),
    audit: (filter) => read(reads.audit(filter)),
    population: () => read(reads.population()),
    holds: (condition) => read(reads.holds(condition)),
    activity: async () => ({
      ...(sweep.activeGrants !== undefined && { activeGrants: sweep.activeGrants }),
      rejectionsKept: await read(reads.rejectionCount()),
      ...(connections !== undefined && { connections: connections() }),
    }),
    transact: async (kind, key, decide, ahead) => {
      const decided = ahead && (await decideAhead(decide, ahead))
      if (decided !== undefined) return decided.result
      return transact(() => decideOn(kind, key, decide), locksOf(kind, key))
    },
    write: (...writes) => transact(() => resultOf(apply(writes)), undefined, writes.every(isBrief)),
    sweep: sweep.run,
    contents,
    replace,
    ping,
    close,
  }
}

function* decideOn<K extends FindKind, T>(
  kind: K,
  key: string,
  decide: (record: Found<K> | undefined) => Decision<T>,
): Script<Outcome<T>> {
  const record = yield* reads.load(kind, key)
  let decision: Decision<T>
  try {
    decision = decide(record)
  } catch (rejection) {
    // The caller's error, not the database's: it must not undo other work in the same transaction.
    return { rejection }
  }
  yield* apply(decision.writes)
  return decision
}

/** Whether the first of these writes compares what was read, or nothing is written at all, and the others read nothing. */
function comparesFirst([first, ...others]: readonly Write[]): boolean {
  if (first === undefined) return true
  const compares = first.op === 'insertGrant' ? first.client !== undefined : comparing.has(first.op)
  return compares && others.every(({ op }) => plain.has(op))
}

const comparing: ReadonlySet<Write['op']> = new Set<Write['op']>([
  'redeemGrant',
  'rotateGrant',
  'extendGrant',
])
const plain: ReadonlySet<Write['op']> = new Set<Write['op']>(['insert', 'update', 'touchClient', 'learnPkce'])

function isBrief(write: Write): boolean {
  return 'record' in write && write.kind === 'record' && write.record.isBrief === true
}

function* resultOf<T>(script: Script<T>): Script<Outcome<T>> {
  return { result: yield* script }
}
