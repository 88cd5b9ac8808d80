/** How much a sweep does at a time, on a file; scripts/bench/sweep.ts measures the duration. */

import { channel } from 'node:diagnostics_channel'
import { setImmediate as turn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { accept, remove } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import type { Store, SweepBounds } from '../../src/storage/store.ts'
import { rowsPerBatch, rowsPerSweep } from '../../src/storage/sweep.ts'
import { allDue as bounds, dueRecords } from './due.ts'
import { grantOwners } from './store.suite.ts'

/** How many of each kind are due. */
const due = 500
const swept = [
  'sessions',
  'records',
  'revoked_access_tokens',
  'clients',
  'rejections',
  'audit_events',
  'grants',
]

/** A store in which everything is due, and which counts the rows deleted from each table. */
async function fullStore(t: Test): Promise<{ store: Store; deleted: () => ReadonlyMap<string, number> }> {
  const file = `${t.testdir()}/lychgate.db`
  await (await openStore(`sqlite:${file}`)).close()
  const beside = new Database(file)
  t.teardown(() => beside.close())
  beside.exec('create table deleted (name text primary key, count integer not null)')
  for (const table of swept) {
    beside.exec(`insert into deleted values ('${table}', 0);
      create trigger count_${table} after delete on ${table} begin
        update deleted set count = count + 1 where name = '${table}';
      end`)
  }
  const counts = beside.prepare('select name, count from deleted').raw()
  const store = await openStore(`sqlite:${file}`)
  t.teardown(() => store.close())
  await store.write(...grantOwners)
  await store.write(...Array.from({ length: due }, (_, n) => dueRecords(n)).flat())
  // Its two columns, in this order.
  return { store, deleted: () => new Map(counts.all() as [string, number][]) }
}

t.test('a transaction of the sweep deletes a few rows of one table', async (t) => {
  const { store, deleted } = await fullStore(t)
  let before = deleted()
  const transactions: { readonly tables: number; readonly rows: number }[] = []
  const hear = () => {
    const after = deleted()
    const rows = swept.map((table) => (after.get(table) ?? 0) - (before.get(table) ?? 0))
    transactions.push({
      tables: rows.filter((count) => count > 0).length,
      rows: rows.reduce((sum, count) => sum + count),
    })
    before = after
  }
  channel('lychgate:commit').subscribe(hear)
  t.teardown(() => channel('lychgate:commit').unsubscribe(hear))

  const first = await store.sweep(bounds)
  t.equal(first.more, true)
  t.ok(first.rows <= 10 * rowsPerSweep + 250, 'and it stops, so that nothing else starves')
  let sweeps = 1
  while ((await store.sweep(bounds)).more) sweeps += 1
  t.ok(sweeps >= due / rowsPerSweep - 1)
  const rows = transactions.reduce((sum, transaction) => sum + transaction.rows, 0)
  // The client of the grants is one that was never used.
  t.equal(rows, 10 * due + 1)
  t.ok(transactions.length >= rows / rowsPerBatch)
  t.equal(Math.max(...transactions.map((transaction) => transaction.rows)), rowsPerBatch)
  t.equal(Math.max(...transactions.map(({ tables }) => tables)), 1)
})

t.test('requests run between any two transactions of a sweep', async (t) => {
  const { store } = await fullStore(t)
  let isDone = false
  const sweep = store.sweep(bounds).then(() => {
    isDone = true
  })
  let responded = 0
  while (!isDone) {
    await store.transact('key', 'x', () => accept(undefined, remove('key', 'x')))
    responded += 1
    await turn()
  }
  await sweep
  // Every kind takes ten transactions or more; a request that arrives in each turn is served in it.
  t.ok(responded >= 8 * 10, `${responded} requests were answered meanwhile`)
})

t.test('the next batch of a running sweep uses a clock that was set back', async (t) => {
  const { store, deleted } = await fullStore(t)
  let isAhead = true
  const moving: SweepBounds = {
    ...bounds,
    get now() {
      return isAhead ? bounds.now : 1
    },
    get clientsUnusedSince() {
      return isAhead ? bounds.clientsUnusedSince : 1
    },
  }
  const sweeping = store.sweep(moving)
  while (deleted().get('sessions') === 0) await turn()
  isAhead = false
  await sweeping
  t.equal(deleted().get('sessions'), rowsPerBatch)
  for (const table of ['records', 'revoked_access_tokens', 'grants']) {
    t.equal(deleted().get(table), 0, table)
  }
  t.equal(
    deleted().get('clients'),
    rowsPerSweep,
    'the idle ones, as many as a sweep takes; the unused ones stay',
  )
})
