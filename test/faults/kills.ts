/** The server is killed repeatedly under load. FAULTS_SEED repeats a run's schedule, FAULTS_KILLS makes it longer. */
import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import Database from 'better-sqlite3'
import t from 'tap'
import { createDice } from '../fuzz/dice.ts'
import { newFolder, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'
import { atLeast, check, checkSingleUse } from './load/ledger.ts'
import { createLoad } from './load/load.ts'
import { addOperatorClients } from './load/operator-clients.ts'

const seed = process.env['FAULTS_SEED'] ?? String(Date.now())
const kills = Number(process.env['FAULTS_KILLS'] ?? 30)

t.test(
  `killed ${kills} times (seed ${seed}), the server loses nothing it acknowledged, and revives nothing`,
  async (t) => {
    const [data, port, dice] = [newFolder(t), await freePort(), createDice(seed)]
    const settings = {
      LYCHGATE_LOG_LEVEL: 'fatal',
      // Long enough for a client that lost a response to ask again after a restart.
      LYCHGATE_LIFETIMES_CODE_SECONDS: '600',
      LYCHGATE_LIFETIMES_REFRESH_REUSE_SECONDS: '600',
    }
    const operatorClients = await addOperatorClients(`sqlite:${data}/lychgate.db`, kills)
    let running = await startProcess(t, data, { port, ...settings })
    const { server } = running
    const load = createLoad(server, dice, operatorClients)
    const { ledger } = load
    let leftJournals = 0
    for (let kill = 0; kill < kills; kill += 1) {
      const known = { clients: ledger.clients.length, approvals: ledger.approvals.length }
      load.begin()
      await setTimeout(200 + dice.below(1000))
      const { code } = await running.stop('SIGKILL')
      await load.end()
      t.equal(code, null, 'it was killed and did not end by itself')
      leftJournals += Number(existsSync(`${data}/lychgate.db-wal`))
      if (dice.oneIn(5)) await killAtStart(data, port, dice.below(800))
      running = await startProcess(t, data, { port, ...settings })
      await check(server, ledger, {
        clients: ledger.clients.slice(known.clients),
        consents: ledger.consents.slice(-2),
        approvals: [...ledger.approvals.slice(known.approvals), ...dice.some(ledger.approvals).slice(0, 30)],
      })
      t.strictSame(ledger.faults.splice(0), [], `after kill ${kill + 1}`)
    }
    const kinds = ['registration', 'consent', 'code', 'token', 'rotation', 'replay', 'revocation']
    load.begin()
    await atLeast(ledger, kinds, 5)
    await load.end()
    await check(server, ledger, ledger)
    t.strictSame(ledger.faults.splice(0), [], 'everything that was ever acknowledged')
    await checkSingleUse(server, ledger)
    t.strictSame(ledger.faults, [], 'no code and no refresh token works twice')
    t.equal(leftJournals, kills, 'every kill left a journal to recover from')
    t.ok(ledger.lost > kills, `${ledger.lost} requests were under way when it was killed`)
    t.equal((await running.stop('SIGTERM')).code, 0)
    const database = new Database(`${data}/lychgate.db`, { readonly: true })
    t.equal(database.pragma('integrity_check', { simple: true }), 'ok')
    database.close()
    t.comment(JSON.stringify({ ...ledger.acknowledged, lost: ledger.lost }))
    for (const what of kinds) {
      t.ok((ledger.acknowledged[what] ?? 0) >= 5, `${ledger.acknowledged[what]} times: ${what}`)
    }
  },
)

/** Kills a server before, while or just after it opens its database. */
async function killAtStart(data: string, port: number, milliseconds: number): Promise<void> {
  const child = start(['dev', '--port', String(port), '--data', data])
  const end = new Promise((resolve) => child.once('exit', resolve))
  await setTimeout(milliseconds)
  child.kill('SIGKILL')
  await end
}
