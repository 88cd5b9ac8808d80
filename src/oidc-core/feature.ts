import { Type } from '@sinclair/typebox'
import type { Feature } from '../feature.ts'

/** OpenID Connect Core: ID Tokens and UserInfo. */
export const openidConnect: Feature = {
  spec: 'OpenID Connect Core',
  tokenMembers: { id_token: Type.Optional(Type.String()) },
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).openidConnect,
}
