/** What each operation costs the database: no number may grow, and one that falls is written down. */
import t from 'tap'
import { startPostgresProxy, type Traffic } from '../helpers/postgres-proxy.ts'
import { startServer } from '../helpers/server.ts'
import { operationsOf } from './operations.ts'
import { startPostgres } from './postgres-server.ts'
import { trips as expected } from './trips.ts'

const postgres = await startPostgres(t)
const proxy = await startPostgresProxy(t, await postgres.createDatabase())
const server = await startServer(t, { store: proxy.url, nodes: 1 })
const operations = await operationsOf(server)

t.strictSame(Object.keys(expected), Object.keys(operations), 'every operation has its numbers')

for (const [name, prepare] of Object.entries(operations)) {
  t.test(name, async (t) => {
    const seen: Traffic[] = []
    // The first one also writes down that a client is used, once a day, and another may meet what no request waits for.
    for (let run = 0; run < 4; run += 1) {
      const operation = await prepare()
      proxy.take()
      await operation()
      seen.push(proxy.take())
    }
    const fewest = seen.toSorted((one, other) => one.trips - other.trips || one.commits - other.commits)[0]
    const { trips = 0, commits = 0, statements = [] } = fewest ?? {}
    t.strictSame({ trips, commits }, expected[name])
    const exclusive = statements.filter((text) => /for update of "clients"/.test(text))
    t.strictSame(exclusive, [], 'nobody waits for another request of the same client')
    if (!t.passing()) t.comment(statements.map((text) => text.slice(0, 200)).join('\n'))
  })
}
