/**
 * `npm run bench`: Lychgate compared with oidc-provider and a bare Fastify, one core for the server and one for the
 * load, all in turns in one run.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { InvalidArgumentError } from 'commander'
import { countsOption, readCount, readSeconds, scriptCommand } from '../command.ts'
import { Connection, form, get, postForm } from './connection.ts'
import { measureGrowth } from './growth.ts'
import { machine } from './machine.ts'
import {
  startEarlierBuild,
  startFloor,
  startLychgate,
  startOidcProvider,
  type Target,
} from './measured-servers.ts'
import { allocatorSetting, measureMemory } from './memory.ts'
import { loadCore, type RunningServer } from './process.ts'
import { report, writeReport } from './report.ts'
import type { Growth, MemorySequence, Result, Sample } from './result.ts'
import { work } from './work.ts'
import { type Lane, type Workload, workloads } from './workloads.ts'

const kinds = [...workloads.map(({ name }) => name), 'growth', 'memory']
const options = scriptCommand(
  'bench',
  'Measures dist/lychgate beside oidc-provider and a bare Fastify, every answer checked: CPU, operations and latencies, ' +
    'and the same with few grants and with many (growth), which takes two minutes a million.',
)
  .option('--rounds <number>', 'how often each server has its turn; the median counts', readCount, 3)
  .option('--seconds <number>', 'how long a turn takes', readSeconds, 2)
  .addOption(countsOption('--connections <numbers>', 'how many at once', [1, 16, 64]))
  .option('--only <name>', `what has this in its name: ${kinds.join(' | ')}`, readKind)
  .addOption(countsOption('--grants <numbers>', 'how many the growth is measured with', [1000, 1_000_000]))
  .option('--no-peers', 'leave oidc-provider out')
  .option('--against <file>', 'an earlier build of lychgate, which has its turns, too')
  .option('--json <file>', 'write all figures there')
  .option('--write', 'put the result into docs/performance.md; wants a machine that does nothing else', false)
  .parse()
  .opts<Options>()

interface Options {
  readonly rounds: number
  readonly seconds: number
  readonly connections: readonly number[]
  readonly only?: string
  readonly grants: readonly number[]
  readonly peers: boolean
  readonly against?: string
  readonly json?: string
  readonly write: boolean
}

function readKind(text: string): string {
  if (kinds.some((name) => name.includes(text))) return text
  throw new InvalidArgumentError('There is nothing of that name.')
}

const { rounds, seconds } = options
// The most first: with one connection, few operations fit in a slice, and it would measure code that is not yet
// compiled.
const connections = options.connections.toSorted((one, other) => other - one)
const isChosen = (name: string) => options.only === undefined || name.includes(options.only)
const chosen = workloads.filter(({ name }) => isChosen(name))

if (cpus().length < 2) throw new Error('the load and the server need a core each')
spawnSync('taskset', ['-a', '-cp', String(loadCore), String(process.pid)])

/**
 * How long each server does a kind of work before it is measured. Until then the compiler shares the server's one
 * core: on a slow machine an introspection takes half as much after 6 s as in the first.
 */
const warmUpSeconds = 8
/** Making codes and tokens takes longer than using them. */
const mostPrepared = 3000
/** How many operations a second a slice has to be prepared for, if it is known. */
const rates = new Map<string, number>()
// The load's own first request takes as long as a server's start, and would count for the first server.
await fetch('http://localhost:1').catch(() => undefined)
const targets = [await startLychgate()]
if (options.against !== undefined) targets.push(await startEarlierBuild(options.against))
if (options.peers) targets.push(await startOidcProvider(true), await startOidcProvider(false))
const floor = await startFloor()
const samples: Sample[] = []
try {
  for (const workload of chosen) await measure(workload)
  const growth = isChosen('growth')
    ? await measureGrowth(options.grants, connections, rounds, seconds)
    : undefined
  const sequence = isChosen('memory') ? await memoryOfFresh() : undefined
  const result = resultWith(growth, sequence)
  process.stdout.write(report(result))
  if (options.json)
    writeFileSync(
      options.json,
      JSON.stringify(result, (key, value) => (key === 'latencies' ? undefined : value)),
    )
  if (options.write) writeReport(result)
} catch (error) {
  // A long run that fails near its end has measured much.
  process.stdout.write(`Not complete:\n\n${report(resultWith(undefined, undefined))}`)
  throw error
} finally {
  for (const { server } of targets) await server.stop()
  await floor.server.stop()
}

