/** The server is killed, and stopped, between the end of a session and the delivery of its logout tokens. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { createDice } from '../fuzz/dice.ts'
import { pageOf } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { claimsOf, obtainTokens } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { addLogoutClient } from '../helpers/logout-client.ts'
import { startLogoutReceiver } from '../helpers/logout-receiver.ts'
import { devAlice, startProcess } from '../helpers/process.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const seed = process.env['FAULTS_SEED'] ?? String(Date.now())
const kills = Number(process.env['FAULTS_KILLS'] ?? 30) / 3

t.test(
  `killed ${kills} times after a sign-out (seed ${seed}), the server loses no logout token`,
  async (t) => {
    const [data, port, dice] = [newFolder(t), await freePort(), createDice(seed)]
    const receiver = await startLogoutReceiver(t)
    const client = await addLogoutClient(`sqlite:${data}/lychgate.db`, receiver.uri)
    const settings = { port, LYCHGATE_LOG_LEVEL: 'fatal' }
    let running = await startProcess(t, data, settings)
    const { server } = running
    const received = () =>
      new Set(receiver.requests.map(({ form }) => claimsOf(form.get('logout_token') ?? '')['sid']))

    /** A browser with a user who is signed in to the client, and the sid of the session. */
    const signIn = async () => {
      const agent = new UserAgent(server.issuer)
      const tokens = await obtainTokens(server, client, { agent, user: devAlice })
      return { agent, sid: claimsOf(tokens.id_token)['sid'] }
    }
    /** Resolves once the sign-out was acknowledged. */
    const signOut = async (agent: UserAgent) => {
      const page = pageOf(await agent.open(`${server.issuer}/oauth/logout`))
      const done = pageOf(await agent.submit(page, { decision: 'logout' }))
      if (done.status !== 200) throw new Error(`sign-out responded ${done.status}`)
    }

    const acknowledged: unknown[] = []
    let undelivered = 0
    for (let kill = 0; kill < kills; kill += 1) {
      // The last one is a clean stop.
      const signal = kill >= kills - 2 ? 'SIGTERM' : 'SIGKILL'
      receiver.conduct = dice.oneIn(4) ? 503 : 200
      const browsers = await Promise.all([signIn(), signIn(), signIn()])
      await Promise.all(browsers.map(({ agent }) => signOut(agent)))
      acknowledged.push(...browsers.map(({ sid }) => sid))
      await setTimeout(dice.below(1200))
      const { code } = await running.stop(signal)
      t.equal(code, signal === 'SIGTERM' ? 0 : null, signal)
      undelivered += acknowledged.filter((sid) => !received().has(sid)).length
      running = await startProcess(t, data, settings)
    }
    receiver.conduct = 200
    while (acknowledged.some((sid) => !received().has(sid))) await setTimeout(100)
    t.pass(`${acknowledged.length} sessions ended, and each client heard of it`)
    t.ok(undelivered > 0, `${undelivered} deliveries were left to the next start`)
    t.equal((await running.stop('SIGTERM')).code, 0)
  },
)
