import type { Feature } from '../../feature/feature.ts'

/** OpenID Connect RP-Initiated Logout: a client sends its user here to sign out. */
export const logout: Feature = {
  spec: 'OpenID Connect RP-Initiated Logout',
  callers: 'browsers',
  load: async () => (await import('./plugin.ts')).logout,
}
