/**
 * Two nodes on a PostgreSQL that drops its connections, is restarted and crashes under load. FAULTS_SEED repeats what
 * the clients do.
 */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { createDice } from '../fuzz/dice.ts'
import { newFolder } from '../helpers/command.ts'
import { register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'
import { startRoundRobin } from '../helpers/round-robin.ts'
import { startPostgres } from '../storage/postgres-server.ts'
import { atLeast, check, checkSingleUse } from './load/ledger.ts'
import { createLoad } from './load/load.ts'
import { addOperatorClients } from './load/operator-clients.ts'

const seed = process.env['FAULTS_SEED'] ?? String(Date.now())
const [data, port, dice, postgres] = [
  newFolder(t),
  await freePort(),
  createDice(seed),
  await startPostgres(t),
]
const [store, server] = [await postgres.createDatabase(), { issuer: `http://localhost:${port}` }]
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
const load = createLoad(server, dice, await addOperatorClients(store, 24))
const { ledger } = load
t.comment(`seed ${seed}`)

t.test('PostgreSQL drops every connection, repeatedly', async (t) => {
  await measure(t, async () => {
    const operator = new pg.Client(postgres.url)
    await operator.connect()
    let ended = 0
    const before = ledger.unavailable
    for (let round = 0; round < 8 || ended < 8 || ledger.unavailable === before; round += 1) {
      const { rowCount } = await operator.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lychgate'",
      )
      ended += rowCount ?? 0
      await setTimeout(100 + dice.below(300))
    }
    await operator.end()
    t.ok(ended >= 8, `${ended} connections`)
  })
})

t.test('PostgreSQL stops in order, and restarts after a while', async (t) => {
  await measure(t, async () => {
    await postgres.stop()
    await assertAway(t)
    await postgres.start()
  })
})

t.test('PostgreSQL crashes, and recovers', async (t) => {
  await measure(t, async () => {
    await postgres.abort()
    await assertAway(t)
    await postgres.start()
  })
})

t.test('PostgreSQL crashes as soon as it has restarted', async (t) => {
  await measure(t, async () => {
    for (let round = 0; round < 2; round += 1) {
      await postgres.abort()
      await postgres.start()
      await setTimeout(dice.below(500))
    }
  })
})

t.test('everything that was acknowledged is there, and no code or refresh token works twice', async (t) => {
  const kinds = ['registration', 'consent', 'code', 'token', 'rotation', 'revocation']
  load.begin()
  await atLeast(ledger, kinds, 5)
  await load.end()
  await check(server, ledger, ledger)
  t.strictSame(ledger.faults.splice(0), [])
  await checkSingleUse(server, ledger)
  t.strictSame(ledger.faults, [])
  t.comment(JSON.stringify({ ...ledger.acknowledged, unavailable: ledger.unavailable }))
  for (const what of kinds) {
    t.ok((ledger.acknowledged[what] ?? 0) >= 5, `${ledger.acknowledged[what]} times: ${what}`)
  }
  for (const { child } of nodes) t.equal(child.exitCode, null, 'the nodes are those that were started')
})

/**
 * Disturbs the database under load; every request gets a response in the meantime, and what was acknowledged is true
 * afterwards.
 */
async function measure(t: Test, disturb: () => Promise<void>): Promise<void> {
  const [clients, approvals] = [ledger.clients.length, ledger.approvals.length]
  const before = ledger.unavailable
  load.begin()
  await setTimeout(1000)
  await disturb()
  for (const node of nodes) while (!(await isReady(node.server))) await setTimeout(50)
  await setTimeout(1000)
  await load.end()
  t.ok(ledger.unavailable > before, `${ledger.unavailable - before} requests got a 503`)
  t.equal(ledger.lost, 0, 'every request got a response')
  for (const node of nodes) await t.resolves(register(node.server), 'and each node works again')
  await check(server, ledger, {
    clients: ledger.clients.slice(clients),
    consents: ledger.consents.slice(-3),
    approvals: ledger.approvals.slice(approvals),
  })
  t.strictSame(ledger.faults.splice(0), [])
}

async function isReady({ issuer }: { readonly issuer: string }): Promise<boolean> {
  return (await fetch(`${issuer}/readyz`)).status === 200
}

/** Each node is live, reports that it is not ready, and tells clients to come back. */
async function assertAway(t: Test): Promise<void> {
  const before = ledger.unavailable
  for (const { server: node } of nodes) {
    t.equal((await fetch(`${node.issuer}/livez`)).status, 200)
    t.equal((await fetch(`${node.issuer}/api/oauth/jwks`)).status, 200, 'what needs no database is served')
    for (const path of ['/readyz', '/oauth/authorize?client_id=x']) {
      const response = await fetch(node.issuer + path)
      t.equal(response.status, 503, path)
      t.equal(response.headers.get('retry-after'), '1')
    }
  }
  while (ledger.unavailable === before) await setTimeout(50)
}
