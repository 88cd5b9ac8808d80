/** What two nodes on one PostgreSQL decide together. */
import pg from 'pg'
import t from 'tap'
import { openStore } from '../../src/storage/open.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { obtainCode, obtainTokens, refresh, register, type TestClient, type Tokens } from '../helpers/flow.ts'
import { patient } from '../helpers/nodes.ts'
import { startPostgresProxy } from '../helpers/postgres-proxy.ts'
import { postProven, signProof, tokenPath } from '../helpers/proofs.ts'
import { startServer, type TestNode } from '../helpers/server.ts'
import { startPostgres } from './postgres-server.ts'

const postgres = await startPostgres(t)
const url = await postgres.createDatabase()
const server = await startServer(t, { store: url, nodes: 2 })
const [one, other] = server.nodes as readonly [TestNode, TestNode] // two
const client = await register(server)
const key = makeClientKey()
const proof = () => signProof(key, { url: server.issuer + tokenPath, now: server.now() })
const errorOf = async (response: Response) => ((await response.json()) as { error?: string }).error

async function boundTokens(): Promise<Tokens> {
  const fields = {
    grant_type: 'authorization_code',
    code: await obtainCode(server, client),
    redirect_uri: client.redirectUri,
    code_verifier: 'v'.repeat(43),
  }
  return (await (await postProven(one, client, tokenPath, fields, proof())).json()) as Tokens
}

const refreshAt = (node: TestNode, token: string, used: string, as: TestClient = client, more = {}) =>
  postProven(node, as, tokenPath, { grant_type: 'refresh_token', refresh_token: token, ...more }, used)

t.test('a proof that refreshed at one node is rejected by the other, which changes nothing', async (t) => {
  const { refresh_token: token } = await boundTokens()
  const used = proof()
  const next = (await (await refreshAt(one, token, used)).json()) as Tokens
  const replay = await refreshAt(other, next.refresh_token, used)
  t.equal(replay.status, 400)
  t.equal(await errorOf(replay), 'invalid_dpop_proof')
  t.equal((await refreshAt(other, next.refresh_token, proof())).status, 200, 'its token was not rotated')
})

t.test('a proof stays used where the refresh was rejected', async (t) => {
  const { refresh_token: token } = await boundTokens()
  const another = signProof(makeClientKey(), { url: server.issuer + tokenPath, now: server.now() })
  const stranger = await register(server)
  const rejections = {
    'bound to another key': { used: another, send: () => refreshAt(one, token, another) },
    'more scope than was granted': {
      used: proof(),
      send: (used: string) => refreshAt(one, token, used, client, { scope: 'openid courses:read' }),
    },
    'of another client': { used: proof(), send: (used: string) => refreshAt(one, token, used, stranger) },
    'a resource that is no URL': {
      used: proof(),
      send: (used: string) => refreshAt(one, token, used, client, { resource: 'x' }),
    },
  }
  for (const [name, { used, send }] of Object.entries(rejections)) {
    const rejected = await send(used)
    t.equal(rejected.status, 400, name)
    t.not(await errorOf(rejected), 'invalid_dpop_proof', name)
    const replay = await refreshAt(other, token, used)
    t.equal(await errorOf(replay), 'invalid_dpop_proof', name)
  }
  t.equal((await refreshAt(other, token, proof())).status, 200, 'the grant lives')
})

t.test('of one proof and one refresh token sent 20 times to both nodes, one gets tokens', async (t) => {
  const { refresh_token: token } = await boundTokens()
  const used = proof()
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, index) => refreshAt(index % 2 === 0 ? one : other, token, used)),
  )
  t.equal(responses.filter(({ status }) => status === 200).length, 1)
  const errors = await Promise.all(responses.filter(({ status }) => status !== 200).map(errorOf))
  t.strictSame(new Set(errors), new Set(['invalid_dpop_proof']))
})

t.test(
  'a commit that the database cannot confirm is a 503 with retry-after, and nothing of it is kept',
  async (t) => {
    const { refresh_token: token } = await obtainTokens(server, client)
    const operator = new pg.Client(url)
    await operator.connect()
    t.teardown(() => operator.end())
    await operator.query(`create function unsure() returns trigger language plpgsql as
    $$ begin raise exception 'nobody knows' using errcode = '40003'; end $$`)
    await operator.query(`create constraint trigger unsure after update on grants deferrable initially deferred
    for each row execute function unsure()`)
    const unsure = await refresh(server, client, token)
    t.equal(unsure.status, 503)
    t.equal(unsure.headers.get('retry-after'), '1')
    t.equal(await errorOf(unsure), 'temporarily_unavailable')
    await operator.query('drop trigger unsure on grants')
    t.equal((await refresh(server, client, token)).status, 200, 'it was not rotated')
  },
)

t.test(
  'nodes count the requests of a network together, and tell each other in one trip a second',
  async (t) => {
    const database = await postgres.createDatabase()
    const limits = { ...server.deps.config.requestsPerMinute, token: 5 }
    const limited = await startServer(t, {
      store: database,
      nodes: 2,
      rateLimits: 'on',
      requestsPerMinute: limits,
    })
    const [first, second] = limited.nodes as readonly [TestNode, TestNode] // two
    const client = await register(limited)
    const operator = new pg.Client(database)
    await operator.connect()
    t.teardown(() => operator.end())
    const send = async (node: TestNode) => (await refresh(node, client, 'x')).status
    const told = async () => {
      const { rows } = await operator.query("select body from records where kind = 'node'")
      return rows.flatMap(({ body }) => (JSON.parse(body) as { windows: [string, ...unknown[]][] }).windows)
    }
    const tellUntil = async (requests: number) => {
      const isIt = ([route, , , count]: unknown[]) => String(route).endsWith('/token') && count === requests
      while (!(await told()).some(isIt)) await limited.maintain()
    }

    for (const node of [first, first, first]) t.equal(await send(node), 400)
    await tellUntil(3)
    t.equal(await send(second), 400)
    await tellUntil(1)
    t.equal(await send(second), 400, 'the fifth of both')
    t.equal(await send(second), 429)
    await send(first)
    await tellUntil(4)
    t.equal(await send(first), 429)
  },
)

t.test('what a node tells and what it hears is one trip', async (t) => {
  const proxy = await startPostgresProxy(t, url)
  const stores = await Promise.all([openStore(proxy.url, patient), openStore(url, patient)])
  t.teardown(() => Promise.all(stores.map((store) => store.close())))
  const [store, another] = stores
  const news = (node: string, body: string) => ({ node, body, now: 1000, expiresAt: 1060 })
  t.strictSame(await another.tellNodes?.(news('b', 'B')), [])
  await store.ping()
  proxy.take()
  t.strictSame(await store.tellNodes?.(news('a', 'A')), ['B'])
  t.equal(proxy.take().trips, 1)
  t.strictSame(await another.tellNodes?.({ ...news('b', 'C'), now: 1059 }), ['A'])
  t.strictSame(await store.tellNodes?.({ ...news('a', 'A'), now: 1060 }), [], 'a node that is gone')
})
