/**
 * Measures dist/lychgate: its size, the time until its first response compared with that of a bare Fastify in Node,
 * and its memory when idle. Times are medians of runs that take turns; a busy machine slows both.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../test/helpers/free-port.ts'
import { executable } from '../bench/targets.ts'
import { dist, root } from './bundle.ts'

const runs = Number(process.argv[2] ?? 11)
const idleSeconds = 25
const data = mkdtempSync(join(tmpdir(), 'lychgate-measure-'))
const folders = { dev: join(data, 'dev'), serve: join(data, 'serve') }
const secret = execFileSync(`${dist}/lychgate`, ['keys', 'secret'], { encoding: 'utf8' }).trim()
const bare = `import('${root}node_modules/fastify/fastify.js').then(({ default: fastify }) => {
  const app = fastify()
  app.get('/readyz', async () => 'ready')
  app.listen({ port: Number(process.argv[1]) })
})`

try {
  mkdirSync(folders.serve)
  // The first start makes the keys and the users.
  await timed(startDev)
  await timed(startServe)
  const times = { dev: [] as number[], serve: [] as number[], bare: [] as number[] }
  for (let run = 0; run < runs; run += 1) {
    times.bare.push(await timed((port) => spawn(process.execPath, ['-e', bare, String(port)])))
    times.dev.push(await timed(startDev))
    times.serve.push(await timed(startServe))
  }
  const node = median(times.bare)
  print('size', `${(statSync(`${dist}/lychgate`).size / 1e6).toFixed(1)} MB`)
  print('bare Fastify', `ready after ${node.toFixed(0)} ms`)
  for (const kind of ['dev', 'serve'] as const) {
    const ready = median(times[kind])
    print(
      kind,
      `ready after ${ready.toFixed(0)} ms, wanted ${executable.start}; ratio ${(ready / node).toFixed(2)}`,
    )
  }
  await timed(startDev, async (child) => {
    await new Promise((resolve) => setTimeout(resolve, idleSeconds * 1000))
    print(
      `idle, ${idleSeconds} s`,
      `${(residentKilobytes(child) / 1024).toFixed(1)} MiB, wanted ${executable.idle}`,
    )
  })
} finally {
  rmSync(data, { recursive: true, force: true })
}

/** Milliseconds from the start of the process to its first response; then runs `look`, and ends it. */
async function timed(
  start: (port: number) => ChildProcess,
  look: (child: ChildProcess) => Promise<void> = async () => undefined,
): Promise<number> {
  const port = await freePort()
  const began = performance.now()
  const child = start(port)
  const exit = new Promise((resolve) => child.once('exit', resolve))
  while (!(await responses(port))) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`)
  }
  const milliseconds = performance.now() - began
  await look(child)
  child.kill('SIGKILL')
  await exit
  return milliseconds
}

function startDev(port: number): ChildProcess {
  const flags = ['--port', String(port), '--data', folders.dev]
  return spawn(`${dist}/lychgate`, ['dev', ...flags], { env: {}, stdio: 'ignore' })
}

/** As the documentation advises operators: with a secret of `lychgate keys secret`. */
function startServe(port: number): ChildProcess {
  const flags = ['--port', String(port), '--data', folders.serve, '--issuer', `http://localhost:${port}`]
  return spawn(`${dist}/lychgate`, ['serve', ...flags], { env: { LYCHGATE_SECRET: secret }, stdio: 'ignore' })
}

async function responses(port: number): Promise<boolean> {
  const response = await fetch(`http://localhost:${port}/readyz`).catch(() => undefined)
  if (response) await response.text()
  else await new Promise((resolve) => setTimeout(resolve, 5))
  return response?.ok ?? false
}

function residentKilobytes({ pid }: ChildProcess): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

function print(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(12)}  ${value}\n`)
}
