import type { Feature } from '../feature.ts'

/** OpenID Connect Core: the key set and UserInfo. */
export const openidConnect: Feature = {
  spec: 'OpenID Connect Core',
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).openidConnect,
}
