import { setTimeout as wait } from 'node:timers/promises'
import Fastify from 'fastify'
import t from 'tap'
import { sweeper } from '../../src/app/maintenance.ts'
import type { Peers } from '../../src/system/peers.ts'
import { authorize, exchange, obtainCode, obtainTokens, postAs, refresh, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'

const month = 2_592_000

t.test(
  '[rfc7591-5-expire-unused] a registration that was never used is deleted after its time, a used one is kept',
  async (t) => {
    const server = await startServer(t)
    const [unused, used] = [await register(server), await register(server)]
    const { refresh_token: token } = await obtainTokens(server, used)
    server.advance(month - 60)
    await server.maintain()
    t.equal((await authorize(server, unused)).status, 303, 'still there')
    const { refresh_token: kept } = (await (await refresh(server, used, token)).json()) as {
      refresh_token: string
    }
    server.advance(120)
    await server.maintain()
    t.equal((await authorize(server, unused)).status, 400, 'unknown')
    t.equal((await authorize(server, used)).status, 303)
    t.equal((await refresh(server, used, kept)).status, 200, 'and its grant lives')
  },
)

t.test(
  '[rfc7591-5-expire-unused] a registration that was only named or authenticated, or got no tokens, counts as unused',
  async (t) => {
    const server = await startServer(t)
    const clients = [
      await register(server),
      await register(server, { token_endpoint_auth_method: 'client_secret_basic' }),
    ]
    for (const client of clients) {
      const code = await obtainCode(server, client)
      t.equal((await exchange(server, client, code, { code_verifier: 'w'.repeat(43) })).status, 400)
      t.equal((await refresh(server, client, 'lyc_refresh_unknown')).status, 400)
      for (const path of ['/api/oauth/revoke', '/api/oauth/introspect'])
        t.equal((await postAs(server, client, path, { token: 'unknown' })).status, 200, path)
    }
    server.advance(month + 60)
    await server.maintain()
    for (const client of clients) t.equal((await authorize(server, client)).status, 400, 'unknown')
  },
)

t.test(
  'a registered client that got no token for long is deleted, but not while its last token can be refreshed',
  async (t) => {
    const [day, idle] = [86_400, 2 * 86_400]
    const lifetimes = { idleClientSeconds: day, refreshTokenIdleSeconds: idle }
    const server = await startServer(t, { lifetimes })
    const [client, sweptWith] = [await register(server), await register(server)]
    await obtainTokens(server, sweptWith)
    const { refresh_token: first } = await obtainTokens(server, client)
    server.advance(day - 60)
    const { refresh_token: last } = (await (await refresh(server, client, first)).json()) as {
      refresh_token: string
    }
    server.advance(idle - 60)
    await server.maintain()
    t.equal((await refresh(server, client, last)).status, 200, 'still there, and used now')
    server.advance(240)
    await server.maintain()
    t.equal((await authorize(server, sweptWith)).status, 400, 'the other one was not used again')
    t.equal((await authorize(server, client)).status, 303)
  },
)

t.test(
  'what one network registers between two sweeps is small against what unused clients may take',
  async (t) => {
    const server = await startServer(t, { rateLimits: 'on' })
    const { limits, requestsPerMinute, sweepSeconds } = server.deps.config
    const post = (uris: number) =>
      fetch(`${server.issuer}/api/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          redirect_uris: Array.from({ length: uris }, (_, n) => `http://127.0.0.1/${n}`.padEnd(180, 'x')),
        }),
      })
    const statuses: number[] = []
    while (statuses.at(-1) !== 429) statuses.push((await post(40)).status)
    t.strictSame(new Set(statuses), new Set([201, 429]))
    t.equal(statuses.length, requestsPerMinute.registration + 1)
    const stored = await server.deps.store.list('client')
    const bytes = stored.reduce((sum, client) => sum + JSON.stringify(client).length, 0)
    t.ok(bytes > requestsPerMinute.registration * 7000, 'clients of nearly the largest size')
    const most = (requestsPerMinute.registration * limits.clientMetadataBytes * sweepSeconds) / 60
    t.ok(bytes < most + 200 * stored.length)
    t.ok(
      most < limits.unusedClientBytes / 500,
      'no more than a fraction above the limit until the next sweep',
    )
  },
)

t.test('a sweep that fails is logged and retried', async (t) => {
  const server = await startServer(t, { sweepSeconds: 1 })
  await server.deps.store.close()
  await until(() => Promise.resolve(server.log.filter((line) => line.includes('sweeping failed')).length > 1))
  t.match(server.log.filter((line) => line.includes('sweeping failed'))[0], '"level":40')
})

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 300 && !(await isSo()); attempt += 1) await wait(100)
}

t.test('of several workers only the one that leads sweeps', async (t) => {
  const server = await startServer(t)
  const unused = await register(server)
  server.advance(month + 60)
  let isLeading = false
  const repeated = new Set<() => Promise<void>>()
  const app = Fastify().decorate('repeated', repeated)
  t.teardown(() => app.close())
  // `as`: nothing else is asked of them.
  await app.register(sweeper, { ...server.deps, peers: { isLeading: () => isLeading } as Peers })
  await app.ready()
  for (const work of repeated) await work()
  t.equal((await authorize(server, unused)).status, 303, 'another one leads')
  isLeading = true
  for (const work of repeated) await work()
  t.equal((await authorize(server, unused)).status, 400, 'deleted')
})
