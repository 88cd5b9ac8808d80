import type { Feature } from '../feature.ts'
import { authorizationParameters, clientAuthentication, grantTypes } from './schema.ts'

/** RFC 6749 and RFC 7636: the authorization code with PKCE, and refresh tokens. The core: it stays. */
export const authorizationFramework: Feature = {
  spec: 'RFC 6749',
  authorizationParameters,
  grantTypes,
  clientAuthentication,
  load: async () => (await import('./plugin.ts')).authorizationFramework,
}
