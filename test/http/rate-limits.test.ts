import t from 'tap'
import { authorizationUrl, authorize, post, redirectUri, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'

t.test('authorization requests that no user completes cannot fill the store', async (t) => {
  const server = await startServer(t, { rateLimits: 'on', requestsPerMinute: { authorization: 3 } })
  const client = await register(server)
  const url = authorizationUrl(server, client)
  const body = new URL(url).searchParams
  const ways: RequestInit[] = [{}, { method: 'HEAD' }, { method: 'POST', body }]
  for (const way of ways) {
    const send = () => fetch(url, { ...way, redirect: 'manual' })
    for (let count = 0; count < 3; count += 1) t.equal((await send()).status, 303, way.method ?? 'GET')
    const slowed = await send()
    const wait = Number(slowed.headers.get('retry-after'))
    t.equal(slowed.status, 429, way.method ?? 'GET')
    t.ok(wait > 0 && wait <= 60, `Retry-After ${wait}`)
    t.match(slowed.headers.get('content-type'), 'text/html')
    t.equal(slowed.headers.get('location'), null)
    t.same(slowed.headers.getSetCookie(), [])
  }
  t.equal((await post(server, '/api/oauth/token', { client_id: client.id })).status, 400, 'others go on')
})

for (const path of ['/account/apps', '/admin/users/invite'])
  t.test(`nor can sign-ins that ${path} asks for`, async (t) => {
    const server = await startServer(t, {
      rateLimits: 'on',
      requestsPerMinute: { authorization: 2, signIn: 1 },
    })
    const url = server.issuer + path
    for (const [method, allowed] of [
      ['GET', 2],
      ['HEAD', 2],
      ['POST', 1],
    ] as const) {
      const send = () =>
        fetch(url, { method, redirect: 'manual', ...(method === 'POST' && { body: new URLSearchParams() }) })
      for (let count = 0; count < allowed; count += 1) t.equal((await send()).status, 303, method)
      t.equal((await send()).status, 429, method)
    }
  })

t.test('registrations are counted by network, and another network can continue', async (t) => {
  const server = await startServer(t, {
    rateLimits: 'on',
    requestsPerMinute: { registration: 2 },
    trustProxy: ['127.0.0.1', '::1'],
  })
  const from = (address: string) =>
    fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
      body: JSON.stringify({ redirect_uris: [redirectUri] }),
    })
  for (const address of ['203.0.113.1', '203.0.113.2']) t.equal((await from(address)).status, 201)
  const slowed = await from('203.0.113.3')
  t.equal(slowed.status, 429)
  t.match(await slowed.json(), { error: 'temporarily_unavailable' })
  const wait = Number(slowed.headers.get('retry-after'))
  t.ok(wait > 0 && wait <= 60, `Retry-After ${wait}`)
  t.equal((await server.deps.store.list('client')).length, 2, 'nothing was registered')
  t.equal((await from('203.0.112.3')).status, 201, 'another /24')
  for (const address of ['2001:db8::1', '2001:db8::ffff:2']) t.equal((await from(address)).status, 201)
  t.equal((await from('2001:db8:0:0:9::3')).status, 429, 'the same /64')
  t.equal((await from('2001:db8:0:1::3')).status, 201, 'another /64')
})

t.test(
  '[rfc9700-4.13-proxy-headers] without trustProxy a forwarded address is ignored and makes no new count',
  async (t) => {
    const server = await startServer(t, { rateLimits: 'on', requestsPerMinute: { registration: 2 } })
    const claiming = (name: string, address: string) =>
      fetch(`${server.issuer}/api/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', [name]: address },
        body: JSON.stringify({ redirect_uris: [redirectUri] }),
      })
    for (const address of ['203.0.113.1', '198.51.100.1'])
      t.equal((await claiming('x-forwarded-for', address)).status, 201)
    t.equal((await claiming('x-forwarded-for', '192.0.2.1')).status, 429)
    t.equal((await claiming('forwarded', 'for=192.0.2.2')).status, 429)
    t.equal((await claiming('x-real-ip', '192.0.2.3')).status, 429)
    const stored = await server.deps.store.list('client')
    t.equal(stored.length, 2)
    for (const { registeredFrom } of stored) t.notMatch(registeredFrom, /^(203|198)\./)
  },
)

t.test('without limits, on a single-user machine, nothing is slowed down', async (t) => {
  const server = await startServer(t, { rateLimits: 'off', requestsPerMinute: { authorization: 1 } })
  const client = await register(server)
  for (let count = 0; count < 3; count += 1) t.equal((await authorize(server, client)).status, 303)
})
