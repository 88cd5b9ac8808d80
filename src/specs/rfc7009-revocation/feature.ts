import type { Feature } from '../../feature/feature.ts'

/** RFC 7009: clients revoke tokens. */
export const revocation: Feature = {
  spec: 'RFC 7009',
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).revocation,
}
