/** The copy of a user who has much: it is read by pages and sent in pieces, and requests have their turn between them. */
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { auditEvent } from '../../../src/domain/audit.ts'
import { consentKind } from '../../../src/domain/connections.ts'
import { insert, put, type Write } from '../../../src/domain/decision.ts'
import { stop } from '../../../src/http/drain.ts'
import { jsonStream } from '../../../src/pages/account/json-stream.ts'
import { StoreUnavailable } from '../../../src/storage/store.ts'
import { executable } from '../../helpers/command.ts'
import { nodeCount } from '../../helpers/nodes.ts'
import { startServer, type TestServer } from '../../helpers/server.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import type { Json } from '../../helpers/wire.ts'
import { startPostgres } from '../../storage/postgres-server.ts'
import * as sample from '../../storage/samples.ts'
import { enter } from './sections.ts'

const [grants, clients, events] = [600, 150, 450]

/** Signs alice in, with many grants, apps and events. */
async function aliceWithMuch(server: TestServer) {
  const agent = new UserAgent(server.issuer)
  const page = await enter(server, agent, '/privacy')
  const { store } = server.deps
  const userId = (await store.find('userByLogin', 'alice'))?.id ?? ''
  const [now, count] = [server.now(), (length: number) => Array.from({ length }, (_, n) => n)]
  const clientId = (n: number) => `many ${n % clients}`
  const writes: Write[] = [
    ...count(clients).map((n) => insert('client', { ...sample.client, id: clientId(n), name: `App ${n}` })),
    ...count(grants).map((n): Write => {
      // Every tenth app has only ended ones.
      const expiresAt = n % 10 === 0 ? now - 1 : now + 1000
      const grant = { ...sample.grant, id: sample.grantId(n), userId, clientId: clientId(n), expiresAt }
      return { op: 'insertGrant', grant }
    }),
    put(consentKind, { ...sample.consent, userId, clientId: clientId(10), grantedAt: now }),
    ...count(events).map((number) => auditEvent('sign-out', { at: now, by: 'user' }, { userId, number })),
  ]
  for (let n = 0; n < writes.length; n += 50) await store.write(...writes.slice(n, n + 50))
  const csrf = page.forms[0]?.fields[0]?.value ?? ''
  return { agent, url: page.url, body: new URLSearchParams({ csrf }), userId }
}

/** Counts turns of the event loop until the test ends. */
function turnsOf(t: Test): () => number {
  let [turns, counts] = [0, true]
  const tick = () => {
    turns += 1
    if (counts) setImmediate(tick)
  }
  setImmediate(tick)
  t.teardown(() => {
    counts = false
  })
  return () => turns
}

const countsOf = <T>(all: readonly T[]) =>
  [...Map.groupBy(all, (one) => one).values()].map((one) => one.length)

