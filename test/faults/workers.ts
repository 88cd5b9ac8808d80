/** Workers of a server are killed and replaced under load: what one acknowledged, all know. */
import { setTimeout } from 'node:timers/promises'
import Database from 'better-sqlite3'
import t from 'tap'
import { createDice } from '../fuzz/dice.ts'
import { childrenOf, startWorkers } from '../helpers/workers.ts'
import { atLeast, check, checkSingleUse } from './load/ledger.ts'
import { createLoad } from './load/load.ts'

const seed = process.env['FAULTS_SEED'] ?? String(Date.now())
const kinds = ['registration', 'code', 'token', 'rotation', 'replay', 'revocation']

t.test(
  `workers killed and replaced under load (seed ${seed}) lose nothing and fail no request`,
  async (t) => {
    const dice = createDice(seed)
    const { server, child, environment, logged, end } = await startWorkers(t, {
      LYCHGATE_LOG_LEVEL: 'info',
      LYCHGATE_LIFETIMES_CODE_SECONDS: '600',
      LYCHGATE_LIFETIMES_REFRESH_REUSE_SECONDS: '600',
    })
    const load = createLoad(server, dice)
    const { ledger } = load
    const [kills, restarts] = [3, 1]
    for (let kill = 1; kill <= kills; kill += 1) {
      load.begin()
      await setTimeout(200 + dice.below(500))
      const workers = childrenOf(child)
      process.kill(workers[dice.below(workers.length)] ?? 0, 'SIGKILL')
      await load.end()
      await logged('ready', 2 + kill)
      await check(server, ledger, ledger)
      t.strictSame(ledger.faults.splice(0), [], `after kill ${kill}`)
    }
    t.ok(ledger.lost > 0, `${ledger.lost} requests were under way when a worker was killed`)
    const lostByKills = ledger.lost
    load.begin()
    for (let restart = 1; restart <= restarts; restart += 1) {
      child.kill('SIGHUP')
      await logged('restarted every worker', restart)
    }
    await atLeast(ledger, kinds, 5)
    await load.end()
    t.equal(ledger.lost, lostByKills, 'a restart fails no request')
    await check(server, ledger, ledger)
    await checkSingleUse(server, ledger)
    t.strictSame(ledger.faults, [], 'no code and no refresh token works twice')
    child.kill('SIGTERM')
    const { code, stderr } = await end
    t.equal(code, 0, stderr)
    const database = new Database(`${environment.LYCHGATE_DATA}/lychgate.db`, { readonly: true })
    t.equal(database.pragma('integrity_check', { simple: true }), 'ok')
    database.close()
    t.comment(JSON.stringify({ ...ledger.acknowledged, lost: ledger.lost, unavailable: ledger.unavailable }))
  },
)
