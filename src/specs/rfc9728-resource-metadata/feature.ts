import type { Feature } from '../../feature/feature.ts'

/** RFC 9728: each resource names its authorization server. */
export const resourceMetadata: Feature = {
  spec: 'RFC 9728',
  callers: 'clients',
  atOrigin: true,
  load: async () => (await import('./plugin.ts')).resourceMetadata,
}