async function measure(workload: Workload): Promise<void> {
  const able = targets.filter(({ paths }) => !workload.name.startsWith('API call') || paths.api !== undefined)
  const [most = 1] = connections
  for (const target of able) {
    for (let done = 0; done < warmUpSeconds; ) done += (await sampleTarget(workload, target, most)).seconds
  }
  if (workload.floor !== undefined) await sampleFloor(workload, floor.server, most)
  for (const count of connections) {
    for (let round = 0; round < rounds; round += 1) {
      // In turns, so that no server always runs right after the same other one.
      for (const target of round % 2 === 0 ? able : able.toReversed())
        samples.push(await sampleTarget(workload, target, count))
      if (workload.floor !== undefined) samples.push(await sampleFloor(workload, floor.server, count))
    }
    process.stderr.write(`${workload.name}, ${count}: done\n`)
  }
}

/** The memory of an idle process, with and without the allocator's setting in deploy/. */
async function memoryOfFresh(): Promise<readonly MemorySequence[]> {
  const sequences: MemorySequence[] = []
  for (const environment of [{}, allocatorSetting]) {
    const target = await startLychgate(environment)
    try {
      const after = await measureMemory(target, 16, Math.max(2, seconds), 15)
      sequences.push({
        environment: Object.entries(environment)
          .map((pair) => pair.join('='))
          .join(' '),
        after,
      })
    } finally {
      await target.server.stop()
    }
  }
  return sequences
}

function resultWith(growth: Growth | undefined, sequences: readonly MemorySequence[] | undefined): Result {
  const starts = targets.map(({ name, startMilliseconds: milliseconds }) => ({ server: name, milliseconds }))
  return {
    samples,
    ...(growth && { growth }),
    ...(sequences && { sequences }),
    starts: [...starts, { server: 'bare Fastify', milliseconds: floor.milliseconds }],
    memory: targets.map(({ name, idleMemory: idle, server }) => {
      return { server: name, idle, loaded: server.memory() }
    }),
    machine: machine(),
  }
}

async function sampleTarget(workload: Workload, target: Target, count: number): Promise<Sample> {
  const lanes = await Promise.all(Array.from({ length: count }, () => workload.lane(target)))
  const key = `${workload.name} ${target.name}`
  const wanted = Math.ceil(Math.min((rates.get(key) ?? 200) * seconds * 1.3, mostPrepared) / count)
  const isPrepared = lanes[0]?.prepare !== undefined
  if (isPrepared) await Promise.all(lanes.map((lane) => lane.prepare?.(wanted)))
  const sample = await work(lanes, target.server, seconds, {
    ...(isPrepared && { most: wanted }),
    ownCore: true,
  })
  rates.set(key, sample.operations / sample.seconds)
  await Promise.all(lanes.map((lane) => lane.confirm?.()))
  for (const lane of lanes) lane.close()
  return { ...sample, workload: workload.name, server: target.name, connections: count }
}

async function sampleFloor(
  { name, floor: shape }: Workload,
  server: RunningServer,
  count: number,
): Promise<Sample> {
  const body =
    shape === 'POST'
      ? form({ grant_type: 'refresh_token', refresh_token: 'r'.repeat(80), client_id: 'app' })
      : ''
  const request =
    shape === 'POST' ? postForm('/post') : get('/get', `Authorization: Bearer ${'a'.repeat(80)}\r\n`)
  const lanes = Array.from({ length: count }, (): Lane => {
    const connection = new Connection(server.port)
    return {
      operate: async () => {
        const response = await connection.send(request, body)
        const { access_token: token } = JSON.parse(response.body) as { access_token?: string }
        if (response.status !== 200 || token === undefined)
          throw new Error(`the floor answered ${response.status}`)
      },
      close: () => connection.close(),
    }
  })
  const sample = await work(lanes, server, seconds, { ownCore: true })
  for (const lane of lanes) lane.close()
  return { ...sample, workload: name, server: 'bare Fastify', connections: count }
}
