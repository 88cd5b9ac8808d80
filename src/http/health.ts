import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { Store } from '../storage/store.ts'

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
