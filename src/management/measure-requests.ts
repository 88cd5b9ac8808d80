import type { FastifyInstance } from 'fastify'
// Brings `request.rejection`.
import type {} from '../http/errors.ts'
import type { Metrics } from './metrics.ts'

/** Counts every response by its endpoint: the pattern of the route, never the path, which anyone can choose. */
export function measureRequests(
  app: FastifyInstance,
  { requests, requestSeconds, throttledSignIns }: Metrics,
): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { url: route = 'none' } = request.routeOptions
    const { method, rejection } = request
    const outcome = `${Math.floor(reply.statusCode / 100)}xx`
    requests.inc({ method, route, outcome, error: rejection?.code ?? '' })
    requestSeconds.observe({ method, route }, reply.elapsedTime / 1000)
    if (rejection?.detail.rule === 'lychgate-sign-in-throttle') throttledSignIns.inc()
    done()
  })
}
