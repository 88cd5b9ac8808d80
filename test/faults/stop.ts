/** SIGTERM while clients of every kind are at work. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { createDice } from '../fuzz/dice.ts'
import { newFolder } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'
import { atLeast, check, checkSingleUse } from './load/ledger.ts'
import { createLoad } from './load/load.ts'

const seed = process.env['FAULTS_SEED'] ?? String(Date.now())

t.test(
  `stopped under load (seed ${seed}), the server responds to every request on the wire, and keeps what it acknowledged`,
  async (t) => {
    const [data, port, dice] = [newFolder(t), await freePort(), createDice(seed)]
    const settings = { port, LYCHGATE_LOG_LEVEL: 'fatal', LYCHGATE_LIFETIMES_CODE_SECONDS: '600' }
    let running = await startProcess(t, data, { ...settings, LYCHGATE_DRAIN_SECONDS: '2' })
    const { server } = running
    const load = createLoad(server, dice)
    for (let stop = 1; stop <= 3; stop += 1) {
      load.begin()
      await setTimeout(500 + dice.below(1000))
      await atLeast(load.ledger, ['token'], stop)
      const end = running.stop('SIGTERM')
      // Like a load balancer: it sends no more once the server reports that it is not ready.
      while ((await fetch(`${server.issuer}/readyz`)).status === 200) await setTimeout(20)
      await load.end()
      t.match(await end, { code: 0, stderr: '' })
      t.equal(load.ledger.lost, 0, `stop ${stop}: every request got a response`)
      running = await startProcess(t, data, { ...settings, LYCHGATE_DRAIN_SECONDS: '2' })
      await check(server, load.ledger, load.ledger)
      t.strictSame(load.ledger.faults, [])
    }
    await checkSingleUse(server, load.ledger)
    t.strictSame(load.ledger.faults, [])
    t.comment(JSON.stringify(load.ledger.acknowledged))
    t.ok((load.ledger.acknowledged['token'] ?? 0) > 0)
  },
)
