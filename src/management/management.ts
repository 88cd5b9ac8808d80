import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { readinessOf } from '../http/drain.ts'
import { type Page, serveManagement } from './listener.ts'
import { measureRequests } from './measure-requests.ts'
import { measuredStore } from './measured-store.ts'
import { createMetrics, type Metrics } from './metrics.ts'

/** What buildApp is given for a measured server. */
export interface Managed {
  readonly deps: Deps
  readonly observe: (app: FastifyInstance) => Promise<void>
}

/**
 * Measures a server, and serves its figures and its health on the management listener, which opens and closes with it.
 * A server without one measures nothing and has no hook for it.
 * @param port Where the listener is.
 */
export function underManagement(deps: Deps, port: number): Managed {
  const metrics = createMetrics()
  return {
    deps: { ...deps, store: measuredStore(deps.store, metrics) },
    observe: async (app) => {
      let listener: Awaited<ReturnType<typeof serveManagement>> | undefined
      measureRequests(app, metrics)
      app.addHook('onReady', async () => {
        const { host, hosts } = deps.config.management
        const place = { host, port, hosts }
        listener = await serveManagement(place, pagesOf(app, deps, metrics))
      })
      app.addHook('onClose', async () => {
        await listener?.close()
        metrics.close()
      })
    },
  }
}

function pagesOf(app: FastifyInstance, { store, keys, clock }: Deps, metrics: Metrics) {
  const told = async () => ({
    activity: await store.activity(),
    keys: await store.list('key'),
    now: clock(),
  })
  return {
    '/metrics': async (): Promise<Page> => {
      // A scrape matters most when the store is down.
      const body = await metrics.scrape(await told().catch(() => undefined))
      return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body }
    },
    '/livez': async (): Promise<Page> => json(200, 'live'),
    '/readyz': async (): Promise<Page> => {
      const status = await readinessOf(app, store, keys).catch(() => 'no store')
      return json(status === 'ready' ? 200 : 503, status)
    },
  }
}

function json(status: number, text: string): Page {
  return { status, type: 'application/json; charset=utf-8', body: JSON.stringify({ status: text }) }
}
