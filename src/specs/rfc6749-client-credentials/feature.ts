import type { Feature } from '../../feature/feature.ts'

/** RFC 6749 §4.4: a client that an operator added gets tokens for itself, without a user. */
export const clientCredentials: Feature = {
  spec: 'RFC 6749 §4.4',
  grantTypes: { client_credentials: { operatorOnly: true, withoutUser: true, parameters: {} } },
  load: async () => (await import('./plugin.ts')).clientCredentials,
}
