/**
 * The suite over PostgreSQL compiled to WebAssembly: another build of the engine, one session, and nothing to start.
 * One connection is enough for all of it: decisions that run at once wait for each other in the pool instead of at a
 * lock. What takes two sessions (locks, deadlocks, nodes) is tested with a real server, in postgres.test.ts.
 */
import t from 'tap'
import { openStore } from '../../src/storage/open.ts'
import { startPglite } from './pglite-server.ts'
import { storeSuite } from './store.suite.ts'

const server = await startPglite(t)

t.test('the store in PGlite', async (t) => {
  storeSuite(t, async (t) => {
    const store = await openStore(await server.emptyDatabase(), { connections: 1 })
    t.teardown(() => store.close())
    return store
  })
})
