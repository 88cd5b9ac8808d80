import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Plugin } from '../feature/deps.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { Store } from '../storage/store.ts'
import { endWithin } from '../system/system.ts'
import type { Stop } from './response.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Turns readiness off and closes each connection after its response; resolves when clients had time to leave. */
    drain(isReplaced?: boolean): Promise<void>
    readonly isDraining: () => boolean
    /** Whether it drains and no other worker takes its place. */
    readonly isGoing: () => boolean
    readonly stopState: Stop
    /** Open connections, and the responses sent since draining began. */
    load(): { readonly connections: number; readonly responses: number }
  }
}

/**
 * Lets clients leave first: closing a listener drops idle kept-alive connections at once, even with a request on the
 * wire.
 */
export const drain = fp<{ seconds: number }>(
  async (app, { seconds }) => {
    let [connections, responses] = [0, 0]
    const state: Stop = {}
    app.decorate('stopState', state)
    app.decorate('isDraining', () => state.sent !== undefined)
    app.decorate('load', () => ({ connections, responses }))
    app.server.on('connection', (socket) => {
      connections += 1
      socket.once('close', () => {
        connections -= 1
      })
    })
    let isGoing = false
    app.decorate('isGoing', () => isGoing)
    app.decorate('drain', async (isReplaced = false) => {
      isGoing = !isReplaced
      state.sent = (response) =>
        void response.once('finish', () => {
          responses += 1
        })
      await wait(seconds * 1000)
    })
  },
  { name: 'drain' },
)

/** Together less than the 10 s after which a stop has failed (cli/serve.ts). */
const leaveMilliseconds = 7000
const storeMilliseconds = 2000
const leaving = new WeakMap<object, number>()

/**
 * Lets closing wait for what the server asked of others, such as a mail server: for all of it together at most 7 s.
 * What has not ended by then is left as if the process had been killed.
 */
export function finishAtClose(app: FastifyInstance, underWay: () => Iterable<Promise<unknown>>): void {
  app.addHook('onClose', async () => {
    const latest = leaving.get(app.server) ?? performance.now() + leaveMilliseconds
    leaving.set(app.server, latest)
    await endWithin(latest - performance.now(), Promise.allSettled(underWay()))
  })
}

/** A server that is stopping; `report` returns what is logged about it. */
export interface Stopping {
  readonly finished: Promise<void>
  report(): { readonly requests: number; readonly connectionsCut: number; readonly ms: number }
}

/**
 * Drains the server, closes it and its store, and logs the beginning and the result.
 * @param isReplaced Other workers serve its clients: they find it ready until it is gone.
 */
export function stop(app: FastifyInstance, store: Pick<Store, 'close'>, isReplaced = false): Stopping {
  const startedMs = performance.now()
  const report = (connectionsCut = app.load().connections) => ({
    requests: app.load().responses,
    connectionsCut,
    ms: Math.round(performance.now() - startedMs),
  })
  const finish = async () => {
    app.log.info({ connections: app.load().connections }, 'stopping: draining connections')
    await app.drain(isReplaced)
    const { connections, responses } = app.load()
    // A response that its client does not read would hold up the stop.
    const cut = setTimeout(() => app.server.closeAllConnections(), leaveMilliseconds)
    await app.close()
    clearTimeout(cut)
    await endWithin(storeMilliseconds, store.close())
    // Those with a request in progress were closed by its response.
    app.log.info(report(Math.max(0, connections - (app.load().responses - responses))), 'stopped')
  }
  return { finished: finish(), report }
}

/** Serves `/livez` (the process runs) and `/readyz` (it has keys, its store responds and it is not stopping). */
export const health: Plugin<'store' | 'keys'> = async (app, { store, keys }) => {
  app.get('/livez', { logLevel: 'silent', schema: { hide: true } }, async () => ({ status: 'live' }))
  app.get('/readyz', { logLevel: 'silent', schema: { hide: true } }, async (_request, reply) => {
    const status = await readinessOf(app, store, keys)
    if (status === 'stopping') reply.header('retry-after', '1')
    return reply.code(status === 'ready' ? 200 : 503).send({ status })
  })
}

/**
 * Returns whether the server should get requests.
 * @throws {StoreUnavailable} when the store does not respond.
 */
export async function readinessOf(
  app: FastifyInstance,
  store: Store,
  keys: KeyRing,
): Promise<'ready' | 'stopping' | 'no keys'> {
  if (app.isGoing()) return 'stopping'
  await store.ping()
  return keys.algorithms.length === 0 ? 'no keys' : 'ready'
}
