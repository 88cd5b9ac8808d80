/** Changes by an operator, or by a client to itself: no node caches clients, so all see them at their next request. */
import t from 'tap'
import { runHere } from '../helpers/commands.ts'
import { authorize, callApi, exchange, obtainCode, obtainTokens, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)
const store = await postgres.createDatabase()
const server = await startServer(t, { nodes: 2, store })
const [one, two] = server.nodes
if (!one || !two) throw new Error('two nodes were asked for')
const fields = { scope: 'openid courses:read' }
const environment = { LYCHGATE_STORE: store, LYCHGATE_ISSUER: server.issuer }

async function lychgate(...line: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runHere(line, { environment })
  if (code !== 0) throw new Error(stderr)
  return stdout
}

t.test('a client registered at one node is known to the other at once, and so are its updates', async (t) => {
  const response = await fetch(`${one.issuer}/api/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Before', redirect_uris: ['http://127.0.0.1/'] }),
  })
  const { client_id: id, registration_access_token: token } = (await response.json()) as Record<
    string,
    string
  >
  const own = (node: typeof one, init: RequestInit = {}) =>
    fetch(`${node.issuer}/api/oauth/register/${id}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    })
  t.match(await (await own(two)).json(), { client_name: 'Before' })
  const changed = { client_id: id, client_name: 'After', redirect_uris: ['http://127.0.0.1/'] }
  t.equal((await own(two, { method: 'PUT', body: JSON.stringify(changed) })).status, 200)
  t.match(await (await own(one)).json(), { client_name: 'After' })
  t.equal((await own(one, { method: 'DELETE' })).status, 204)
  t.equal((await own(two)).status, 401)
})

t.test("an operator's change of a client is visible to both nodes at their next request", async (t) => {
  const client = await register(one)
  const page = async (node: typeof one) => (await authorize(node, client)).status
  t.strictSame([await page(one), await page(two)], [303, 303])
  const tokens = await obtainTokens(server, client, { fields })
  await lychgate('client', 'remove', '--yes', client.id)
  t.strictSame([await page(one), await page(two)], [400, 400], 'unknown to both')
  for (const node of server.nodes) {
    t.equal((await callApi(node, '/api/courses', tokens.access_token)).status, 401)
    t.equal((await exchange(node, client, 'x')).status, 400)
  }
})

t.test('a new secret works and the old one is rejected at both nodes', async (t) => {
  const added = JSON.parse(
    await lychgate(
      'client',
      'add',
      '--json',
      '--name',
      'Site',
      '--redirect-uri',
      'https://site.example/callback',
    ),
  )
  const asking = async (node: typeof one, secret: string) => {
    const client = { id: added.client_id, method: 'client_secret_basic', redirectUri: '', secret }
    return ((await (await exchange(node, client, 'x')).json()) as { error: string }).error
  }
  for (const node of server.nodes) t.equal(await asking(node, added.client_secret), 'invalid_grant')
  const rotated = JSON.parse(await lychgate('client', 'rotate-secret', '--json', '--yes', added.client_id))
  for (const node of server.nodes) {
    t.equal(await asking(node, added.client_secret), 'invalid_client')
    t.equal(await asking(node, rotated.client_secret), 'invalid_grant')
  }
})

t.test('a locked user is signed out at both nodes', async (t) => {
  const client = await register(two)
  const tokens = await obtainTokens(server, client, { fields })
  await lychgate('user', 'lock', '--yes', 'alice')
  for (const node of server.nodes) {
    t.equal((await callApi(node, '/api/courses', tokens.access_token)).status, 401)
  }
  await lychgate('user', 'unlock', 'alice')
})

t.test('a request rejected by one node can be explained at any, and the audit log is shared', async (t) => {
  const clients = [await register(one), await register(two)]
  for (const [index, client] of clients.entries()) {
    const node = server.nodes[index] ?? one
    await obtainCode(node, client)
    const rejected = await exchange(node, client, 'x')
    const id = rejected.headers.get('x-request-id') ?? ''
    let explained = await runHere(['explain', id], { environment })
    // Rejections are written a moment later.
    while (explained.code !== 0) explained = await runHere(['explain', id], { environment })
    t.match(explained.stdout, /was rejected with 400 invalid_grant/)
  }
  for (const client of clients) {
    const events = await lychgate('audit', '--client', client.id)
    t.match(events, / registration /)
    t.match(events, / consent /)
  }
})
