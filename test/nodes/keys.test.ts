/**
 * Keys on nodes that share a PostgreSQL. Each node reloads them every `keys.reloadSeconds`; here the tests do that by
 * hand, except once.
 */
import t, { type Test } from 'tap'
import { runHere } from '../helpers/commands.ts'
import {
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  postAs,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { type ServerOptions, startServer, type TestNode } from '../helpers/server.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const day = 86_400
const postgres = await startPostgres(t)
const fields = { scope: 'openid courses:read' }

async function startThree(t: Test, options: ServerOptions = {}) {
  const store = await postgres.createDatabase()
  const server = await startServer(t, { nodes: 3, store, ...options })
  const [one, two, three] = server.nodes
  if (!one || !two || !three) throw new Error('three nodes were asked for')
  const client = await register(server)
  const tokens = async (node: TestNode) =>
    (await (await exchange(node, client, await obtainCode(node, client, { fields }))).json()) as Tokens
  const environment = { LYCHGATE_STORE: store, LYCHGATE_SECRET: one.deps.config.secret ?? '' }
  return { server, one, two, three, client, tokens, environment }
}

async function publishedBy(node: TestNode): Promise<readonly string[]> {
  const response = await fetch(`${node.issuer}/api/oauth/jwks`)
  const { keys } = (await response.json()) as { readonly keys: readonly { readonly kid: string }[] }
  return keys.map(({ kid }) => kid)
}

function kidOf(jws: string): string {
  return JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString()).kid
}

async function statuses(nodes: readonly TestNode[], token: string): Promise<readonly number[]> {
  return Promise.all(nodes.map(async (node) => (await callApi(node, '/api/courses', token)).status))
}

t.test(
  'a rotation by one node rejects no token at another, and none signs with a key that another does not publish',
  async (t) => {
    const keys = { rotationSeconds: 10 * day, publishAheadSeconds: day }
    const { server, one, two, three, client, tokens } = await startThree(t, { keys })
    const before = await tokens(one)
    const old = await publishedBy(one)
    server.advance(10 * day)
    const { added } = await one.deps.keys.reload()
    t.equal(added.length, 4, 'a successor for each of the four')
    t.strictSame(await publishedBy(two), old, 'who has not read yet publishes what it knew')
    t.ok(old.includes(kidOf((await tokens(one)).id_token)), 'and who made them signs with what all publish')
    for (const node of [two, three]) t.equal((await node.deps.keys.reload()).added.length, 4)
    const both = await publishedBy(one)
    t.equal(both.length, 6)
    for (const node of [two, three]) t.strictSame(await publishedBy(node), both)

    server.advance(day)
    const signed = await Promise.all(server.nodes.map(tokens))
    const kids = new Set(signed.map((each) => kidOf(each.id_token)))
    t.equal(kids.size, 1, 'from one second to the next all sign with the successor')
    for (const kid of kids) t.notOk(old.includes(kid))
    for (const kid of kids) t.ok(both.includes(kid), 'published everywhere for a day')
    for (const { access_token: access } of signed)
      t.strictSame(await statuses(server.nodes, access), [200, 200, 200])
    // The key that signs is the first of its algorithm.
    t.strictSame((await publishedBy(three)).toSorted(), both.toSorted(), 'the old key still verifies')
    const [again] = [await refresh(two, client, before.refresh_token)]
    t.equal(again.status, 200, 'what the old key sealed is opened by all')
    const { access_token: access } = (await again.json()) as Tokens
    t.strictSame(await statuses(server.nodes, access), [200, 200, 200])

    server.advance(8 * day)
    const left = await publishedBy(one)
    t.equal(left.length, 3)
    for (const node of server.nodes)
      t.strictSame(await publishedBy(node), left, 'and goes everywhere at once')
  },
)

t.test('the other nodes load a key that is active at once from the first token it sealed', async (t) => {
  const { server, one, two, three, client, tokens, environment } = await startThree(t)
  const before = await obtainTokens(server, client, { fields })
  server.advance(1)
  t.equal((await runHere(['keys', 'rotate', '--now'], { environment })).code, 0)
  await one.deps.keys.reload()
  const made = await tokens(one)
  t.not(kidOf(made.id_token), kidOf(before.id_token))
  t.notOk((await publishedBy(two)).includes(kidOf(made.id_token)), 'not read yet')
  t.strictSame(await statuses([two, three], made.access_token), [200, 200])
  t.ok((await publishedBy(two)).includes(kidOf(made.id_token)), 'but now it is')
  t.equal((await refresh(three, client, made.refresh_token)).status, 200)
  t.strictSame(await statuses(server.nodes, before.access_token), [200, 200, 200], 'nothing older is refused')
  t.equal(kidOf((await tokens(two)).id_token), kidOf(made.id_token))
})

t.test('a node that has not loaded the new key uses the old one, and every node accepts that', async (t) => {
  const { server, one, two, client, tokens, environment } = await startThree(t)
  // A key that was made in this second signs from the next one.
  server.advance(1)
  t.equal((await runHere(['keys', 'rotate', '--now'], { environment })).code, 0)
  await one.deps.keys.reload()
  const code = await obtainCode(two, client, { fields })
  const response = await exchange(one, client, code)
  t.equal(response.status, 200)
  const made = await tokens(two)
  t.not(kidOf(made.id_token), kidOf(((await response.json()) as Tokens).id_token))
  t.ok((await publishedBy(one)).includes(kidOf(made.id_token)))
  t.strictSame(await statuses(server.nodes, made.access_token), [200, 200, 200])
})

t.test(
  'a running node reloads within reloadSeconds: it drops retired keys and publishes new ones',
  async (t) => {
    const { server, client, tokens, environment } = await startThree(t, { keys: { reloadSeconds: 1 } })
    const [one = server] = server.nodes
    const made = await tokens(one)
    const old = kidOf(made.id_token)
    const retired = await runHere(['keys', 'retire', '--yes', '--', old], { environment })
    t.equal(retired.code, 0, retired.stderr)
    t.equal((await runHere(['keys', 'retire', '--yes', '1'], { environment })).code, 0)
    for (const node of server.nodes) {
      // This takes a second; if the node never reloads, the test times out.
      while ((await publishedBy(node)).includes(old)) await new Promise((resolve) => setTimeout(resolve, 50))
      while ((await callApi(node, '/api/courses', made.access_token)).status === 200) {
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      t.equal((await publishedBy(node)).length, 3)
    }
    const introspected = await postAs(server, client, '/api/oauth/introspect', { token: made.refresh_token })
    t.strictSame(await introspected.json(), { active: false })
    t.strictSame(await statuses(server.nodes, (await tokens(one)).access_token), [200, 200, 200])
  },
)
