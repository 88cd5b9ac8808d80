import type { Feature } from '../../feature/feature.ts'

/** RFC 7662: resource servers and clients look up the state of a token. */
export const introspection: Feature = {
  spec: 'RFC 7662',
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).introspection,
}