async function sendsInPieces(t: Test, store: string): Promise<void> {
  const server = await startServer(t, { store, nodes: 1 })
  const { agent, url, body, userId } = await aliceWithMuch(server)
  const turn = turnsOf(t)
  const { grantsFrom, auditFrom, find, listOf, audit } = server.deps.store
  const [ofGrants, ofEvents, ofClients]: [number[], number[], number[]] = [[], [], []]
  const atOnce: string[] = []
  const limits = new Set<number>()
  const stored = server.deps.store
  stored.grantsFrom = (page) => {
    ofGrants.push(turn())
    limits.add(page.limit)
    return grantsFrom(page)
  }
  stored.auditFrom = (page) => {
    ofEvents.push(turn())
    limits.add(page.limit)
    return auditFrom(page)
  }
  stored.find = (kind, key) => {
    if (kind === 'client') ofClients.push(turn())
    return find(kind, key)
  }
  stored.listOf = (kind, id) => {
    atOnce.push(typeof kind === 'string' ? kind : kind.name)
    return listOf(kind, id)
  }
  stored.audit = (filter) => {
    atOnce.push('audit')
    return audit(filter)
  }
  const response = await agent.send(url, { method: 'POST', body })
  const text = await response.text()
  t.equal(response.status, 200)
  t.equal(response.headers.get('content-disposition'), 'attachment; filename="account.json"')
  t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(response.headers.get('cache-control'), 'no-store')
  const copy = JSON.parse(text) as { readonly apps: Json[]; readonly activity: Json[] }
  t.equal(text, `${JSON.stringify(copy, undefined, 2)}\n`, 'the text of one JSON document')
  t.strictSame(
    copy.apps.map(({ client_id }) => client_id),
    Array.from({ length: clients }, (_, n) => `many ${n}`),
    'by their first grant',
  )
  t.strictSame(
    copy.apps.map(({ name, connected, grants: own }) => [name, connected, (own as Json[]).length]),
    copy.apps.map((_, n) => [`App ${n}`, n % 10 !== 0 || n === 10, grants / clients]),
  )
  t.ok(copy.apps[10]?.['remembered'])
  t.strictSame(
    copy.activity.map(({ facts }) => (facts as { number?: number }).number).filter((n) => n !== undefined),
    Array.from({ length: events }, (_, n) => n),
    'each event once, the oldest first',
  )
  t.equal(copy.activity.at(-1)?.['event'], 'user-exported')

  t.ok(Math.max(...limits) <= 100, 'a page has a bounded number of rows')
  t.ok(ofGrants.length >= grants / 100)
  t.strictSame(new Set(countsOf(ofGrants)), new Set([1]), 'requests are served between pages of grants')
  t.ok(ofEvents.length >= events / 100)
  t.ok(Math.max(...countsOf(ofEvents)) <= 2, 'and between pages of events')
  t.ok(new Set(ofClients).size > 2)
  t.ok(Math.max(...countsOf(ofClients)) < clients / 2, 'and between clients')
  t.notOk(atOnce.includes('grant') || atOnce.includes('audit'), 'neither is read as a whole')
  Object.assign(stored, { grantsFrom, auditFrom, find, listOf, audit })
  t.equal((await stored.audit({ since: 0, userId, name: 'user-exported', limit: 9 })).length, 1)
}

// In one process with its test.
const skip =
  executable === undefined && nodeCount === 1 ? false : 'counts the turns of the event loop of the server'

t.test('on SQLite the copy is sent in pieces, with requests between them', { skip }, (t) =>
  sendsInPieces(t, `sqlite:${t.testdir()}/lychgate.db`),
)

t.test('on PostgreSQL the copy is sent in pieces, with requests between them', { skip }, async (t) =>
  sendsInPieces(t, await (await startPostgres(t)).createDatabase()),
)

/** Signs alice in, with events without an end, and returns the response to her request for the copy. */
async function endlessCopy(t: Test) {
  const server = await startServer(t, { nodes: 1 })
  const { agent, url, body, userId } = await aliceWithMuch(server)
  const { store } = server.deps
  const { auditFrom } = store
  const { events: some } = await auditFrom({ userId, limit: 100 })
  let pages = 0
  let isOut = false
  store.auditFrom = async () => {
    if (isOut) throw new StoreUnavailable('the connection was lost')
    pages += 1
    return { events: some, next: pages }
  }
  const served = new Promise<ServerResponse>((resolve) => {
    server.app.server.once('request', (_, response) => resolve(response))
  })
  const cookie = [...agent.cookies].map(([name, text]) => `${name}=${text}`).join('; ')
  const type = 'application/x-www-form-urlencoded'
  const sending = request(url, { method: 'POST', headers: { cookie, 'content-type': type } })
  sending.end(body.toString())
  const [response]: IncomingMessage[] = await once(sending, 'response')
  if (response === undefined) throw new Error('no response')
  t.equal(response.statusCode, 200)
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn += 1) await nextTurn()
  }
  return {
    server,
    response,
    served: await served,
    pages: () => pages,
    turns,
    loseStore: () => {
      isOut = true
    },
    /** Asserts that no more is read, and that the next copy is whole. */
    async assertEnded() {
      await turns(2)
      const read = pages
      await turns(50)
      t.ok(pages <= read + 1, 'at most the page that was being read')
      store.auditFrom = auditFrom
      const next = await agent.send(url, { method: 'POST', body })
      t.equal(((await next.json()) as { apps: Json[] }).apps.length, clients, 'the next copy is whole')
    },
  }
}

