/**
 * Lychgate on a coordinator of Citus with two workers: `npm run test:citus -- SOURCE`. FAULTS_SEED repeats what the
 * clients do while workers are lost.
 */

import { setTimeout } from 'node:timers/promises'
import { getTableName } from 'drizzle-orm'
import pg from 'pg'
import t, { type Test } from 'tap'
import { startCitus } from '../../scripts/citus/cluster.ts'
import { openStore } from '../../src/storage/open.ts'
import * as schema from '../../src/storage/postgres/schema.ts'
import { atLeast, check, checkSingleUse } from '../faults/load/ledger.ts'
import { createLoad } from '../faults/load/load.ts'
import { addOperatorClients } from '../faults/load/operator-clients.ts'
import { createDice } from '../fuzz/dice.ts'
import { newFolder, run } from '../helpers/command.ts'
import { register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { patient } from '../helpers/nodes.ts'
import { startProcess } from '../helpers/process.ts'
import { startRoundRobin } from '../helpers/round-robin.ts'
import { startServer } from '../helpers/server.ts'
import { distributedEnds } from '../storage/distributed.suite.ts'
import { operationsOf } from '../storage/operations.ts'
import * as sample from '../storage/samples.ts'
import { grantOwners, insertGrant, storeSuite } from '../storage/store.suite.ts'
import { fill, hot, recordPostgres, wholeFlow } from '../storage/whole-flow.ts'

const source = process.argv[2]
if (source === undefined) throw new Error('name the source of Citus: npm run test:citus -- SOURCE')
const citus = await startCitus(t, source)

async function query(url: string, text: string) {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

const distribute = (url: string) => run(['store', 'distribute'], { environment: { LYCHGATE_STORE: url } })

async function distributedDatabase(): Promise<string> {
  const url = await citus.createDatabase()
  await (await openStore(url, patient)).close()
  const { code, stderr } = await distribute(url)
  if (code !== 0) throw new Error(stderr)
  return url
}

t.test('a store is distributed with what is in it, and not while a server uses it', async (t) => {
  const url = await citus.createDatabase()
  t.match(await distribute(url), { code: 1, stderr: /start this version with it first/ })
  const store = await openStore(url, patient)
  const tokenId = sample.bytes(5, 16)
  await store.write(...grantOwners, insertGrant)
  await store.write({ op: 'revokeAccessToken', grantId: sample.grant.id, tokenId, expiresAt: 2000 })
  t.match(await distribute(url), { code: 1, stderr: /a server uses this store; stop every node first/ })
  await store.close()
  const first = await distribute(url)
  t.match(first, {
    code: 0,
    stdout: /^PostgreSQL 15\.\d+ with Citus 13\.2\.\d+: grants are in 32 parts on 2 machines/,
  })
  t.comment(first.stdout)
  t.match(await distribute(url), { code: 1, stderr: /it is distributed already/ })
  const again = await openStore(url, patient)
  t.teardown(() => again.close())
  t.strictSame(await again.find('grant', sample.grant.id), sample.grant)
  t.match(await again.find('grantOfToken', `${sample.grant.id} ${tokenId}`), { revokedTokens: [tokenId] })
  t.match(await again.audit({ since: 0, limit: 1 }), [{ name: 'store-distributed' }])
  const [worker] = citus.workers
  const ofWorker = new URL(url)
  ofWorker.port = String(worker?.port)
  await t.rejects(openStore(ofWorker.href), /this is a worker of Citus; name the coordinator/)
  t.match(await distribute(ofWorker.href), { code: 1, stderr: /this is a worker of Citus/ })
})

const url = await distributedDatabase()
const tables = Object.values(schema).map((table) => getTableName(table))
const emptied = async () => {
  await query(url, `truncate ${tables.join(', ')}`)
  return url
}

t.test('the store passes every test', async (t) => {
  storeSuite(t, async (t: Test) => {
    const store = await openStore(await emptied(), patient)
    t.teardown(() => store.close())
    return store
  })
})

t.test('what ends something is waited for', async (t) => distributedEnds(t, emptied))

t.test('two nodes perform every operation', async (t) => {
  const server = await startServer(t, { store: await distributedDatabase(), nodes: 2 })
  const operations = Object.entries(await operationsOf(server))
  for (const [name, prepare] of operations) {
    const times: number[] = []
    for (let count = 0; count < 5; count += 1) {
      const operation = await prepare()
      const start = performance.now()
      await t.resolves(operation(), name)
      times.push(performance.now() - start)
    }
    t.comment(`${name}: ${times.toSorted((one, other) => one - other)[2]?.toFixed(1)} ms`)
  }
  for (const node of server.nodes) for (const work of node.repeated) await t.resolves(work(), 'and the sweep')
})

t.test('token work touches one shard', async (t) => {
  const flow = await distributedDatabase()
  const server = await startServer(t, { store: flow })
  await fill(server.deps.store)
  const ran = recordPostgres(t)
  await wholeFlow(t, server)
  const client = new pg.Client(flow)
  await client.connect()
  t.teardown(() => client.end())
  for (const name of hot) t.ok(ran.has(name), `${name} ran`)
  for (const [name, { text, values }] of ran) {
    const { rows } = await client.query(`explain (format json) ${text}`, [...values])
    const counts = taskCounts(rows[0]?.['QUERY PLAN'])
    if (/grants|revoked_access_tokens/.test(text))
      t.strictSame(counts, [1], `${name}: one task on one machine`)
    else for (const count of counts) t.equal(count, 1, name)
  }
})

/** The number of tasks of each distributed query in a plan. */
function taskCounts(plan: unknown): readonly number[] {
  if (typeof plan !== 'object' || plan === null) return []
  return Object.entries(plan).flatMap(([name, value]) =>
    name === 'Task Count' ? [Number(value)] : taskCounts(value),
  )
}

t.test('a worker is lost under load: what was acknowledged is true', async (t) => {
  const seed = process.env['FAULTS_SEED'] ?? String(Date.now())
  t.comment(`seed ${seed}`)
  const [store, data, port] = [await distributedDatabase(), newFolder(t), await freePort()]
  const server = { issuer: `http://localhost:${port}` }
  const settings = {
    LYCHGATE_STORE: store,
    LYCHGATE_ISSUER: server.issuer,
    LYCHGATE_LOG_LEVEL: 'fatal',
    // Long enough for a client that lost a response to ask again.
    LYCHGATE_LIFETIMES_CODE_SECONDS: '600',
    LYCHGATE_LIFETIMES_REFRESH_REUSE_SECONDS: '600',
  }
  const nodes = [await startProcess(t, data, settings), await startProcess(t, data, settings)]
  const ports = nodes.map((node) => Number(new URL(node.server.issuer).port))
  await startRoundRobin(t, port, ports)
  const load = createLoad(server, createDice(seed), await addOperatorClients(store, 24))
  const { ledger } = load
  for (const [index, worker] of citus.workers.entries()) {
    const [clients, approvals, before] = [ledger.clients.length, ledger.approvals.length, ledger.unavailable]
    load.begin()
    await setTimeout(2000)
    await worker.kill()
    await setTimeout(1000)
    await worker.start()
    // Longer than citus.recover_2pc_interval.
    await setTimeout(3000)
    await load.end()
    t.ok(
      ledger.unavailable > before,
      `worker ${index + 1}: ${ledger.unavailable - before} requests got a 503`,
    )
    t.equal(ledger.lost, 0, 'every request got a response')
    for (const node of nodes) await t.resolves(register(node.server), 'and each node works again')
    await check(server, ledger, {
      clients: ledger.clients.slice(clients),
      consents: ledger.consents.slice(-3),
      approvals: ledger.approvals.slice(approvals),
    })
    t.strictSame(ledger.faults.splice(0), [])
  }
  const kinds = ['registration', 'consent', 'code', 'token', 'rotation', 'revocation']
  load.begin()
  await atLeast(ledger, kinds, 5)
  await load.end()
  await check(server, ledger, ledger)
  t.strictSame(ledger.faults.splice(0), [])
  await checkSingleUse(server, ledger)
  t.strictSame(ledger.faults, [])
  t.comment(JSON.stringify({ ...ledger.acknowledged, lost: ledger.lost, unavailable: ledger.unavailable }))
})
