/**
 * `npm run bench -- dpop`: CPU of the server for an API call with a Bearer token, with a DPoP proof (RFC 9449), and with
 * a proof that has a nonce of the server and so needs no record, in paired turns of one run.
 */
import { spawnSync } from 'node:child_process'
import { createPublicKey, sign, verify } from 'node:crypto'
import { makeClientKey } from '../../test/helpers/assertions.ts'
import { countsOption, readCount, readSeconds, scriptCommand } from '../command.ts'
import { startBuild, type Target } from './measured-servers.ts'
import { loadCore } from './process.ts'
import { median, ratio } from './result.ts'
import { dpopMicroseconds } from './targets.ts'
import { work } from './work.ts'
import { type Lane, workloads } from './workloads.ts'

const options = scriptCommand(
  'bench dpop',
  'Compares API calls with and without a DPoP proof in paired turns.',
)
  .option('--build <file>', 'the build to measure', 'dist/lychgate')
  .option('--pairs <number>', 'how many turns each kind of call has', readCount, 60)
  .option('--seconds <number>', 'how long a turn takes', readSeconds, 0.7)
  .option('--warm-up <number>', 'how many turns come before, without being counted', readCount, 8)
  .addOption(countsOption('--connections <numbers>', 'how many at once', [1, 16, 64]))
  .parse()
  .opts<{ build: string; pairs: number; seconds: number; warmUp: number; connections: readonly number[] }>()

/** How many operations a turn prepares: signing a proof takes 30 µs and more, outside of the turn. */
const mostInATurn = 6000

spawnSync('taskset', ['-a', '-cp', String(loadCore), String(process.pid)])
const plain = await startBuild(options.build)
const withNonce = await startBuild(options.build, { LYCHGATE_DPOP_NONCE: 'always' })
try {
  const { verification, importing } = cryptography()
  process.stdout.write(
    `Median CPU: verifying a proof ${verification.toFixed(0)} µs, importing its key ${importing.toFixed(0)} µs.\n\n` +
      '| connections | Bearer, µs | DPoP, µs | wanted at most, µs | DPoP ÷ Bearer (95 %) | with a nonce, µs | ÷ Bearer (95 %) |\n' +
      '| --- | --- | --- | --- | --- | --- | --- |\n',
  )
  for (const connections of options.connections) {
    const kinds = [
      await turnOf(plain, 'API call', connections),
      await turnOf(plain, 'API call, DPoP', connections),
      await turnOf(withNonce, 'API call, DPoP', connections),
    ]
    for (let warm = 0; warm < options.warmUp; warm += 1) for (const { turn } of kinds) await turn()
    const cpu = kinds.map((): number[] => [])
    for (let pair = 0; pair < options.pairs; pair += 1)
      for (let place = 0; place < kinds.length; place += 1) {
        const index = (place + pair) % kinds.length
        cpu[index]?.push((await kinds[index]?.turn()) ?? Number.NaN)
      }
    for (const { lanes } of kinds) for (const lane of lanes) lane.close()
    const [bearer = [], proven = [], nonced = []] = cpu
    const cells = [
      connections,
      median(bearer).toFixed(0),
      median(proven).toFixed(0),
      (median(bearer) + verification + importing + dpopMicroseconds).toFixed(0),
      ratio(proven, bearer),
      median(nonced).toFixed(0),
      ratio(nonced, bearer),
    ]
    process.stdout.write(`| ${cells.join(' | ')} |\n`)
  }
} finally {
  for (const { server } of [plain, withNonce]) await server.stop()
}

/** What no server can leave out, measured here: the load has a core of the same machine. */
function cryptography() {
  const { privateKey, jwk } = makeClientKey('ES256')
  const text = Buffer.from('a'.repeat(400))
  const signature = sign('sha256', text, privateKey)
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  const each = (operation: () => unknown) => {
    const times = Array.from({ length: 2000 }, () => {
      const { user, system } = process.cpuUsage()
      for (let count = 0; count < 10; count += 1) operation()
      const after = process.cpuUsage()
      return (after.user + after.system - user - system) / 10
    })
    return median(times)
  }
  return {
    verification: each(() => verify('sha256', text, key, signature)),
    importing: each(() => createPublicKey({ key: jwk, format: 'jwk' })),
  }
}

async function turnOf(target: Target, name: string, connections: number) {
  const workload = workloads.find((candidate) => candidate.name === name)
  if (workload === undefined) throw new Error(`no workload ${name}`)
  const lanes: readonly Lane[] = await Promise.all(
    Array.from({ length: connections }, () => workload.lane(target)),
  )
  let most = Math.ceil(400 / connections)
  const turn = async () => {
    for (const lane of lanes) await lane.prepare?.(most)
    const isPrepared = lanes[0]?.prepare !== undefined
    const { cpu, operations, seconds } = await work(lanes, target.server, options.seconds, {
      ...(isPrepared && { most }),
      ownCore: true,
    })
    const perTurn = Math.min((operations / seconds) * options.seconds * 1.2, mostInATurn)
    most = Math.ceil(perTurn / connections)
    return cpu / operations
  }
  return { lanes, turn }
}
