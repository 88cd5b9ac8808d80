import t from 'tap'
import { authorizationUrl, authorize, post, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'

t.test('nobody can fill the store with authorization requests that no person answers', async (t) => {
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

t.test('without limits, on a computer of one person, nothing is slowed down', async (t) => {
  const server = await startServer(t, { rateLimits: 'off', requestsPerMinute: { authorization: 1 } })
  const client = await register(server)
  for (let count = 0; count < 3; count += 1) t.equal((await authorize(server, client)).status, 303)
})
