import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { Store } from '../storage/store.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Readiness turns false and every answer tells its connection to close; resolves when clients had time to leave. */
    drain(): Promise<void>
    readonly isDraining: () => boolean
    /** Open connections, and the requests answered since draining began. */
    load(): { readonly connections: number; readonly answered: number }
  }
}

/** A quiet end: closing a listener drops idle kept-alive connections at once, and with them a request on the wire. */
export const drain = fp<{ seconds: number }>(
  async (app, { seconds }) => {
    let draining = false
    let [connections, answered] = [0, 0]
    app.decorate('isDraining', () => draining)
    app.decorate('load', () => ({ connections, answered }))
    app.server.on('connection', (socket) => {
      connections += 1
      socket.once('close', () => {
        connections -= 1
      })
    })
    app.addHook('onResponse', (_request, _reply, done) => {
      if (draining) answered += 1
      done()
    })
    app.decorate('drain', async () => {
      draining = true
      await wait(seconds * 1000)
    })
    app.addHook('onSend', (_request, reply, _payload, done) => {
      if (draining) reply.header('connection', 'close')
      done()
    })
  },
  { name: 'drain' },
)

/** A server that stops; `report` is what its log says of it so far. */
export interface Stopping {
  readonly finished: Promise<void>
  report(): { readonly requests: number; readonly connectionsCut: number; readonly ms: number }
}

/** Drains the server, closes it and its store, and logs when that begins and what it came to. */
export function stop(app: FastifyInstance, store: Pick<Store, 'close'>): Stopping {
  const startedMs = performance.now()
  const report = (connectionsCut = app.load().connections) => ({
    requests: app.load().answered,
    connectionsCut,
    ms: Math.round(performance.now() - startedMs),
  })
  const finish = async () => {
    app.log.info({ connections: app.load().connections }, 'stopping: draining connections')
    await app.drain()
    const { connections, answered } = app.load()
    await app.close()
    await store.close()
    // Those with a request under way were closed by its response.
    app.log.info(report(Math.max(0, connections - (app.load().answered - answered))), 'stopped')
  }
  return { finished: finish(), report }
}

/** Whether the process lives, and whether it should get requests: its store answers and it is not about to stop. */
export const health: FastifyPluginAsync<Pick<AppDeps, 'store' | 'keys'>> = async (app, { store, keys }) => {
  app.get('/livez', { logLevel: 'silent', schema: { hide: true } }, async () => ({ status: 'live' }))
  app.get('/readyz', { logLevel: 'silent', schema: { hide: true } }, async (_request, reply) => {
    const status = await readinessOf(app, store, keys)
    if (status === 'stopping') reply.header('retry-after', '1')
    return reply.code(status === 'ready' ? 200 : 503).send({ status })
  })
}

/**
 * What is to be said about readiness.
 * @throws {StoreUnavailable} when the store does not answer.
 */
export async function readinessOf(
  app: FastifyInstance,
  store: Store,
  keys: KeyRing,
): Promise<'ready' | 'stopping' | 'no keys'> {
  if (app.isDraining()) return 'stopping'
  await store.ping()
  return keys.algorithms.length === 0 ? 'no keys' : 'ready'
}
