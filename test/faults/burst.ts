/** A flood of registrations, and users who continue to work during it. */
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { newFolder, run } from '../helpers/command.ts'
import { obtainTokens, redirectUri, refresh, register, type Tokens } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { devAlice, startProcess } from '../helpers/process.ts'

const registrations = 10_000
const connections = 64
/** The flood goes on until there were as many, however slow the machine is. */
const leastRefreshes = 21

t.test(
  `${registrations} simultaneous registrations or more are all acknowledged and kept, and other clients continue to work`,
  async (t) => {
    const [data, port] = [newFolder(t), await freePort()]
    const running = await startProcess(t, data, { port, LYCHGATE_LOG_LEVEL: 'fatal' })
    const { server } = running
    const client = await register(server)
    let { refresh_token: token } = await obtainTokens(server, client, { user: devAlice })

    const agent = new Agent({ keepAlive: true, maxSockets: connections })
    const ids = new Set<string>()
    let [sent, refreshed, isOver] = [0, 0, false]
    const flood = async () => {
      while (!isOver && (sent < registrations || refreshed < leastRefreshes)) {
        sent += 1
        ids.add(await registerBy(agent, port))
      }
    }
    const work = async () => {
      while (!isOver) {
        const response = await refresh(server, client, token)
        if (response.status !== 200) throw new Error(`refresh responded ${response.status}`)
        token = ((await response.json()) as Tokens).refresh_token
        refreshed += 1
      }
    }
    const flooded = Promise.all(Array.from({ length: connections }, flood))
    const end = () => {
      isOver = true
    }
    await Promise.all([flooded.finally(end), work().finally(end)])
    agent.destroy()
    t.ok(sent >= registrations, `${sent} registrations`)
    t.equal(ids.size, sent, 'each has an identifier of its own')
    t.ok(refreshed >= leastRefreshes, `${refreshed} refreshes in the meantime`)

    await running.stop('SIGKILL')
    const { stdout } = await run(['client', 'list', '--data', data])
    const kept = new Set(stdout.match(/^client_\S+/gm))
    t.equal(kept.size, sent + 1)
    t.ok([...ids].every((id) => kept.has(id)))
  },
)

function registerBy(agent: Agent, port: number): Promise<string> {
  const body = JSON.stringify({ client_name: 'One of many', redirect_uris: [redirectUri] })
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const sent = request({
      agent,
      host: 'localhost',
      port,
      method: 'POST',
      path: '/api/oauth/register',
      headers,
    })
    sent.once('error', reject)
    sent.once('response', (response) => {
      const read = async () => {
        const received = await text(response)
        if (response.statusCode !== 201)
          throw new Error(`registration responded ${response.statusCode} ${received}`)
        return (JSON.parse(received) as { readonly client_id: string }).client_id
      }
      read().then(resolve, reject)
    })
    sent.end(body)
  })
}
