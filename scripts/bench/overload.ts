/**
 * `npm run bench -- overload`: what the server does past its capacity. Requests come at a multiple of its best rate
 * whether it responds or not (open loop); a connection has one at a time, so what finds none free is not sent.
 */
import { spawnSync } from 'node:child_process'
import { connect } from 'node:net'
import { cpus, loadavg } from 'node:os'
import { countsOption, readCount, readSeconds, scriptCommand } from '../command.ts'
import { basic, Connection, form, get, postForm } from './connection.ts'
import { authorizeUrl, startEarlierBuild, startLychgate, type Target } from './measured-servers.ts'
import { loadCore } from './process.ts'
import { overload as wanted } from './targets.ts'
import { work } from './work.ts'

const options = scriptCommand(
  'bench:overload',
  'Sends more than dist/lychgate can serve, and measures what it serves, what it rejects and how long both take.',
)
  .option('--seconds <number>', 'how long each run takes', readSeconds, 5)
  .option('--times <number>', 'how many times its best rate is sent', readCount, 3)
  .addOption(countsOption('--connections <numbers>', 'how many at once', [512, 4096]))
  .option('--against <file>', 'an earlier build of lychgate, which is measured beside it')
  .option('--only <name>', 'this kind of request', '')
  .parse()
  .opts<{ seconds: number; times: number; connections: readonly number[]; against?: string; only: string }>()

/** A kind of request, and the status of its response. */
interface Kind {
  readonly name: string
  readonly status: number
  readonly request: (target: Target) => { readonly head: string; readonly body: string }
}

const kinds: readonly Kind[] = [
  { name: 'discovery', status: 200, request: ({ paths }) => ({ head: get(paths.discovery), body: '' }) },
  {
    name: 'introspection',
    status: 200,
    request: ({ paths, api }) => ({
      head: postForm(paths.introspect, basic(api.id, api.secret)),
      body: form({ token: 'unknown' }),
    }),
  },
  {
    name: 'authorize',
    status: 303,
    request: ({ paths, app, cookie }) => ({
      head: get(authorizeUrl(paths, app), cookie),
      body: '',
    }),
  },
]

/** What one connection is waiting for. */
interface Line {
  readonly send: () => void
  readonly close: () => void
  isFree: boolean
}

/** What a run has counted. */
interface Counts {
  readonly served: number[]
  readonly rejected: number[]
  unsent: number
  wrong: number
}

async function openLines(count: number, port: number, text: string, expected: number, counts: Counts) {
  const free: Line[] = []
  const open = () =>
    new Promise<Line>((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true })
      socket.setEncoding('latin1')
      let [sent, received] = [0, '']
      const line: Line = {
        isFree: true,
        close: () => void socket.destroy(),
        send: () => {
          sent = performance.now()
          socket.write(text)
        },
      }
      socket.on('data', (chunk: string) => {
        received += chunk
        const end = received.indexOf('\r\n\r\n')
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1] ?? 0)
        if (end < 0 || received.length < end + 4 + length) return
        const [status, passed] = [Number(received.slice(9, 12)), performance.now() - sent]
        received = ''
        if (status === expected) counts.served.push(passed)
        else if (status === 503) counts.rejected.push(passed)
        else counts.wrong += 1
        free.push(line)
      })
      socket.once('connect', () => resolve(line))
      socket.on('error', reject)
    })
  const lines: Line[] = []
  for (let made = 0; made < count; made += 64)
    lines.push(...(await Promise.all(Array.from({ length: Math.min(64, count - made) }, open))))
  free.push(...lines)
  return { free, close: () => lines.forEach((line) => void line.close()) }
}

/** Sends at this rate for some seconds, and reads the memory and the health of the server in the meantime. */
async function overload(target: Target, kind: Kind, connections: number, rate: number) {
  const counts: Counts = { served: [], rejected: [], unsent: 0, wrong: 0 }
  const { head, body } = kind.request(target)
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
  const { port } = target.server
  const lines = await openLines(
    connections,
    port,
    `${head}Host: localhost\r\n${length}\r\n${body}`,
    kind.status,
    counts,
  )
  const health: number[] = []
  let [memory, sent] = [0, 0]
  const cpu = target.server.cpu()
  const began = performance.now()
  const probes: Promise<void>[] = []
  const ask = async () => {
    memory = Math.max(memory, target.server.memory())
    const asked = performance.now()
    const { ok } = await fetch(`http://localhost:${port}/readyz`)
    health.push(ok ? performance.now() - asked : Number.POSITIVE_INFINITY)
  }
  const probe = setInterval(() => void probes.push(ask()), 250)
  await new Promise<void>((resolve) => {
    const tick = () => {
      const passed = performance.now() - began
      if (passed > options.seconds * 1000) return resolve()
      for (const due = (passed * rate) / 1000; sent < due; sent += 1) {
        const line = lines.free.shift()
        if (line === undefined) counts.unsent += 1
        else line.send()
      }
      setImmediate(tick)
    }
    tick()
  })
  clearInterval(probe)
  const seconds = (performance.now() - began) / 1000
  const used = target.server.cpu() - cpu
  await Promise.all(probes)
  lines.close()
  return { ...counts, seconds, sent: sent - counts.unsent, used, memory, health: Math.max(0, ...health) }
}

