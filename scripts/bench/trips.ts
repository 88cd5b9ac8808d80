/** `npm run bench -- trips`: what each operation costs PostgreSQL, and how long it takes at some distance from it. */
import pg from 'pg'
import { startPostgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { startServer, type TestServer } from '../../test/helpers/server.ts'
import { operationsOf } from '../../test/storage/operations.ts'
import { startPostgres } from '../../test/storage/postgres-server.ts'
import { readCount, readSeconds, scriptCommand } from '../command.ts'
import { measureOneClient } from './one-client.ts'

const { runs, seconds, only } = scriptCommand(
  'bench -- trips',
  'Counts round trips, commits, locks and bytes of WAL of each operation on PostgreSQL, through a proxy that delays ' +
    'what is sent by 0, 1 and 5 ms, and measures the median latency. Then 64 connections of one client at 5 ms.',
)
  .option(
    '--runs <number>',
    'how often each operation is run at each distance; the median counts',
    readCount,
    20,
  )
  .option('--seconds <number>', 'how long the requests of one client are measured', readSeconds, 3)
  .option('--only <name>', 'operations with this in their name', '')
  .parse()
  .opts<{ runs: number; seconds: number; only: string }>()

const delays = [0, 1, 5]
const ends: (() => unknown)[] = []
const t = { teardown: (end: () => unknown) => void ends.push(end) }
try {
  const postgres = await startPostgres(t, { fsync: true })
  const proxy = await startPostgresProxy(t, await postgres.createDatabase())
  const observer = new pg.Client(postgres.url)
  await observer.connect()
  t.teardown(() => observer.end())
  const walPosition = async () => {
    const { rows } = await observer.query("select pg_current_wal_insert_lsn() - '0/0' as bytes")
    return Number(rows[0]?.bytes)
  }
  const server = await startServer(t, { store: proxy.url, nodes: 1, signInThrottle: unthrottled() })
  const title = ['operation', 'trips', 'commits', 'locks', 'WAL, bytes', ...delays.map((ms) => `at ${ms} ms`)]
  process.stdout.write(`| ${title.join(' | ')} |\n|${' --- |'.repeat(title.length)}\n`)
  for (const [name, prepare] of Object.entries(await operationsOf(server))) {
    if (!name.includes(only)) continue
    // Compiled, and with the use of the client written down.
    for (let warm = 0; warm < 5; warm += 1) await (await prepare())()
    const costs: { trips: number; commits: number; locks: number; wal: number; milliseconds: number }[] = []
    const times: number[] = []
    for (const delay of delays) {
      const turn: typeof costs = []
      for (let run = 0; run < runs; run += 1) {
        proxy.delay = 0
        const operation = await prepare()
        proxy.delay = delay
        const before = await walPosition()
        proxy.take()
        const start = performance.now()
        await operation()
        const milliseconds = performance.now() - start
        const { trips, commits, statements } = proxy.take()
        const locks = statements.filter((text) => /advisory| for (no key )?(update|share)/.test(text)).length
        turn.push({ trips, commits, locks, wal: (await walPosition()) - before, milliseconds })
      }
      times.push(median(turn.map(({ milliseconds }) => milliseconds)))
      costs.push(...turn)
    }
    const cells = (['trips', 'commits', 'locks', 'wal'] as const).map((cost) =>
      median(costs.map((one) => one[cost])),
    )
    process.stdout.write(`| ${[name, ...cells, ...times.map((ms) => ms.toFixed(1))].join(' | ')} |\n`)
  }
  process.stdout.write(
    '\n| 64 connections of one client at 5 ms | nodes | served a second | other responses |\n',
  )
  process.stdout.write('| --- | --- | --- | --- |\n')
  for (const nodes of [1, 2]) {
    const distant = await startPostgresProxy(t, await postgres.createDatabase())
    const measured = await startServer(t, { store: distant.url, nodes })
    for (const row of await measureOneClient(measured, distant, seconds)) process.stdout.write(`${row}\n`)
  }
} finally {
  for (const end of ends.reverse()) await end()
}

/** Nothing that one user repeats here is a guess. */
function unthrottled(): TestServer['deps']['config']['signInThrottle'] {
  const many = 1_000_000
  return {
    windowSeconds: 900,
    failuresPerAccountAndPrefix: many,
    failuresPerAccount: many,
    failuresPerPrefix: many,
    failuresPerPrefixAndUser: 0,
    failuresInARow: many,
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
