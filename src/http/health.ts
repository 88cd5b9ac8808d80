import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'

/** Whether the process lives, and whether it should get requests: its store answers and it is not about to stop. */
export const health: FastifyPluginAsync<Pick<AppDeps, 'store' | 'keys'>> = async (app, { store, keys }) => {
  app.get('/livez', { logLevel: 'silent', schema: { hide: true } }, async () => ({ status: 'live' }))
  app.get('/readyz', { logLevel: 'silent', schema: { hide: true } }, async (_request, reply) => {
    if (app.isDraining()) return reply.code(503).header('retry-after', '1').send({ status: 'stopping' })
    await store.ping()
    if (keys.algorithms.length === 0) return reply.code(503).send({ status: 'no keys' })
    return { status: 'ready' }
  })
}
