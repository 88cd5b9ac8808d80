/**
 * Two Lychgate nodes on a PostgreSQL that fails over, with Patroni, etcd and HAProxy as an operator would run them:
 * the primary is lost repeatedly under load. FAULTS_SEED repeats what the clients do.
 */
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { makeFolder } from '../../scripts/cluster/folder.ts'
import { until } from '../../scripts/cluster/loopback.ts'
import { getPrograms } from '../../scripts/cluster/packages.ts'
import { type Roles, startCluster } from '../../scripts/cluster/start.ts'
import { atLeast, check, checkSingleUse } from '../faults/load/ledger.ts'
import { createLoad } from '../faults/load/load.ts'
import { addOperatorClients } from '../faults/load/operator-clients.ts'
import { createDice } from '../fuzz/dice.ts'
import { startWatch } from './watch.ts'

/** The longest time without writes. */
const mostSeconds = 30
/** The longest time until a response, which may be 503. */
const longestSeconds = 12

const seed = process.env['FAULTS_SEED'] ?? String(Date.now())
t.comment(`seed ${seed}`)
const folder = makeFolder()
t.teardown(() => folder.remove())
const cluster = await startCluster(folder, getPrograms(folder), {
  LYCHGATE_LOG_LEVEL: 'error',
  // Long enough for a client that lost a response to ask again.
  LYCHGATE_LIFETIMES_CODE_SECONDS: '600',
  LYCHGATE_LIFETIMES_REFRESH_REUSE_SECONDS: '600',
})
const load = createLoad(cluster, createDice(seed), await addOperatorClients(cluster.store, 30), 2)
const { ledger } = load

t.test('both nodes are killed, and only the standby restarts: nothing acknowledged is lost', async (t) => {
  await failOver(t, async ({ primary, standby }) => {
    // The standby does not have what is acknowledged now, unless commits wait for it.
    cluster.freeze(standby)
    await setTimeout(1000)
    cluster.kill(primary)
    cluster.kill(standby)
    cluster.revive(standby)
    return () => cluster.revive(primary)
  })
})

t.test('the node that took over is killed: nothing acknowledged is lost', async (t) => {
  await failOver(t, async ({ primary }) => {
    cluster.kill(primary)
    return () => cluster.revive(primary)
  })
})

t.test('the primary hangs, with every connection open: nothing acknowledged is lost', async (t) => {
  await failOver(t, async ({ primary }) => {
    cluster.freeze(primary)
    // Like its watchdog. When it resumes, Patroni before 3.0.3 can take the key from the node that took over.
    return () => {
      cluster.kill(primary)
      cluster.revive(primary)
    }
  })
})

t.test(
  'the standby hangs: commits that wait for it are aborted, and later writes succeed without it',
  async (t) => {
    const { primary, standby } = await cluster.settled()
    const unavailable = await lose(t, async () => cluster.freeze(standby))
    t.ok(unavailable > 0, `${unavailable} responses were 503`)
    const roles = await until('a primary', async () => {
      const now = await cluster.roles()
      return now.primary !== undefined && now
    })
    t.strictSame(roles, { primary })
  },
)

t.test('everything that was acknowledged is there, and no code or refresh token works twice', async (t) => {
  const kinds = ['registration', 'consent', 'code', 'token', 'rotation', 'replay', 'revocation']
  load.begin()
  await atLeast(ledger, kinds, 5)
  await load.end()
  await check(cluster, ledger, ledger)
  t.strictSame(ledger.faults.splice(0), [])
  await checkSingleUse(cluster, ledger)
  t.strictSame(ledger.faults, [])
  t.comment(JSON.stringify({ ...ledger.acknowledged, lost: ledger.lost, unavailable: ledger.unavailable }))
  for (const what of kinds) {
    t.ok((ledger.acknowledged[what] ?? 0) >= 5, `${ledger.acknowledged[what]} times: ${what}`)
  }
})

/** Loses the primary: the standby takes over, and the lost node becomes its standby. */
async function failOver(t: Test, loss: (roles: Roles) => Promise<() => void>): Promise<void> {
  const { primary, standby } = await cluster.settled()
  let bringBack: () => void = () => undefined
  const unavailable = await lose(
    t,
    async () => {
      bringBack = await loss({ primary, standby })
    },
    async () => {
      bringBack()
      t.strictSame(await cluster.settled(), { primary: standby, standby: primary }, 'they changed places')
    },
  )
  t.ok(unavailable > 0, `${unavailable} responses were 503`)
}

/**
 * Loses a node under load, waits for writes, and checks that what was acknowledged is true. Counts responses of 503.
 */
async function lose(
  t: Test,
  loss: () => Promise<void>,
  afterwards: () => Promise<void> = async () => undefined,
): Promise<number> {
  load.begin()
  const watch = await startWatch(cluster, ledger.clients)
  await setTimeout(2000)
  await loss()
  const seconds = await watch.untilWritten(performance.now())
  await setTimeout(2000)
  await load.end()
  await afterwards()
  const { writes, reads, longest, unavailable } = await watch.end()
  t.ok(seconds < mostSeconds, `writes are back ${seconds.toFixed(1)} s after it`)
  t.ok(longest < longestSeconds, `no response took longer than ${longest.toFixed(1)} s`)
  t.strictSame(new Set([...writes, '503 1']), new Set(['201 null', '503 1']))
  t.strictSame(new Set([...reads, '503 1']), new Set(['200 null', '503 1']))
  t.equal(ledger.lost, 0, 'every request got a response')
  await check(cluster, ledger, {
    clients: ledger.clients.slice(-150),
    consents: ledger.consents.slice(-3),
    approvals: ledger.approvals.slice(-100),
  })
  if (ledger.faults.length > 0) tellFailures(t)
  t.strictSame(ledger.faults.splice(0), [])
  return unavailable
}

/** The log lines of the nodes about the last requests that failed. */
function tellFailures(t: Test): void {
  for (const name of ['lychgate-1', 'lychgate-2']) {
    const failed = folder.words(name).filter((line) => line.includes('"failed"'))
    t.comment([name, ...failed.slice(-5)].join('\n'))
  }
}
