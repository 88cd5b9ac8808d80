import { hash } from 'node:crypto'
import type pg from 'pg'
import type { Write } from '../../domain/decision.ts'
import * as reads from '../reads.ts'
import { stepsOf } from '../steps.ts'
import { lockOf, type Store, type StoreOptions, StoreUnavailable, type UntypedStore } from '../store.ts'
import { type GrantEnd, grantsPerSlice, sweepBy } from '../sweep.ts'
import { readContents, writeContents } from './contents.ts'
import { isConflict, translate } from './faults.ts'
import { createKeyQueue } from './key-queue.ts'
import { longestStatement, openPool } from './open-pool.ts'
import { run, runRead, runWrite } from './prepared.ts'

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

  const answer = <T>(reading: () => reads.Reading<T>) =>
    withConnection((client) => run(client, reading(), 'find'))

  const sweep = sweepBy({
    remove: (statement, values) => inTransaction('begin', (client) => runWrite(client, statement, values)),
    slice: (after) =>
      withConnection(async (client) => {
        const values = { after, limit: grantsPerSlice }
        return (await runRead(client, { read: 'sliceOfGrants', values }, 'find')) as GrantEnd[] // its rows
      }),
  })

  const store: UntypedStore = {
    find: (kind, key) => answer(() => reads.load(kind, key)),
    list: (kind) => answer(() => reads.list(kind)),
    listOf: (kind, userId) => answer(() => reads.listOf(kind, userId)),
    connections: (userId, page) => answer(() => reads.connections(userId, page)),
    grantsOf: (userId, clientId, newest) => answer(() => reads.grantsOf(userId, clientId, newest)),
    transact: async (kind, key, decide) => {
      const decision = await inTurn(lockOf(kind, key), () =>
        inTransaction(beginLocked(lockOf(kind, key)), async (client) => {
          const decided = decide(await run(client, reads.load(kind, key), 'transact'))
          await apply(client, decided.writes)
          return decided
        }),
      )
      if ('rejection' in decision) throw decision.rejection
      return decision.result
    },
    write: (...writes) => inTransaction('begin', (client) => apply(client, writes)),
    activity: async () => {
      const { totalCount: total, idleCount: idle, waitingCount: waiting } = pool
      return {
        ...(sweep.activeGrants !== undefined && { activeGrants: sweep.activeGrants }),
        refusalsKept: await answer(() => reads.rejectionCount()),
        connections: { total, idle, waiting },
      }
    },
    population: () => answer(() => reads.population()),
    contents: () =>
      withConnection(
        (client) => transaction(client, 'begin isolation level repeatable read', () => readContents(client)),
        longestMilliseconds,
      ),
    replace: (contents) =>
      withConnection(
        (client) => transaction(client, 'begin', () => writeContents(client, contents)),
        longestMilliseconds,
      ),
    audit: (filter) => answer(() => reads.audit(filter)),
    sweep: (bounds) => sweep.run(bounds),
    ping: () => withConnection(async (client) => void (await client.query('select 1'))),
    close: async () => {
      if (!pool.ending) await pool.end()
    },
  }
  return store as Store // a read finds what its kind says
}

async function apply(client: pg.PoolClient, writes: readonly Write[]): Promise<void> {
  for (const { statement, values, lookUp, exact } of writes.flatMap(stepsOf)) {
    const found = lookUp === undefined ? [{}] : await runRead(client, { read: lookUp, values }, 'transact')
    // `as`: rows are objects.
    const changes =
      found.length === 0 ? 0 : await runWrite(client, statement, { ...values, ...(found[0] as object) })
    if (exact && changes !== 1) throw exact(statement)
  }
}

/**
 * Decisions of all processes about one key wait for each other, also while there is no row to lock. The lock is taken before the read,
 * so that the read's snapshot shows everything earlier decisions wrote, in other tables too.
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
