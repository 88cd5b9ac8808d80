/** The breaker of logout deliveries, on two nodes that share only a PostgreSQL. */
import t, { type Test } from 'tap'
import { put } from '../../src/domain/decision.ts'
import { finishedDeliveryKind, logoutDeliveryKind } from '../../src/domain/logout-delivery.ts'
import { logoutPauseKind } from '../../src/specs/oidc-backchannel-logout/pause.ts'
import { ask, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import { claimsOf, exchange, type TestClient, type Tokens } from '../helpers/flow.ts'
import { type LogoutReceiver, startLogoutReceiver, verifyLogoutToken } from '../helpers/logout-receiver.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import type { UserAgent } from '../helpers/user-agent.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)
const every = { madeUntil: Number.MAX_SAFE_INTEGER, limit: 100 }

/** A client with its receiver of logout tokens. */
interface Told {
  readonly client: TestClient
  readonly receiver: LogoutReceiver
}

/** A browser that is signed in at two clients, and the `sid` that the silent one got. */
interface Browser {
  readonly agent: UserAgent
  readonly sid: string
}

/** Moves the clock of both nodes; responds when they have done what was due then. */
async function moveClock({ issuer }: TestServer, change: object): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const moved = await fetch(`${issuer}/_dev/clock`, {
    method: 'POST',
    headers,
    body: JSON.stringify(change),
  })
  if (!moved.ok) throw new Error(`the clock was not moved: ${moved.status}`)
}

async function toldClient(t: Test, server: TestServer): Promise<Told> {
  const receiver = await startLogoutReceiver(t)
  const description = { backchannel_logout_uri: receiver.uri }
  return { client: await integrate(server, { consent: 'skip', description }), receiver }
}

async function browserOf(server: TestServer, silent: Told, other: Told): Promise<Browser> {
  const agent = await signedIn(server, silent.client)
  const sids: string[] = []
  for (const { client } of [other, silent]) {
    const { code = '' } = sentAway(await ask(server, client, {}, agent))
    const tokens = (await (await exchange(server, client, code)).json()) as Tokens
    sids.push(String(claimsOf(tokens.id_token)['sid']))
  }
  return { agent, sid: sids.at(-1) ?? '' }
}

async function signOut(server: TestServer, { agent }: Browser): Promise<void> {
  await agent.submit(pageOf(await agent.open(`${server.issuer}/oauth/logout`)), { decision: 'logout' })
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Lets both nodes look for deliveries a few times, and waits until no delivery is under way. */
async function lookAgain(server: TestServer): Promise<void> {
  for (const _ of [1, 2, 3]) {
    await server.maintain()
    await until(async () => {
      const deliveries = await server.deps.store.listKind(logoutDeliveryKind, every)
      return deliveries.every(({ leasedUntil }) => leasedUntil === undefined)
    })
  }
}

const pauseOf = ({ deps }: TestServer, { client }: Told) => deps.store.find(logoutPauseKind, client.id)

/** Signs these browsers out while one client does not respond, until it is paused. */
async function paused(t: Test, server: TestServer, silent: Told, other: Told, browsers: readonly Browser[]) {
  await Promise.all(browsers.map((browser) => signOut(server, browser)))
  for (const _ of browsers) await verifyLogoutToken(server, other.client, await other.receiver.next())
  await until(async () => ((await pauseOf(server, silent))?.failures ?? 0) >= 3)
  await lookAgain(server)
  const { length: tries } = silent.receiver.requests
  // Each node has four places for a client, and notes a failure before it uses one again.
  t.ok(tries >= 3 && tries < 12, `${tries} tries`)
  await lookAgain(server)
  t.equal(silent.receiver.requests.length, tries, 'and no more')
  return tries
}

/** Asserts that the client gets one token of each session, now that it responds. */
async function assertDelivered(
  t: Test,
  server: TestServer,
  { client, receiver }: Told,
  due: readonly string[],
) {
  const before = receiver.requests.length
  receiver.conduct = 200
  await moveClock(server, { advance: 600 })
  const { store } = server.deps
  for (const sid of due) {
    await until(async () => (await store.find(finishedDeliveryKind, sid)) !== undefined)
    t.match(await store.find(finishedDeliveryKind, sid), { outcome: 'delivered' })
  }
  const sids: unknown[] = []
  for (const request of receiver.requests.slice(before)) {
    const currentDate = new Date(server.now() * 1000)
    sids.push((await verifyLogoutToken(server, client, request, { currentDate })).claims['sid'])
  }
  t.strictSame(sids.sort(), [...due].sort(), 'each once')
  t.equal(await store.find(logoutPauseKind, client.id), undefined, 'and the pause is over')
  t.strictSame(await store.listKind(logoutDeliveryKind, every), [])
}

t.test('two nodes leave a client that does not respond alone, and one of them tries it again', async (t) => {
  const server = await startServer(t, { mode: 'dev', nodes: 2, store: await postgres.createDatabase() })
  await moveClock(server, { freeze: true })
  const [silent, other] = [await toldClient(t, server), await toldClient(t, server)]
  const browsers: Browser[] = []
  for (let count = 0; count < 4; count += 1) browsers.push(await browserOf(server, silent, other))
  // Of sessions that ended a moment ago.
  const ended = Array.from({ length: 8 }, (_, at) => `ended-${at}`)
  const common = { userId: 'user', clientId: silent.client.id, endedAt: server.now() }
  silent.receiver.conduct = 'closed'
  await server.deps.store.write(...ended.map((sid) => put(logoutDeliveryKind, { sid, ...common })))
  const tries = await paused(t, server, silent, other, browsers)

  const { until: end = 0, failures = 0 } = (await pauseOf(server, silent)) ?? {}
  await moveClock(server, { advance: end - server.now() })
  await until(async () => ((await pauseOf(server, silent))?.failures ?? 0) > failures)
  await lookAgain(server)
  t.equal(silent.receiver.requests.length, tries + 1, 'one try of one node')
  t.match(await pauseOf(server, silent), { failures: failures + 1 }, 'and the next pause')
  await assertDelivered(t, server, silent, [...ended, ...browsers.map(({ sid }) => sid)])
  t.equal(other.receiver.requests.length, browsers.length)
})
