import { Type } from '@sinclair/typebox'
import { readKeys } from '../../clients/keys.ts'
import { readHttpsOrLoopbackUri } from '../../clients/members.ts'
import { readKeyFile } from '../../domain/key-set.ts'
import type { Feature } from '../../feature/feature.ts'
import { authorizationParameters, clientAuthentication, grantTypes, tokenParameters } from './schema.ts'

/** RFC 6749 and RFC 7636: the authorization code with PKCE, and refresh tokens. The core: it stays. */
export const authorizationFramework: Feature = {
  spec: 'RFC 6749',
  // The keys of clients, for every specification by which they sign something.
  clientMetadata: {
    jwks: {
      operatorOnly: true,
      withToken: true,
      schema: Type.Object(
        {},
        { additionalProperties: true, description: 'Its public keys: a JWK set, a JWK or PEM, RFC 7591 §2.' },
      ),
      readFile: readKeyFile,
      read: readKeys,
    },
    jwks_uri: {
      operatorOnly: true,
      withToken: true,
      schema: Type.String({ description: 'Where its public keys are, https, RFC 7591 §2.' }),
      read: readHttpsOrLoopbackUri,
    },
  },
  authorizationParameters,
  grantTypes,
  tokenParameters,
  clientAuthentication,
  load: async () => (await import('./plugin.ts')).authorizationFramework,
}
