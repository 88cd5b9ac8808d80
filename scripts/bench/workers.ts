/**
 * `npm run bench -- workers`: CPU of all processes for an operation with several workers, divided by that with one, in
 * paired turns of one run; and what each further worker takes in memory.
 */
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { startPostgres } from '../../test/storage/postgres-server.ts'
import { countsOption, readCount, readSeconds, scriptCommand } from '../command.ts'
import { startWorkers, type Target } from './measured-servers.ts'
import { childrenOf, type RunningServer } from './process.ts'
import { median, ratio } from './result.ts'
import { timesOneWorker } from './targets.ts'
import { work } from './work.ts'
import { workloads } from './workloads.ts'

const { pairs, seconds, connections, workers, postgres } = scriptCommand(
  'bench workers',
  'Compares dist/lychgate with one and with several workers. They share all cores of this machine with the load.',
)
  .option('--pairs <number>', 'how many turns each server has', readCount, 60)
  .option('--seconds <number>', 'how long a turn takes', readSeconds, 0.7)
  .option('--connections <number>', 'how many at once', readCount, 32)
  .addOption(countsOption('--workers <numbers>', 'how many workers', [2]))
  .option('--postgres', 'on PostgreSQL instead of SQLite', false)
  .parse()
  .opts<{
    pairs: number
    seconds: number
    connections: number
    workers: readonly number[]
    postgres: boolean
  }>()
const ends: (() => unknown)[] = []

try {
  const database = postgres ? await startPostgres({ teardown: (end) => ends.push(end) }) : undefined
  const targets: Target[] = []
  for (const count of [1, ...workers]) {
    const target = await startWorkers(count, await database?.createDatabase())
    targets.push(target)
    ends.push(() => target.server.stop())
  }
  const [single, ...others] = targets
  const idle = targets.map(({ server }) => memoryOf(server))
  const rows: string[] = []
  for (const { name, lane } of workloads.filter((one) =>
    ['refresh', 'introspection', 'discovery'].includes(one.name),
  )) {
    const lanes = new Map<Target, Awaited<ReturnType<typeof lane>>[]>()
    for (const target of targets)
      lanes.set(target, await Promise.all(Array.from({ length: connections }, () => lane(target))))
    const turn = async (target: Target) => work(lanes.get(target) ?? [], target.server, seconds)
    for (const target of targets) await turn(target)
    for (const [index, other] of others.entries()) {
      const seen = {
        alone: [] as Awaited<ReturnType<typeof turn>>[],
        several: [] as Awaited<ReturnType<typeof turn>>[],
      }
      for (let pair = 0; pair < pairs; pair += 1) {
        const order = pair % 2 === 0 ? (['alone', 'several'] as const) : (['several', 'alone'] as const)
        for (const which of order)
          seen[which].push(await turn(which === 'several' ? other : (single ?? other)))
      }
      rows.push(row(name, workers[index] ?? 0, seen))
    }
    for (const own of lanes.values()) for (const each of own) each.close()
  }
  const text = [
    `Machine: ${cpus()[0]?.model}, ${cpus().length} cores, which the load shares; Node ${process.version}. ${connections} connections, ${pairs} pairs of turns.`,
    '',
    `| workload | workers | ops/s, one → several | CPU, µs an operation, one → several | ratio (95 %), wanted at most ${timesOneWorker} | p99 ms, one → several |`,
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
    '| workers | memory idle, MiB | after load, MiB | of which the primary process | each further worker, after load |',
    '| --- | --- | --- | --- | --- |',
    ...targets.map((target, index) => memoryRow(target, [1, ...workers][index] ?? 0, idle[index]?.all ?? 0)),
    '',
  ].join('\n')
  process.stdout.write(text)
} finally {
  for (const end of ends.reverse()) await end()
}

function row(
  name: string,
  count: number,
  { alone, several }: Readonly<Record<'alone' | 'several', readonly Awaited<ReturnType<typeof work>>[]>>,
): string {
  const each = ({ cpu, operations }: Awaited<ReturnType<typeof work>>) => cpu / operations
  const rate = (seen: typeof alone) => median(seen.map((one) => one.operations / one.seconds)).toFixed(0)
  const cost = (seen: typeof alone) => median(seen.map(each)).toFixed(0)
  const tail = (seen: typeof alone) => {
    const all = Float64Array.from(seen.flatMap(({ latencies }) => [...latencies])).sort()
    return (all[Math.floor((all.length - 1) * 0.99)] ?? Number.NaN).toFixed(1)
  }
  const pair = (show: typeof rate) => `${show(alone)} → ${show(several)}`
  const ratios = ratio(several.map(each), alone.map(each))
  return `| ${[name, count, pair(rate), pair(cost), ratios, pair(tail)].join(' | ')} |`
}

/** Proportional: pages of the program that processes share count once. */
function memoryOf({ pid }: RunningServer) {
  const of = (each: number) =>
    Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${each}/smaps_rollup`, 'utf8'))?.[1]) / 1024
  const [own, children] = [of(pid), childrenOf(pid).map(of)]
  return { own, children, all: children.reduce((sum, one) => sum + one, own) }
}

function memoryRow({ server }: Target, count: number, idle: number): string {
  const { own, children, all } = memoryOf(server)
  const further = children.length === 0 ? '' : ((all - own) / children.length).toFixed(0)
  const cells = [count, idle.toFixed(0), all.toFixed(0), count === 1 ? '' : own.toFixed(0), further]
  return `| ${cells.join(' | ')} |`
}
