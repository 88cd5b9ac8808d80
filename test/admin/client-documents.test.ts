/** Client metadata documents at the admin API: an operator fetches, reads and denies them, as by the command line. */
import t from 'tap'
import { createGroup } from '../../src/domain/group.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups, removeFromGroup } from '../../src/users/groups.ts'
import { ask, integrate, sentAway, signedIn } from '../helpers/authorization.ts'
import { authorize, exchange, postAs } from '../helpers/flow.ts'
import { inBetween } from '../helpers/in-between.ts'
import { alice, startServer } from '../helpers/server.ts'
import { startStandInDocuments } from '../helpers/stand-in-documents.ts'
import { json } from '../helpers/wire.ts'

// `allowed` does not have the host: an operator names what is fetched.
const server = await startServer(t, {
  mode: 'dev',
  nodes: 1,
  admin: { api: 'on' },
  clientDocuments: { mode: 'allow-list', allowed: [] },
  fetch: { perOriginPerMinute: 500 },
})
const site = await startStandInDocuments(t)
const { store, clock } = server.deps
const root = `${server.issuer}/api/admin/v1/client-documents`
const machine = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['admin:clients:read', 'admin:clients:write'],
})
const issued = await postAs(server, machine, '/api/oauth/token', { grant_type: 'client_credentials' })
const token = String((await json(issued))['access_token'])

async function call(
  method: string,
  url = '',
  act = '',
  headers: Readonly<Record<string, string>> = {},
  by = token,
) {
  const path = url === '' || url.startsWith('?') ? url : `/${encodeURIComponent(url)}`
  const response = await fetch(`${root}${path}${act && `/${act}`}`, {
    method,
    headers: { authorization: `Bearer ${by}`, ...headers },
  })
  return { status: response.status, headers: response.headers, body: await json(response) }
}
const auditOf = async (clientId: string) =>
  (await store.audit({ since: 0, limit: 10, clientId })).map(({ name, by, facts }) => [
    name,
    by,
    facts['actor'],
  ])

t.test('a document is fetched, whatever the settings accept, and read', async (t) => {
  const { client, document } = site.publish({}, `/${'long/'.repeat(100)}client.json`)
  const none = await call('GET', client.id)
  t.strictSame([none.status, none.body['error']], [404, 'not_found'])
  const fetched = await call('POST', client.id, 'refresh')
  t.equal(fetched.status, 200, JSON.stringify(fetched.body))
  t.match(fetched.body, { client_id: client.id, client_name: 'Course Agent', host: new URL(client.id).host })
  t.match(fetched.body['sha256'], /^[\w-]{43}$/)
  t.strictSame((await call('GET', client.id)).body, fetched.body, 'it is stored as it is described')
  t.strictSame(await auditOf(client.id), [['client-added', 'operator', machine.id]])

  document.body = { client_id: client.id, client_secret: 'x' }
  const faulty = await call('POST', client.id, 'refresh')
  t.strictSame([faulty.status, faulty.body['error']], [400, 'invalid_client'])
  t.match(faulty.body['error_description'], /client_secret must not be in a client metadata document/)
  t.strictSame((await call('GET', client.id)).body, fetched.body, 'what was stored stays')
  t.equal((await auditOf(client.id)).length, 1, 'nothing was changed')
})

t.test('a repeated request fetches once', async (t) => {
  const { client } = site.publish()
  const key = { 'idempotency-key': 'once' }
  const first = await call('POST', client.id, 'refresh', key)
  const again = await call('POST', client.id, 'refresh', key)
  t.strictSame([again.status, again.body], [200, first.body])
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(site.requests.filter((path) => site.origin + path === client.id).length, 1)
})

t.test('a denied document is not fetched until it is allowed again', async (t) => {
  const { client } = site.publish()
  await call('POST', client.id, 'refresh')
  const denied = await call('POST', client.id, 'deny')
  t.match(denied, { status: 200, body: { client_id: client.id, denied_at: Number, locked_at: Number } })
  t.strictSame((await call('GET', client.id)).body, denied.body)
  const before = site.requests.length
  const rejected = await call('POST', client.id, 'refresh')
  t.match(rejected, { status: 400, body: { error_description: /an operator denied this client/ } })
  t.equal(site.requests.length, before)
  t.equal((await authorize(server, client)).status, 400)
  const allowed = await call('POST', client.id, 'allow')
  t.equal(allowed.status, 200)
  t.notOk('denied_at' in allowed.body || 'locked_at' in allowed.body)
  t.equal((await call('POST', client.id, 'allow')).status, 404, 'it is not denied')
  t.strictSame(
    (await auditOf(client.id)).map(([name]) => name),
    ['client-added', 'client-locked', 'client-unlocked'],
  )
})

t.test('an administrator who leaves while a document is fetched stores nothing', async (t) => {
  const context = { by: 'operator', at: clock() } as const
  const { id: userId = '' } = (await store.find('userByLogin', 'alice')) ?? {}
  const admins = await changeGroups(store, (all) =>
    createGroup(all, { name: 'admins' }, systemRandom(16), context),
  )
  await addToGroup(store, admins, userId, context)
  const scope = 'openid admin:clients:write'
  const console = await integrate(server, { consent: 'skip', scope: scope.split(' ') })
  const { code = '' } = sentAway(
    await ask(server, console, { scope }, await signedIn(server, console, alice)),
  )
  const user = String((await json(await exchange(server, console, code)))['access_token'])
  const { client } = site.publish()
  const leave = () => removeFromGroup(store, admins, userId, context)
  const late = await inBetween(t, store, leave, () => call('POST', client.id, 'refresh', {}, user))
  t.strictSame([late.status, late.body['error']], [403, 'access_denied'])
  t.equal(await store.find('client', client.id), undefined)
  t.strictSame(await auditOf(client.id), [])
})

t.test('the list has what was fetched and what was denied, each once', async (t) => {
  const never = `${site.origin}/never.json`
  t.match(await call('POST', never, 'deny'), { status: 200, body: { client_id: never, denied_at: Number } })
  const [fetched, both] = [site.publish().client.id, site.publish().client.id]
  for (const url of [fetched, both]) await call('POST', url, 'refresh')
  await call('POST', both, 'deny')
  const urls: string[] = []
  for (let after: unknown = ''; after !== undefined; ) {
    const { body } = await call('GET', `?limit=1${after && `&after=${after}`}`)
    const items = body['items'] as { client_id: string }[]
    urls.push(...items.map(({ client_id: id }) => id))
    after = body['next']
  }
  t.strictSame(urls, [...new Set(urls)].toSorted())
  for (const url of [never, fetched, both]) t.ok(urls.includes(url), url)
})

t.test('only a URL can be denied: another client would be locked without a way back', async (t) => {
  const other = await integrate(server)
  for (const id of [other.id, 'https://', `https://${'x'.repeat(2041)}`]) {
    const response = await call('POST', id, 'deny')
    t.strictSame([response.status, response.body['error']], [400, 'invalid_client'], id)
  }
  t.equal((await store.find('client', other.id))?.lockedAt, undefined)
})
