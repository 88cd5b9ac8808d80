/** What the server rejects when more arrives than it can serve, in which order, and how it reports that. */
import { connect } from 'node:net'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { drain } from '../../src/http/drain.ts'
import { errorMapper } from '../../src/http/errors.ts'
import { loadShedding } from '../../src/http/load-shedding.ts'
import type { Counted } from '../../src/system/count.ts'
import { countChannel } from '../../src/system/count.ts'

/** A server with a page, an endpoint and a document, on which each turn has taken so long at its second request. */
async function startSlow(t: Test, milliseconds: number) {
  const log: { level: number; msg: string }[] = []
  const app = Fastify({ logger: { stream: { write: (line: string) => void log.push(JSON.parse(line)) } } })
  let [time, looks] = [0, 0]
  await app.register(errorMapper)
  await app.register(drain, { seconds: 0 })
  await app.register(loadShedding, { now: () => time + (looks++ === 0 ? 0 : milliseconds) })
  await app.register(async (scope) => {
    app.rejectPagesLast(scope)
    scope.get('/login', async () => 'page')
  })
  for (const path of ['/livez', '/document', '/endpoint']) app.get(path, async () => 'served')
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  const address = app.server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  /** Sends requests in one write, which the server reads in one turn, and returns the responses in their order. */
  const sendTogether = (requests: readonly string[]) => {
    looks = 0
    time += 200
    return new Promise<readonly { status: number; text: string }[]>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1')
      let text = ''
      socket.on('error', reject)
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        const responses = text.split(/(?=HTTP\/1\.1 \d{3})/)
        if (responses.length < requests.length || !/[}a-z]$/.test(text)) return
        socket.destroy()
        resolve(responses.map((one) => ({ status: Number(one.slice(9, 12)), text: one })))
      })
      socket.write(requests.join(''))
    })
  }
  /** The turns before are late, for long enough. */
  const sendLate = async (requests: readonly string[]) => {
    await sendTogether(crowd)
    return sendTogether(requests)
  }
  const forget = () => {
    time = 10_000_000
  }
  return { app, log, sendTogether, sendLate, forget }
}

const get = (path: string, ...headers: string[]) =>
  `GET ${path} HTTP/1.1\r\nhost: a\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`
const hundred = Array.from({ length: 100 }, () => get('/document'))
const crowd = [...hundred, get('/document')]
const statuses = (responses: readonly { status: number }[]) => responses.map(({ status }) => status)

t.test('a hundred requests at once are served, however long that takes', async (t) => {
  const { sendLate } = await startSlow(t, 1000)
  t.strictSame(new Set(statuses(await sendLate(hundred))), new Set([200]))
})

t.test('a burst is served, and so is one after a turn that was on time', async (t) => {
  const { sendTogether, forget } = await startSlow(t, 1000)
  const served = new Set([200])
  t.strictSame(new Set(statuses(await sendTogether(crowd))), served)
  t.strictSame(new Set(statuses(await sendTogether([get('/document')]))), served)
  t.strictSame(new Set(statuses(await sendTogether(crowd))), served)
  t.strictSame(statuses(await sendTogether(crowd)).at(-1), 503, 'without one it is not')
  forget()
  t.strictSame(new Set(statuses(await sendTogether(crowd))), served, 'nor is the past held against it')
})

t.test('further ones are rejected: documents first, then clients, and pages last', async (t) => {
  const kinds = [
    get('/document'),
    get('/endpoint', 'authorization: Bearer x'),
    get('/login'),
    get('/document', 'cookie: a=b'),
    get('/livez'),
  ]
  const expected = {
    5: [200, 200, 200, 200, 200],
    21: [503, 200, 200, 200, 200],
    31: [503, 503, 200, 200, 200],
  }
  for (const [late, wanted] of Object.entries(expected)) {
    for (const [index, kind] of kinds.entries()) {
      const { sendLate } = await startSlow(t, Number(late))
      const responses = await sendLate([...hundred, kind])
      t.equal(responses.at(-1)?.status, wanted[index], `${kind.split(' ')[1]} after ${late} ms`)
    }
  }
})

t.test(
  'even a page is rejected when its user would wait too long, with or without a cookie, and health never',
  async (t) => {
    const { sendLate } = await startSlow(t, 61)
    const responses = await sendLate([
      ...hundred,
      get('/login'),
      get('/document', 'cookie: a=b'),
      get('/livez'),
    ])
    t.strictSame(statuses(responses.slice(-3)), [503, 503, 200])
  },
)

t.test('the rejection is JSON with Retry-After, and the connection stays', async (t) => {
  const { sendLate } = await startSlow(t, 30)
  const [rejected, served] = (await sendLate([...hundred, get('/document'), get('/livez')])).slice(-2)
  t.match(rejected?.text, /^HTTP\/1\.1 503 /)
  t.match(rejected?.text, /\r\nretry-after: 1\r\n/i)
  t.match(rejected?.text, /\r\ncache-control: no-store\r\n/i)
  t.match(rejected?.text, /"error":"temporarily_unavailable"/)
  t.notMatch(rejected?.text, /\r\nconnection: close\r\n/i)
  t.equal(served?.status, 200)
})

t.test(
  'one line of the log, a metric and a finding report it, whatever the number of rejections',
  async (t) => {
    const { app, log, sendLate, forget } = await startSlow(t, 30)
    const counted: Counted[] = []
    const onCount = (message: unknown) => void counted.push(message as Counted) // nothing else is published there
    countChannel.subscribe(onCount)
    t.teardown(() => countChannel.unsubscribe(onCount))
    t.equal(app.loadFinding(), undefined)
    await sendLate([...hundred, get('/document'), get('/document'), get('/document')])
    const warnings = () => log.filter(({ level }) => level === 40).map(({ msg }) => msg)
    t.strictSame(warnings(), ['overloaded: requests are rejected with 503'])
    t.equal(counted.filter(({ name }) => name === 'requests_shed_total').length, 3)
    t.strictSame(
      counted.filter(({ name }) => name === 'overloaded').map(({ change }) => change),
      [1],
    )
    t.match(app.loadFinding(), {
      check: 'load',
      level: 'problem',
      found: '3 requests were rejected with 503',
    })
    await app.close()
    t.strictSame(warnings(), ['overloaded: requests are rejected with 503', 'no longer overloaded'])
    t.match(app.loadFinding(), { level: 'warning' })
    forget()
    t.equal(app.loadFinding(), undefined, 'an hour later')
  },
)
