/** `npm run bench -- nodes`: one, two and four processes of Lychgate on one PostgreSQL, in turns in one run. */
import { readdirSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import pg from 'pg'
import { type PostgresServer, startPostgres } from '../../test/storage/postgres-server.ts'
import { readCount, readSeconds, scriptCommand } from '../command.ts'
import { startOnAnyCore, type Target } from './measured-servers.ts'
import { cpuOf, type RunningServer } from './process.ts'
import { writeMeasured } from './report.ts'
import { work } from './work.ts'
import { workloads } from './workloads.ts'

const { rounds, seconds, connections, write } = scriptCommand(
  'bench:nodes',
  'Measures one, two and four processes of dist/lychgate on one PostgreSQL, every answer checked. The load, PostgreSQL ' +
    'and the processes share all cores of this machine.',
)
  .option('--rounds <number>', 'how often each has its turn; the median counts', readCount, 3)
  .option('--seconds <number>', 'how long a turn takes', readSeconds, 3)
  .option('--connections <number>', 'how many at once', readCount, 64)
  .option('--write', 'put the result into docs/scaling.md; wants a machine that does nothing else', false)
  .parse()
  .opts<{ rounds: number; seconds: number; connections: number; write: boolean }>()
const chosen = workloads.filter(({ name }) => ['refresh', 'introspection'].includes(name))
const ends: (() => unknown)[] = []

/** This many processes as one server, with the processes they need. */
interface Setting {
  readonly name: string
  readonly target: Target
  readonly nodes: readonly RunningServer[]
  readonly database?: PostgresServer
}

/** One round. */
interface Round {
  readonly workload: string
  readonly setting: string
  readonly operations: number
  readonly seconds: number
  readonly nodeCpu: number
  readonly databaseCpu: number
  readonly latencies: Float64Array
}

try {
  const settings = await start()
  const seen: Round[] = []
  for (const workload of chosen) {
    // The first round measures the compiler, and is dropped.
    for (let round = 0; round <= rounds; round += 1) {
      for (const setting of settings) {
        const measured = await measure(workload, setting)
        if (round > 0) seen.push(measured)
      }
    }
    process.stderr.write(`${workload.name}: done\n`)
  }
  const text = report(settings, seen, await versionOf(settings))
  process.stdout.write(text)
  if (write) writeMeasured('scaling.md', text)
} finally {
  for (const end of ends.reverse()) await end()
}

async function start(): Promise<readonly Setting[]> {
  const database = await startPostgres({ teardown: (end) => ends.push(end) }, { fsync: true })
  const { target, another } = await startOnAnyCore(await database.createDatabase())
  const nodes = [target.server, await another(), await another(), await another()]
  const { target: alone } = await startOnAnyCore()
  ends.push(() => Promise.all([...nodes, alone.server].map((server) => server.stop())))
  return [
    ...[1, 2, 4].map((count) => ({
      name: `PostgreSQL, ${count} process${count === 1 ? '' : 'es'}`,
      target,
      nodes: nodes.slice(0, count),
      database,
    })),
    { name: 'SQLite, 1 process, for comparison', target: alone, nodes: [alone.server] },
  ]
}

async function measure(
  { name: workload, lane }: (typeof chosen)[number],
  { name: setting, target, nodes, database }: Setting,
): Promise<Round> {
  const lanes = await Promise.all(
    Array.from({ length: connections }, (_, index) =>
      lane({ ...target, server: nodes[index % nodes.length] ?? target.server }),
    ),
  )
  const databaseBefore = databaseCpu(database)
  const all = { cpu: () => nodes.reduce((sum, node) => sum + node.cpu(), 0) }
  const { cpu: nodeCpu, ...sample } = await work(lanes, all, seconds)
  for (const each of lanes) each.close()
  return { workload, setting, ...sample, nodeCpu, databaseCpu: databaseCpu(database) - databaseBefore }
}

/** The CPU of PostgreSQL's processes, which live as long as the pools of the nodes. */
function databaseCpu(database: PostgresServer | undefined): number {
  if (database === undefined) return 0
  const parent = database.processId()
  const children = readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false
    try {
      // The parent is the second word after the name, which is in parentheses and may contain anything.
      return Number(/.*\) \S+ (\d+)/.exec(readFileSync(`/proc/${entry}/stat`, 'latin1'))?.[1]) === parent
    } catch {
      return false
    }
  })
  return [parent, ...children.map(Number)].reduce((sum, pid) => sum + cpuOf(pid), 0)
}

async function versionOf([setting]: readonly Setting[]): Promise<string> {
  const client = new pg.Client(setting?.database?.url)
  await client.connect()
  const { rows } = await client.query("select current_setting('server_version') as version")
  await client.end()
  return String(rows[0]?.version)
}

function report(settings: readonly Setting[], seen: readonly Round[], version: string): string {
  const machine = `${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}, PostgreSQL ${version}`
  const lines = [
    `Machine: ${machine}. ${connections} connections; processes, PostgreSQL and the load share all cores.`,
    '',
    '| workload | store | ops/s | p50 ms | p99 ms | CPU of the processes, µs an operation | CPU of PostgreSQL, µs |',
    '| --- | --- | --- | --- | --- | --- | --- |',
  ]
  for (const { name: workload } of chosen) {
    for (const { name: setting, database } of settings) {
      const own = seen.filter((round) => round.workload === workload && round.setting === setting)
      const total = (member: 'operations' | 'seconds' | 'nodeCpu' | 'databaseCpu') =>
        own.reduce((sum, round) => sum + round[member], 0)
      const all = Float64Array.from(own.flatMap(({ latencies }) => [...latencies])).sort()
      const at = (share: number) => (all[Math.floor((all.length - 1) * share)] ?? Number.NaN).toFixed(1)
      const each = (used: number) => (used / total('operations')).toFixed(0)
      const cells = [
        (total('operations') / total('seconds')).toFixed(0),
        at(0.5),
        at(0.99),
        each(total('nodeCpu')),
        database ? each(total('databaseCpu')) : '',
      ]
      lines.push(`| ${[workload, setting, ...cells].join(' | ')} |`)
    }
  }
  return `${lines.join('\n')}\n`
}
