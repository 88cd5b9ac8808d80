/**
 * The suite over PostgreSQL compiled to WebAssembly: another build of the engine, one session, and no server to start.
 * One connection is enough: simultaneous decisions wait for each other in the pool instead of at a lock. Tests that
 * need two sessions (locks, deadlocks, nodes) use a real server, in postgres.test.ts.
 */
import pg from 'pg'
import t, { type Test } from 'tap'
import { openStore } from '../../src/storage/open.ts'
import { migrations } from './migrations.suite.ts'
import { startPglite } from './pglite-server.ts'
import { storeSuite } from './store.suite.ts'

const server = await startPglite(t)

async function open(t: Test, url: string) {
  const store = await openStore(url, { connections: 1 })
  t.teardown(() => store.close())
  return store
}

t.test('the store in PGlite', async (t) => {
  storeSuite(t, async (t) => open(t, await server.emptyDatabase()))
})

t.test('a database of an earlier version', async (t) => {
  migrations(t, 'postgres', async (t) => {
    const url = await server.emptyDatabase()
    const earlier = new pg.Client(url)
    await earlier.connect()
    return {
      run: async (statement) => void (await earlier.query(statement)),
      insert: async (table, row) => {
        const [names, values] = [Object.keys(row), Object.values(row)]
        const places = names.map((_, index) => `$${index + 1}`).join(', ')
        await earlier.query(`insert into ${table} (${names.join(', ')}) values (${places})`, values)
      },
      open: async () => {
        await earlier.end()
        return open(t, url)
      },
    }
  })
})
