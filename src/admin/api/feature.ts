import type { Feature } from '../../feature/feature.ts'
import { scopes } from '../operations/api-scopes.ts'

declare module '../../domain/errors.ts' {
  interface FeatureErrors {
    idempotency_key_reused: 422
  }
}

/** The admin API, a protected resource of this server: what an operator does with the command line, over HTTP. */
export const adminApi: Feature = {
  spec: 'Admin API',
  scopes,
  exposedHeaders: ['ETag', 'Location', 'Idempotent-Replayed'],
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).adminApi,
}
