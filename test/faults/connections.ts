/**
 * Thousands of idle connections, and hundreds of slow ones. test/process/slow-client.test.ts tests their time limits.
 */
import { execFileSync } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { newFolder } from '../helpers/command.ts'
import { callApi, obtainTokens, refresh, register, type Tokens } from '../helpers/flow.ts'
import { devAlice, startProcess } from '../helpers/process.ts'

/** Node raises the soft limit to the hard one; both processes need one descriptor per connection. */
const limit =
  Number(execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' })) || Number.POSITIVE_INFINITY
const slowCount = Math.min(500, Math.floor(limit / 20))
const idleCount = Math.min(5000, limit - slowCount - 300)
/** Slow connections are opened again until there were as many flows, however slow the machine is. */
const leastFlows = 5

interface Connection {
  readonly socket: Socket
  received: string
  isClosed: boolean
}

function open(port: number): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: 'localhost', port }, () => resolve(connection))
    const connection: Connection = { socket, received: '', isClosed: false }
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      connection.received += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => {
      connection.isClosed = true
    })
  })
}

async function openMany(port: number, count: number): Promise<Connection[]> {
  const connections: Connection[] = []
  while (connections.length < count) {
    const some = Math.min(100, count - connections.length)
    connections.push(...(await Promise.all(Array.from({ length: some }, () => open(port)))))
  }
  return connections
}

async function until(condition: () => boolean, seconds: number): Promise<boolean> {
  for (let waited = 0; waited < seconds * 20; waited += 1) {
    if (condition()) return true
    await setTimeout(50)
  }
  return condition()
}

async function assertUsable(t: Test, idle: readonly Connection[]): Promise<void> {
  for (const connection of idle) connection.received = ''
  for (const { socket } of idle) socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
  t.ok(
    await until(() => idle.every(({ received }) => received.includes('live"}')), 30),
    'each idle one gets a response',
  )
}

t.test(`with ${idleCount} idle and ${slowCount} slow connections, other requests succeed`, async (t) => {
  const { server, child } = await startProcess(t, newFolder(t), { LYCHGATE_LOG_LEVEL: 'fatal' })
  const port = Number(new URL(server.issuer).port)
  const client = await register(server)

  const idle = await openMany(port, idleCount)
  const slow: Connection[] = []
  const drip = setInterval(() => {
    for (const { socket, isClosed } of slow) if (!isClosed) socket.write('a')
  }, 200)
  t.teardown(() => clearInterval(drip))

  let [worked, isOver] = [0, false]
  const openSlow = async () => {
    await assertUsable(t, idle)
    const some = await openMany(port, slowCount)
    slow.push(...some)
    for (const { socket } of some) socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')
  }
  const hold = async () => {
    while (!isOver) {
      if (slow.some(({ isClosed }) => !isClosed)) await setTimeout(50)
      else if (worked < leastFlows) await openSlow()
      else return
    }
  }
  const work = async () => {
    while (!isOver) {
      const tokens = await obtainTokens(server, client, { user: devAlice })
      const response = await refresh(server, client, tokens.refresh_token)
      if (response.status !== 200) throw new Error(`refresh responded ${response.status}`)
      const { access_token: access } = (await response.json()) as Tokens
      const claims = await callApi(server, '/api/oauth/userinfo', access)
      if (claims.status !== 200) throw new Error(`UserInfo responded ${claims.status}`)
      await claims.text()
      worked += 1
    }
  }
  await openSlow()
  const tasks = [hold(), work(), work()].map((task) =>
    task.finally(() => {
      isOver = true
    }),
  )
  await t.resolves(Promise.all(tasks), 'every request of the others gets a response')
  t.ok(worked >= leastFlows, `${worked} whole flows`)
  t.ok(
    slow.every(({ received }) => received.startsWith('HTTP/1.1 408')),
    'the slow ones got an error, and were disconnected',
  )
  t.ok(
    idle.every(({ isClosed }) => !isClosed),
    'the idle ones were left alone',
  )
  await assertUsable(t, idle)
  t.equal(child.exitCode, null)
  for (const { socket } of [...idle, ...slow]) socket.destroy()
})
