/** Rate limits of a server with several workers: they count together. */
import { EventEmitter, once } from 'node:events'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { errorMapper } from '../../src/http/errors.ts'
import { rateLimits } from '../../src/http/rate-limits.ts'
import type { Peers } from '../../src/system/peers.ts'

/** Two workers that count together, and an event for each time one sends its counts to the other. */
async function startTwo(t: Test, most: number) {
  const told = new EventEmitter()
  const receivers: Parameters<Peers['on']>[1][] = []
  const peersOf = (own: number): Peers => ({
    count: 2,
    isFirst: own === 0,
    isLeading: () => own === 0,
    tell: (_topic, body) => {
      // As between processes.
      receivers[1 - own]?.(JSON.parse(JSON.stringify(body)))
      told.emit('told')
    },
    ask: async () => [],
    on: (topic, receive) => {
      if (topic === 'rates') receivers[own] = receive
    },
    leave: () => {},
  })
  const config = { rateLimits: 'on', requestsPerMinute: { registration: most, signIn: most } } as const
  const workers = await Promise.all(
    [0, 1].map(async (own) => {
      const app = Fastify()
      t.teardown(() => app.close())
      await app.register(errorMapper)
      // `as`: the other limits are not used.
      await app.register(rateLimits, { config, prefix: '', peers: peersOf(own) } as never)
      app.post('/register', { config: { limit: 'registration' } }, async () => 'done')
      app.post('/login', { config: { limit: 'signIn' } }, async () => 'done')
      return app
    }),
  )
  const post = async (worker: number, path = '/register', remoteAddress = '203.0.113.1') => {
    const response = await workers[worker]?.inject({ method: 'POST', url: path, remoteAddress })
    return { status: response?.statusCode, wait: Number(response?.headers['retry-after']) }
  }
  // The timer that tells keeps no process running.
  const running = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(running))
  return { post, shared: () => once(told, 'told') }
}

t.test('workers count the requests of a network together', async (t) => {
  const { post, shared } = await startTwo(t, 4)
  const next = shared()
  for (const worker of [0, 0, 0]) t.equal((await post(worker)).status, 200)
  await next
  t.equal((await post(1)).status, 200, 'the fourth')
  const { status, wait } = await post(1)
  t.equal(status, 429)
  t.ok(wait > 0 && wait <= 60, `Retry-After ${wait}`)
  await shared()
  t.equal((await post(0)).status, 429, 'and by the other')
  t.equal((await post(0, '/login')).status, 200, 'another limit')
  t.equal((await post(0, '/register', '198.51.100.1')).status, 200, 'another network')
})
