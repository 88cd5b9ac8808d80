import type { FastifyInstance } from 'fastify'
import type { Store } from '../storage/store.ts'
// Brings `app.drain` and `app.load`.
import type {} from './drain.ts'

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
