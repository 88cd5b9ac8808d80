import type { Feature } from '../feature.ts'

/** RFC 7662: resource servers ask what a token is worth. */
export const introspection: Feature = {
  spec: 'RFC 7662',
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).introspection,
}
