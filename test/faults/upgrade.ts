/**
 * Two nodes on one PostgreSQL are upgraded under load from the version before to the next one, one after the other,
 * and one by one back. FAULTS_SEED repeats what the clients do.
 */
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { quickStartOption } from '../../scripts/quick-start.ts'
import { createDice } from '../fuzz/dice.ts'
import { newFolder, run, spawnFile } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'
import { startRoundRobin } from '../helpers/round-robin.ts'
import { type OtherVersion, versionAfter, versionBefore } from '../helpers/versions.ts'
import { startPostgres } from '../storage/postgres-server.ts'
import { atLeast, check, checkSingleUse } from './load/ledger.ts'
import { createLoad } from './load/load.ts'
import { addOperatorClients } from './load/operator-clients.ts'

const seed = process.env['FAULTS_SEED'] ?? String(Date.now())
const kinds = ['registration', 'consent', 'code', 'token', 'rotation', 'revocation']
const before = versionBefore(t)

if (before !== undefined) {
  t.test(
    `from ${before.name} to the next version and back, nothing acknowledged is lost (seed ${seed})`,
    (t) => assertUpgrade(t, before, versionAfter(t, '-- compatible: it only adds\n')),
  )
} else {
  t.comment('SKIPPED: this checkout has no history, and so no version before')
  t.not(process.env['CI'], 'true', 'nothing is skipped with CI=true')
}

async function assertUpgrade(t: Test, old: OtherVersion, young: OtherVersion): Promise<void> {
  const [data, port, postgres] = [newFolder(t), await freePort(), await startPostgres(t)]
  const [store, server] = [await postgres.createDatabase(), { issuer: `http://localhost:${port}` }]
  const settings = {
    LYCHGATE_STORE: store,
    LYCHGATE_ISSUER: server.issuer,
    LYCHGATE_LOG_LEVEL: 'fatal',
    // What the proxy has sent to a node while that one was taken out of its list still gets a response.
    LYCHGATE_DRAIN_SECONDS: '1',
  }
  const start = ({ entry }: OtherVersion) =>
    startProcess(t, data, settings, (args, environment) =>
      spawnFile(process.execPath, [entry, ...args], {
        ...environment,
        PATH: process.env['PATH'] ?? '',
        NODE_OPTIONS: quickStartOption,
      }),
    )
  const nodes = [await start(old), await start(old)]
  const portOf = (node: (typeof nodes)[number]) => Number(new URL(node.server.issuer).port)
  const ports = nodes.map(portOf)
  await startRoundRobin(t, port, ports)
  const load = createLoad(server, createDice(seed), await addOperatorClients(store, 24))
  const { ledger } = load
  /** Starts a node, and stops the oldest one after the requests that it has: what a rolling upgrade does. */
  const replaceOne = async (version: OtherVersion) => {
    const fresh = await start(version)
    nodes.push(fresh)
    ports.push(portOf(fresh))
    const [oldest] = nodes.splice(0, 1)
    ports.splice(0, 1)
    t.equal((await oldest?.stop('SIGTERM'))?.code, 0)
  }
  /** Serves until each kind of request was acknowledged more often, whatever nodes there are now. */
  const serve = async (what: string) => {
    const acknowledged = { ...ledger.acknowledged }
    const isMore = (kind: string) => (ledger.acknowledged[kind] ?? 0) > (acknowledged[kind] ?? 0) + 4
    while (!['code', 'token', 'rotation', 'revocation'].every(isMore)) await setTimeout(50)
    t.strictSame(ledger.faults, [], what)
  }

  load.begin()
  await serve('both of the version before')
  for (const what of ['one of each version', 'both of the next version']) {
    await replaceOne(young)
    await serve(what)
  }
  for (const what of ['one back', 'both back']) {
    await replaceOne(old)
    await serve(what)
  }
  await atLeast(ledger, kinds, 5)
  await load.end()
  t.strictSame([ledger.lost, ledger.unavailable], [0, 0], 'every request got a response, and none a 503')
  await check(server, ledger, ledger)
  t.strictSame(ledger.faults.splice(0), [], 'everything that was acknowledged by either version')
  await checkSingleUse(server, ledger)
  t.strictSame(ledger.faults, [], 'no code and no refresh token works twice')
  t.comment(JSON.stringify(ledger.acknowledged))
  const secret = readFileSync(`${data}/dev-secret`, 'utf8').trim()
  const environment = { LYCHGATE_STORE: store, LYCHGATE_ISSUER: server.issuer, LYCHGATE_SECRET: secret }
  const { stdout } = await run(['doctor', '--offline', '--data', data], { environment })
  t.match(stdout, /schema: a newer version added to it/, 'its tables are those of the next version')
}
