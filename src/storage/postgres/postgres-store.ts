import type { Socket } from 'node:net'
import type pg from 'pg'
import { readContents, writeContents } from '../contents.ts'
import { createStore } from '../create-store.ts'
import type { ReadStep, Script } from '../script.ts'
import { type Store, type StoreOptions, StoreUnavailable } from '../store.ts'
import { buildDistributedStatements, followExchanges, lockOwners } from './distributed-script.ts'
import { createKeyQueue } from './key-queue.ts'
import { isConflict, longestStatement, openPool, translate } from './open-pool.ts'
import { sweepPartitions } from './partitions.ts'
import { dialect, plainStatements, run } from './prepared.ts'
import { lockNumber, transaction } from './transaction.ts'

/** How often a transaction that lost against another is tried in all. */
const attempts = 5
/** The longest use of a connection that reads the whole store: a command whose user sees it wait. */
const longestMilliseconds = 3_600_000

/** The store in a PostgreSQL database: one transaction a decision, under a lock on the key it decides about. */
export async function openPostgresStore(url: string, options: Required<StoreOptions>): Promise<Store> {
  const { pool, isDistributed } = await openPool(url, options)
  const statements = isDistributed ? buildDistributedStatements() : plainStatements
  const toRead = <T>(script: Script<T>) => (isDistributed ? followExchanges(script) : script)
  const toDecide = <T>(script: Script<T>) => (isDistributed ? lockOwners(script) : script)
  const inTurn = createKeyQueue(options.waitMilliseconds)
  // Longer than the server gives a statement, which is what ends it as a rule.
  const loanMilliseconds = longestStatement(options.waitMilliseconds) + 1000

  async function withConnection<T>(
    work: (client: pg.PoolClient) => Promise<T>,
    milliseconds = loanMilliseconds,
  ): Promise<T> {
    const client = await pool.connect().catch((fault) => {
      throw new StoreUnavailable(fault)
    })
    let broken = true
    // A machine that vanished, or a commit that no standby confirms, would never respond.
    const overdue = setTimeout(() => {
      isOverdue = true
      destroySocket(client)
      client.release(true)
    }, milliseconds)
    let isOverdue = false
    try {
      const result = await work(client)
      broken = false
      return result
    } catch (fault) {
      const error = translate(fault)
      broken = error instanceof StoreUnavailable
      throw error
    } finally {
      clearTimeout(overdue)
      if (!isOverdue) client.release(broken)
    }
  }

  async function inTransaction<T>(begin: string, script: () => Script<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await withConnection((client) => transaction(client, begin, toDecide(script()), statements))
      } catch (fault) {
        if (!isConflict(fault)) throw fault
        if (attempt === attempts) throw new StoreUnavailable(fault)
      }
    }
  }

  let reads: Reading[] | undefined

  /** Reads that begin before the process waits for anything else share a connection, and a trip to the database. */
  function read<T>(script: Script<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const reading = { script, resolve, reject } as Reading // its own result
      if (reads !== undefined) return void reads.push(reading)
      const shared = [reading]
      reads = shared
      const send = () => {
        reads = undefined
        void runTogether(shared)
      }
      // From within the queue of microtasks: at its end, when every promise that could be settled is.
      queueMicrotask(() => process.nextTick(send))
    })
  }

  /** Runs reads on one connection, and settles each once that is free again. */
  async function runTogether(readings: readonly Reading[]): Promise<void> {
    try {
      const settled = await withConnection(async (client) => {
        const ended = await Promise.allSettled(
          readings.map(({ script }) => run(client, toRead(script), statements)),
        )
        const faults = ended.flatMap((one) => (one.status === 'rejected' ? [translate(one.reason)] : []))
        const lost = faults.find((fault) => fault instanceof StoreUnavailable)
        if (lost !== undefined) throw lost
        return ended
      })
      for (const [index, one] of settled.entries()) {
        if (one.status === 'fulfilled') readings[index]?.resolve(one.value)
        else readings[index]?.reject(translate(one.reason))
      }
    } catch (fault) {
      for (const { reject } of readings) reject(fault)
    }
  }

  const inLongTransaction = <T>(begin: string, script: Script<T>) =>
    withConnection((client) => transaction(client, begin, script), longestMilliseconds)

  return createStore({
    isFar: true,
    read,
    tellNodes: ({ node, body, now, expiresAt }) =>
      read(bodiesOf({ text: tellNodes, values: [Buffer.from(node), expiresAt, body, now] })),
    transact: async (script, locks = []) => {
      const begin = beginLocked(locks)
      const work = () => inTransaction(begin, script)
      const outcome = await locks.reduceRight((inner, lock) => () => inTurn(lock, inner), work)()
      if ('rejection' in outcome) throw outcome.rejection
      return outcome.result
    },
    sweepPartitions: ({ now, auditedSince }) =>
      sweepPartitions(
        { brief: withConnection, long: (work) => withConnection(work, longestMilliseconds) },
        now,
        auditedSince,
      ),
    connections: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    contents: () => inLongTransaction('begin isolation level repeatable read', readContents(dialect)),
    replace: (contents) => inLongTransaction('begin', writeContents(contents, dialect)),
    ping: () => withConnection(async (client) => void (await client.query('select 1'))),
    close: async () => {
      if (!pool.ending) await pool.end()
    },
  })
}

/** One statement is one trip, and commits by itself. */
const tellNodes = `with own as (insert into records (kind, id, expires_at, body) values ('node', $1, $2, $3)
  on conflict (kind, id) do update set expires_at = excluded.expires_at, body = excluded.body)
  select body from records where kind = 'node' and id <> $1 and expires_at > $4`

function* bodiesOf(step: ReadStep): Script<readonly string[]> {
  const rows = (yield step) as readonly { readonly body: string }[] // of `tellNodes`
  return rows.map(({ body }) => body)
}

/** A read that waits for its connection. */
interface Reading {
  readonly script: Script<unknown>
  readonly resolve: (result: unknown) => void
  readonly reject: (fault: unknown) => void
}

/**
 * Decisions of all processes about one key wait for each other, also while there is no row to lock. The lock is taken
 * before the read, so that the read's snapshot shows everything earlier decisions wrote, in other tables too.
 */
function beginLocked(names: readonly string[]): string {
  const locks = names.map((name) => `select pg_advisory_xact_lock(${lockNumber(name)})`)
  return ['begin', ...locks].join('; ')
}

/** Ends a connection at once: the driver would wait for the responses to everything it has sent. */
function destroySocket(client: pg.PoolClient): void {
  // `as`: its types leave out the connection, which each client has.
  const { connection } = client as pg.PoolClient & { readonly connection: { readonly stream: Socket } }
  connection.stream.destroy()
}
