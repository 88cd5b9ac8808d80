/**
 * `npm run bench -- floor`: CPU of the server for an operation, divided by that of a bare Fastify which serves the same
 * shape, in paired turns of one run. With `--against` the same turns compare two builds.
 */
import { spawnSync } from 'node:child_process'
import { countsOption, readCount, readSeconds, scriptCommand } from '../command.ts'
import { Connection, form, get, postForm } from './connection.ts'
import { startBuild, startFloor, type Target } from './measured-servers.ts'
import { loadCore, type RunningServer } from './process.ts'
import { median, ratio } from './result.ts'
import { timesFloor } from './targets.ts'
import { work } from './work.ts'
import { type Lane, workloads } from './workloads.ts'

const shapes = {
  discovery: 'document',
  keys: 'document',
  UserInfo: 'GET',
  'API call': 'GET',
  introspection: 'form POST',
  refresh: 'form POST',
} as const
type Shape = (typeof shapes)[keyof typeof shapes]
/** What no bare Fastify has the shape of: compared with another build only. */
const shapeless = workloads.map(({ name }) => name).filter((name) => !Object.hasOwn(shapes, name))

const options = scriptCommand(
  'bench floor',
  'Compares dist/lychgate with a bare Fastify in paired turns, and with another build.',
)
  .option('--build <file>', 'the build to measure', 'dist/lychgate')
  .option('--against <file>', 'another build, which is measured as A and as B: their ratio is the noise')
  .option(
    '--only <name>',
    `what has this in its name: ${[...Object.keys(shapes), ...shapeless].join(' | ')}`,
    '',
  )
  .option('--pairs <number>', 'how many turns each server has', readCount, 60)
  .option('--seconds <number>', 'how long a turn takes', readSeconds, 0.7)
  .option('--warm-up <number>', 'how many turns come before, without being counted', readCount, 8)
  .addOption(countsOption('--connections <numbers>', 'how many at once', [16]))
  .parse()
  .opts<{
    build: string
    against?: string
    only: string
    pairs: number
    seconds: number
    warmUp: number
    connections: readonly number[]
  }>()

spawnSync('taskset', ['-a', '-cp', String(loadCore), String(process.pid)])
const build = await startBuild(options.build)
const others = options.against === undefined ? [] : [options.against, options.against]
const [one, other] = await Promise.all(others.map((file) => startBuild(file)))
const size = Buffer.byteLength(await (await fetch(build.issuer + build.paths.discovery)).text())
const floor = (await startFloor(size)).server

const preparedEach = 200

/** One server under one workload: takes a turn, and returns its CPU an operation, in µs. */
type Turn = () => Promise<number>

try {
  process.stdout.write(
    '| workload, connections | µs (lowest) | floor, µs (lowest) | ÷ floor (95 %) | wanted at most | ÷ other build (95 %) | other ÷ itself (95 %) |\n' +
      '| --- | --- | --- | --- | --- | --- | --- |\n',
  )
  const compared: [name: string, shape?: Shape][] = Object.entries(shapes)
  if (options.against !== undefined) compared.push(...shapeless.map((name): [string] => [name]))
  for (const connections of options.connections)
    for (const [name, shape] of compared)
      if (name.includes(options.only)) await compare(name, shape, connections)
} finally {
  for (const { server } of [build, one, other].filter((target) => target !== undefined)) await server.stop()
  await floor.stop()
}

async function compare(name: string, shape: Shape | undefined, connections: number): Promise<void> {
  const workload = workloads.find((candidate) => candidate.name === name)
  if (workload === undefined) throw new Error(`no workload ${name}`)
  const lanesOf = (target: Target) =>
    Promise.all(Array.from({ length: connections }, () => workload.lane(target)))
  const floorLanes = shape === undefined ? [] : Array.from({ length: connections }, () => floorLane(shape))
  const lanes = [floorLanes]
  const turns = [shape === undefined ? noTurn : turnOf(floor, floorLanes)]
  for (const target of [build, one, other].filter((target) => target !== undefined)) {
    const own = await lanesOf(target)
    lanes.push(own)
    turns.push(turnOf(target.server, own))
  }
  for (let warm = 0; warm < options.warmUp; warm += 1) for (const turn of turns) await turn()
  const cpu = turns.map((): number[] => [])
  for (let pair = 0; pair < options.pairs; pair += 1)
    for (let place = 0; place < turns.length; place += 1) {
      // Each round begins with another server, so that no server always runs right after the same one.
      const index = (place + pair) % turns.length
      cpu[index]?.push((await turns[index]?.()) ?? Number.NaN)
    }
  for (const own of lanes) for (const lane of own) lane.close()
  const [floorCpu = [], buildCpu = [], oneCpu, otherCpu] = cpu
  const cells = [
    `${name}, ${connections}`,
    medianAndLowest(buildCpu),
    ...(shape === undefined
      ? ['', '', '']
      : [medianAndLowest(floorCpu), ratio(buildCpu, floorCpu), timesFloor[name]]),
    oneCpu ? `${ratio(buildCpu, oneCpu)}; other ${medianAndLowest(oneCpu)}` : '',
    oneCpu && otherCpu ? ratio(otherCpu, oneCpu) : '',
  ]
  process.stdout.write(`| ${cells.join(' | ')} |\n`)
}

async function noTurn(): Promise<number> {
  return Number.NaN
}

function turnOf(server: RunningServer, lanes: readonly Lane[]): Turn {
  const isPrepared = lanes.some((lane) => lane.prepare !== undefined)
  return async () => {
    // What was prepared is used up once each, so such a turn is as long as that takes.
    await Promise.all(lanes.map((lane) => lane.prepare?.(preparedEach)))
    const [seconds, most] = isPrepared ? [60, preparedEach] : [options.seconds, undefined]
    const { cpu, operations } = await work(lanes, server, seconds, { ownCore: true, most })
    return cpu / operations
  }
}

function floorLane(shape: Shape): Lane {
  const connection = new Connection(floor.port)
  const body =
    shape === 'form POST'
      ? form({ grant_type: 'refresh_token', refresh_token: 'r'.repeat(80), client_id: 'app' })
      : ''
  const request = {
    document: get('/document'),
    GET: get('/get', `Authorization: Bearer ${'a'.repeat(80)}\r\n`),
    'form POST': postForm('/post'),
  }[shape]
  return {
    operate: async () => {
      const { status, body: text } = await connection.send(request, body)
      if (status !== 200 || !text.includes('access_token')) throw new Error(`the floor sent ${status}`)
    },
    close: () => connection.close(),
  }
}

/** The lowest shows least of what else the machine does. */
function medianAndLowest(figures: readonly number[]): string {
  return `${median(figures).toFixed(1)} (${Math.min(...figures).toFixed(1)})`
}