t.test('a copy whose receiver leaves is read no further', { skip }, async (t) => {
  const { server, response, served, pages, assertEnded } = await endlessCopy(t)
  const closed = once(served, 'close')
  response.on('error', () => undefined)
  for await (const _ of response) if (pages() > 200) break // which closes the connection
  await closed
  await assertEnded()
  t.notMatch(server.log.join(''), '"failed"')
})

t.test('a copy that is not received waits, and ends with its connection', { skip }, async (t) => {
  const { server, response, served, pages, turns, assertEnded } = await endlessCopy(t)
  response.pause()
  let read = 0
  do {
    read = pages()
    await turns(500)
  } while (read !== pages())
  t.notOk(served.writableFinished, 'it waits for its receiver')
  t.equal(server.app.server.timeout, 60_000, 'for so long')
  const closed = once(served, 'close')
  served.socket?.emit('timeout')
  await closed
  response.destroy()
  await assertEnded()
})

t.test('a copy that is not received does not keep a server from ending', { skip }, async (t) => {
  const { server, response, served } = await endlessCopy(t)
  response.on('error', () => undefined).pause()
  await stop(server.app, { close: async () => undefined }).finished
  t.notOk(served.writableFinished, 'its connection is cut')
  t.match(server.log.at(-1), '"msg":"stopped"')
})

t.test('a copy ends without its end when the store fails', { skip }, async (t) => {
  const { server, response, pages, loseStore, assertEnded } = await endlessCopy(t)
  let text = ''
  await t.rejects(
    async () => {
      for await (const piece of response.setEncoding('utf8')) {
        text += piece
        if (pages() > 10) loseStore()
      }
    },
    { code: 'ECONNRESET' },
    'no receiver can take it for the whole',
  )
  t.match(text, /^\{\n {2}"made_at": /)
  t.notMatch(text, 'connection')
  t.throws(() => JSON.parse(text))
  const failures = server.log.filter((line) => line.includes('"failed"'))
  const [line] = failures.map((each) => JSON.parse(each) as Json)
  t.equal(failures.length, 1)
  t.match(line, { level: 50, method: 'POST', path: '/account/privacy', error: 'temporarily_unavailable' })
  t.match(line, { cause: { message: 'the store is unavailable', from: 'the connection was lost' } })
  await assertEnded()
})

t.test('a stream of JSON has the text of JSON.stringify, and closes what it reads', async (t) => {
  function* each(...all: unknown[]) {
    yield* all
  }
  async function* parts(...all: unknown[][]) {
    yield* all
  }
  const plain = { text: 'a\n"b" é 日本', none: undefined, list: [1, [], {}], nested: { a: { b: [null] } } }
  const app = { ...plain, grants: each(plain, {}), none: each() }
  const streamed = { ...plain, empty: parts(), empties: parts([], []), apps: parts([app, 1], [], ['x']) }
  const apps = [{ ...plain, grants: [plain, {}], none: [] }, 1, 'x']
  const whole = { ...plain, empty: [], empties: [], apps }
  let text = ''
  for await (const piece of jsonStream(streamed)) text += piece
  t.equal(text, `${JSON.stringify(whole, undefined, 2)}\n`)

  let isClosed = false
  const source = async function* () {
    try {
      for (;;) yield ['x'.repeat(1000)]
    } finally {
      isClosed = true
    }
  }
  const stream = jsonStream({ endless: source() })
  await once(stream, 'readable')
  stream.destroy()
  await once(stream, 'close')
  while (!isClosed) await nextTurn()
  t.pass('closed')
})
