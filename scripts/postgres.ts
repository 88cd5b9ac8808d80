/** Runs an empty PostgreSQL to try things with, on this port, until it is interrupted: `npm run postgres -- 9432`. */
import { startPostgres } from '../test/storage/postgres-server.ts'

const ends: (() => unknown)[] = []
const server = await startPostgres(
  { teardown: (end) => ends.push(end) },
  { port: Number(process.argv[2] ?? 9432), fsync: true },
)
process.stdout.write(`ready: ${server.url}\n`)
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    for (const end of ends) await end()
    process.exit(0)
  })
}
