import { hash } from 'node:crypto'
import type pg from 'pg'
import { readContents, writeContents } from '../contents.ts'
import { createStore } from '../create-store.ts'
import type { Script } from '../script.ts'
import { type Store, type StoreOptions, StoreUnavailable } from '../store.ts'
import { createKeyQueue } from './key-queue.ts'
import { isConflict, longestStatement, openPool, translate } from './open-pool.ts'
import { dialect, run } from './prepared.ts'

/** How often a transaction that lost against another is tried in all. */
const attempts = 5
/** The longest use of a connection that reads the whole store: a command whose user sees it wait. */
const longestMilliseconds = 3_600_000

/** The store in a PostgreSQL database: one transaction a decision, under a lock on the key it decides about. */
export async function openPostgresStore(url: string, options: Required<StoreOptions>): Promise<Store> {
  const pool = await openPool(url, options)
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

  async function inTransaction<T>(begin: string, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await withConnection((client) => transaction(client, begin, () => work(client)))
      } catch (fault) {
        if (!isConflict(fault)) throw fault
        if (attempt === attempts) throw new StoreUnavailable(fault)
      }
    }
  }

  const inLongTransaction = <T>(begin: string, script: Script<T>) =>
    withConnection(
      (client) => transaction(client, begin, () => run(client, script, 'find')),
      longestMilliseconds,
    )

  return createStore({
    read: (script) => withConnection((client) => run(client, script, 'find')),
    transact: async (script, lock) => {
      const begin = lock === undefined ? 'begin' : beginLocked(lock)
      const work = () => inTransaction(begin, (client) => run(client, script(), 'transact'))
      const outcome = await (lock === undefined ? work() : inTurn(lock, work))
      if ('rejection' in outcome) throw outcome.rejection
      return outcome.result
    },
    connections: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    contents: () => inLongTransaction('begin isolation level repeatable read', readContents(dialect)),
    replace: (contents) => inLongTransaction('begin', writeContents(contents, dialect)),
    ping: () => withConnection(async (client) => void (await client.query('select 1'))),
    close: async () => {
      if (!pool.ending) await pool.end()
    },
  })
}

/**
 * Decisions of all processes about one key wait for each other, also while there is no row to lock. The lock is taken
 * before the read, so that the read's snapshot shows everything earlier decisions wrote, in other tables too.
 */
function beginLocked(name: string): string {
  const lock = hash('sha256', name, 'buffer').readBigInt64BE()
  return `begin; select pg_advisory_xact_lock(${lock})`
}

async function transaction<T>(client: pg.PoolClient, begin: string, work: () => Promise<T>): Promise<T> {
  try {
    await client.query(begin)
    const result = await work()
    await client.query('commit')
    return result
  } catch (fault) {
    // A connection on which even this fails is not used again: `fault` says why.
    await client.query('rollback').catch(() => undefined)
    throw fault
  }
}