/** The best rate and the CPU a request takes then, in µs, in a closed loop with 64 connections. */
async function bestRate(target: Target, kind: Kind) {
  const { head, body } = kind.request(target)
  const connections = Array.from({ length: 64 }, () => new Connection(target.server.port))
  const lanes = connections.map((connection) => ({
    operate: async () => {
      const { status } = await connection.send(head, body)
      if (status !== kind.status) throw new Error(`${kind.name}: ${status}`)
    },
    close: () => connection.close(),
  }))
  // The first run is for the compiler.
  await work(lanes, target.server, options.seconds)
  const { operations, seconds, cpu } = await work(lanes, target.server, options.seconds)
  for (const lane of lanes) lane.close()
  return { rate: operations / seconds, cost: cpu / operations }
}

/** Of the best rate. */
interface Share {
  readonly title: string
  readonly served: number
  readonly rejected: number
}

/** Draws the shares of the best rate as bars, fifty characters for all of it. */
function chart(shares: readonly Share[]): string {
  const width = Math.max(...shares.map(({ title }) => title.length))
  const bar = (share: number, mark: string) => mark.repeat(Math.round(share * 50))
  const lines = shares.map(
    ({ title, served, rejected }) =>
      `${title.padEnd(width)} ${bar(served, '█')}${bar(rejected, '░')} ${(100 * served).toFixed(0)} %`,
  )
  return ['█ served, ░ rejected with 503; 50 characters are the best rate', ...lines, ''].join('\n')
}

function quantile(values: readonly number[], share: number): string {
  const sorted = values.toSorted((one, other) => one - other)
  const found = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  return found === undefined ? '' : found.toFixed(0)
}

spawnSync('taskset', ['-a', '-cp', String(loadCore), String(process.pid)])
const targets = [await startLychgate()]
if (options.against !== undefined) targets.push(await startEarlierBuild(options.against))
try {
  const head = [
    '',
    'connections',
    'best/s, µs each',
    'sent/s',
    'served/s',
    '% of best',
    'p50, p99 served, ms',
  ]
  const more = ['503/s', 'p50, p99 of 503, ms', 'health at most, ms', 'µs a 503', 'MiB', 'wrong']
  const rows = [[...head, ...more], [...head, ...more].map(() => '---')]
  const shares: Share[] = []
  for (const kind of kinds.filter(({ name }) => name.includes(options.only))) {
    for (const target of targets) {
      const best = await bestRate(target, kind)
      for (const connections of options.connections) {
        const run = await overload(target, kind, connections, best.rate * options.times)
        const perSecond = (count: number) => (count / run.seconds).toFixed(0)
        shares.push({
          title: `${kind.name}, ${target.name}, ${connections}`,
          served: run.served.length / run.seconds / best.rate,
          rejected: run.rejected.length / run.seconds / best.rate,
        })
        rows.push([
          `${kind.name}, ${target.name}`,
          String(connections),
          `${best.rate.toFixed(0)}, ${best.cost.toFixed(0)}`,
          perSecond(run.sent),
          perSecond(run.served.length),
          ((100 * run.served.length) / run.seconds / best.rate).toFixed(0),
          `${quantile(run.served, 0.5)}, ${quantile(run.served, 0.99)}`,
          perSecond(run.rejected.length),
          `${quantile(run.rejected, 0.5)}, ${quantile(run.rejected, 0.99)}`,
          run.health.toFixed(0),
          // What a request takes is taken from the run before; with many connections it takes less.
          ((run.used - run.served.length * best.cost) / (run.rejected.length || Number.NaN)).toFixed(0),
          run.memory.toFixed(0),
          String(run.wrong),
        ])
      }
    }
  }
  const [processor] = cpus()
  const busy = loadavg()[0]?.toFixed(1)
  const where = `${processor?.model.trim()}, ${cpus().length} cores, load ${busy}, Node ${process.version}`
  const limits = `Wanted: served ${wanted.served} % of best and more, p99 at most ${wanted.servedP99} ms; p99 of 503 at most ${wanted.rejectedP99} ms.`
  process.stdout.write(
    `${where}\n\n${chart(shares)}\n${limits}\n\n${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}\n`,
  )
} finally {
  for (const { server } of targets) await server.stop()
}
