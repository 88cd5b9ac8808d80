import type { FastifyInstance } from 'fastify'
import type { Deps } from '../feature/deps.ts'
// Bring `app.handleManaged` and `request.rejection`.
import type {} from '../http/admin-listener.ts'
import { routeEveryRequest } from '../http/documents-first.ts'
import { readinessOf } from '../http/drain.ts'
import type {} from '../http/errors.ts'
import { createListener, listen, sendText } from './listener.ts'
import { measuredStore } from './measured-store.ts'
import { createMetrics, type Metrics, type Samples } from './metrics.ts'

/** What buildApp is given for a measured server. */
export interface Managed {
  readonly deps: Deps
  readonly observe: (app: FastifyInstance) => Promise<void>
}

/**
 * Measures a server, and serves its metrics and its health on the management listener, which opens and closes with it.
 * A server without one measures nothing and has no hook for it.
 * @param port The port of the listener.
 */
export function underManagement(deps: Deps, port: number): Managed {
  const metrics = createMetrics()
  return {
    deps: { ...deps, store: measuredStore(deps.store, metrics) },
    observe: async (app) => {
      const { management } = deps.config
      const listener = createListener(management, (...exchange) => app.handleManaged?.(...exchange) ?? false)
      addPages(listener, app, deps, metrics)
      measureRequests(app, metrics)
      app.addHook('onReady', () => listen(listener, management.host, port))
      app.addHook('onClose', async () => {
        await listener.close()
        deps.peers?.leave('metrics-left', await metrics.lasting())
        metrics.close()
      })
    },
  }
}

function addPages(listener: FastifyInstance, app: FastifyInstance, deps: Deps, metrics: Metrics): void {
  const { store, keys, clock, peers } = deps
  // A scrape matters most when the store is down.
  const readStatus = async () => ({
    activity: await store.activity(),
    keys: await store.list('key'),
    now: clock(),
  })
  const read = () => readStatus().catch(() => undefined)
  // A crash loses only what was counted since.
  const leave = async () => peers?.leave('metrics-left', await metrics.lasting())
  peers?.on('metrics', async () => {
    await leave()
    return metrics.samples(await read())
  })
  // `as`: what `lasting` and `samples` of another worker returned.
  peers?.on('metrics-left', (samples) => metrics.inherit(samples as Samples))
  listener.get('/metrics', async (_request, reply) => {
    reply.type('text/plain; version=0.0.4; charset=utf-8')
    // The question follows on the same way, so that the response says what is left already.
    await leave()
    const others = (await peers?.ask('metrics')) as readonly Samples[] | undefined
    return metrics.scrape(await read(), others)
  })
  listener.get('/livez', async () => ({ status: 'live' }))
  listener.get('/readyz', async (_request, reply) => {
    const status = await readinessOf(app, store, keys).catch(() => 'no store')
    return reply.code(status === 'ready' ? 200 : 503).send({ status })
  })
  listener.setNotFoundHandler((_request, reply) => sendText(reply, 404, 'there is /metrics, /livez, /readyz'))
}

/** Counts every response by its endpoint: the pattern of the route, never the path, which anyone can choose. */
function measureRequests(
  app: FastifyInstance,
  { requests, requestSeconds, throttledSignIns }: Metrics,
): void {
  routeEveryRequest(app)
  app.addHook('onResponse', function measureRequest(request, reply, done) {
    const { url: route = 'none' } = request.routeOptions
    const { method, rejection } = request
    const outcome = `${Math.floor(reply.statusCode / 100)}xx`
    requests.inc({ method, route, outcome, error: rejection?.code ?? '' })
    requestSeconds.observe({ method, route }, reply.elapsedTime / 1000)
    if (rejection?.detail.rule === 'lychgate-sign-in-throttle') throttledSignIns.inc()
    done()
  })
}
