/** The sweep on PostgreSQL: few trips, and one node's work at a time. */
import t from 'tap'
import { openStore } from '../../src/storage/open.ts'
import { patient } from '../helpers/nodes.ts'
import { startPostgresProxy } from '../helpers/postgres-proxy.ts'
import { allDue, dueRecords } from './due.ts'
import { startPostgres } from './postgres-server.ts'
import { grantOwners } from './store.suite.ts'

const postgres = await startPostgres(t)

t.test('a hundred rows take the sweep at most one trip, with what it looks for in vain', async (t) => {
  const proxy = await startPostgresProxy(t, await postgres.createDatabase())
  const store = await openStore(proxy.url, patient)
  t.teardown(() => store.close())
  await store.write(...grantOwners)
  for (let n = 0; n < 400; n += 40)
    await store.write(...Array.from({ length: 40 }, (_, k) => dueRecords(n + k)).flat())
  const sweep = async () => {
    proxy.take()
    const { rows, more } = await store.sweep(allDue)
    return { rows, more, trips: proxy.take().trips }
  }
  const first = await sweep()
  t.ok(first.trips <= first.rows / 100, `${first.trips} trips for ${first.rows} rows`)
  let rows = first.rows
  for (let last = first; last.more; rows += last.rows) last = await sweep()
  // The client of the grants is one that was never used.
  t.equal(rows, 10 * 400 + 1)
  // Then each of its statements finds nothing.
  t.ok((await sweep()).trips <= 12)
})
