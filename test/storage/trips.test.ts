/** What each operation costs the database: no number may grow, and one that falls is written down. */
import t from 'tap'
import { startPostgresProxy, type Traffic } from '../helpers/postgres-proxy.ts'
import { startServer } from '../helpers/server.ts'
import { operationsOf } from './operations.ts'
import { startPostgres } from './postgres-server.ts'
import { trips as expected } from './trips.ts'

const postgres = await startPostgres(t)
const proxy = await startPostgresProxy(t, await postgres.createDatabase())
// Rejections are stored a moment after their responses: their commit would count for what is measured next.
const server = await startServer(t, { store: proxy.url, nodes: 1, rejectionsKept: 0 })
const operations = await operationsOf(server)

t.strictSame(Object.keys(expected), Object.keys(operations), 'every operation has its numbers')

for (const [name, prepare] of Object.entries(operations)) {
  t.test(name, async (t) => {
    // Once a day the use of a client is recorded, too.
    await (await prepare())()
    const seen: Traffic[] = []
    for (let run = 0; run < 3; run += 1) {
      const operation = await prepare()
      proxy.take()
      await operation()
      seen.push(proxy.take())
    }
    // Every second the server looks for sign-outs to send, which no request waits for, and which commits nothing.
    const { trips = 0, statements = [] } = seen.toSorted((one, other) => one.trips - other.trips)[0] ?? {}
    for (const { commits } of seen) t.strictSame({ trips, commits }, expected[name])
    const exclusive = statements.filter((text) => /for update of "clients"/.test(text))
    t.strictSame(exclusive, [], 'nobody waits for another request of the same client')
    if (!t.passing()) t.comment(statements.map((text) => text.slice(0, 200)).join('\n'))
  })
}
