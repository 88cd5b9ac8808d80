import { readFileSync, writeFileSync } from 'node:fs'
import { growthTable } from './growth-report.ts'
import { cpuAnOperation, type MemorySequence, median, type Result, type Sample } from './result.ts'
import { executable, timesFloor, timesLessThanPeer } from './targets.ts'
import { workloads } from './workloads.ts'

/** The rounds of one server under one workload, combined. */
interface Summary {
  readonly rate: number
  readonly cpu: number
  readonly p50: number
  readonly p99: number
}

/** The tables, in Markdown. */
export function report({ samples, starts, memory, machine, growth, sequences }: Result): string {
  const counts = [...new Set(samples.map(({ connections }) => connections))]
  const names = workloads
    .map(({ name }) => name)
    .filter((name) => samples.some(({ workload }) => workload === name))
  const operations = samples.reduce((sum, one) => sum + one.operations, 0)
  const lines = [
    `${machine}. CPU is that of the server for an operation, user and system, the median of the rounds. ${operations} responses, 0 of them wrong.`,
    '',
  ]
  for (const count of counts) lines.push(...table(samples, names, count), '')
  if (samples.some(({ server }) => server === earlierBuild)) lines.push(...builds(samples, names, counts), '')
  lines.push(
    `| server | start to first 200, ms (${executable.start}) | memory idle, MiB (${executable.idle}) | loaded, MiB (${executable.loaded}) |`,
    '| --- | --- | --- | --- |',
  )
  for (const { server, milliseconds } of starts) {
    const held = memory.find((one) => one.server === server)
    lines.push(
      `| ${server} | ${milliseconds.toFixed(0)} | ${held?.idle.toFixed(0) ?? ''} | ${held?.loaded.toFixed(0) ?? ''} |`,
    )
  }
  if (growth !== undefined) lines.push('', ...growthTable(growth))
  if (sequences !== undefined) lines.push('', ...memoryTable(sequences))
  return `${lines.join('\n')}\n`
}

const earlierBuild = 'Lychgate, earlier build'

/** CPU of this build and of an earlier one. */
function builds(samples: readonly Sample[], names: readonly string[], counts: readonly number[]): string[] {
  const lines = [
    '| workload | connections | earlier build: CPU µs | this build: CPU µs | ratio | of each round |',
    '| --- | --- | --- | --- | --- | --- |',
  ]
  for (const name of names) {
    for (const count of counts) {
      const cpuOf = (server: string) =>
        samples
          .filter((one) => one.workload === name && one.connections === count && one.server === server)
          .map(({ cpu, operations }) => cpu / operations)
      const [earlier, own] = [cpuOf(earlierBuild), cpuOf('Lychgate')]
      const [before, now] = [median(earlier), median(own)]
      const rounds = own.map((cpu, round) => (cpu / (earlier[round] ?? Number.NaN)).toFixed(2))
      const figures = [before.toFixed(1), now.toFixed(1), (now / before).toFixed(3), rounds.join(' ')]
      lines.push(`| ${[name, count, ...figures].join(' | ')} |`)
    }
  }
  return lines
}

/** One process through all workloads, 16 connections each. */
function memoryTable(sequences: readonly MemorySequence[]): string[] {
  const titles = sequences.map(({ environment }) =>
    environment === '' ? 'as it is, MiB' : `\`${environment}\`, MiB`,
  )
  const [first] = sequences
  return [
    `| one process, after each workload in turn | ${titles.join(' | ')} |`,
    `| --- |${' --- |'.repeat(sequences.length)}`,
    ...(first?.after ?? []).map(({ workload }, index) => {
      const cells = sequences.map(({ after }) => after[index]?.memory.toFixed(0) ?? '')
      return `| ${workload} | ${cells.join(' | ')} |`
    }),
  ]
}

function table(samples: readonly Sample[], names: readonly string[], count: number): string[] {
  const lines = [
    `${count} connection${count === 1 ? '' : 's'}:`,
    '',
    '| workload | Lychgate ops/s | p50 ms | p99 ms | CPU µs | oidc-provider, durable: CPU µs | times less (wanted) | in memory: CPU µs | bare Fastify: CPU µs | times more (allowed) |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
  ]
  for (const name of names) {
    const of = (server: string) =>
      summary(
        samples.filter((one) => one.workload === name && one.server === server && one.connections === count),
      )
    const [own, peer, memory, floor] = [
      of('Lychgate'),
      of('oidc-provider'),
      of('oidc-provider, in memory'),
      of('bare Fastify'),
    ]
    if (own === undefined) continue
    const [wanted, allowed] = [timesLessThanPeer[name], timesFloor[name]]
    const less = peer && `${(peer.cpu / own.cpu).toFixed(1)}${wanted ? ` (${wanted})` : ''}`
    const more = floor && `${(own.cpu / floor.cpu).toFixed(2)}${allowed ? ` (${allowed})` : ''}`
    const cells = [name, own.rate.toFixed(0), own.p50.toFixed(2), own.p99.toFixed(2), own.cpu.toFixed(0)]
    lines.push(
      `| ${[...cells, peer?.cpu.toFixed(0) ?? '', less ?? '', memory?.cpu.toFixed(0) ?? '', floor?.cpu.toFixed(0) ?? '', more ?? ''].join(' | ')} |`,
    )
  }
  return lines
}

function summary(samples: readonly Sample[]): Summary | undefined {
  if (samples.length === 0) return undefined
  const total = (member: 'operations' | 'seconds' | 'cpu') =>
    samples.reduce((sum, one) => sum + one[member], 0)
  const all = Float64Array.from(samples.flatMap(({ latencies }) => [...latencies])).sort()
  const at = (share: number) => all[Math.min(all.length - 1, Math.floor(all.length * share))] ?? Number.NaN
  return {
    rate: total('operations') / total('seconds'),
    cpu: cpuAnOperation(samples),
    p50: at(0.5),
    p99: at(0.99),
  }
}

const [begin, end] = ['<!-- measured -->', '<!-- end of measured -->']

/** Writes the tables into docs/performance.md, between their markers. */
export function writeReport(result: Result): void {
  writeMeasured('performance.md', report(result))
}

/** Writes this text between the markers of a page of docs/. */
export function writeMeasured(name: string, measured: string): void {
  const page = new URL(`../../docs/${name}`, import.meta.url)
  const text = readFileSync(page, 'utf8')
  const [before, after] = [text.split(begin)[0], text.split(end)[1]]
  writeFileSync(page, `${before}${begin}\n${measured}${end}${after}`)
}
