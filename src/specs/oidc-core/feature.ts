import { Type } from '@sinclair/typebox'
import { readChoice, readHttpsUri } from '../../clients/members.ts'
import { signingAlgorithms } from '../../domain/key-term.ts'
import type { Feature } from '../../feature/feature.ts'

/** OpenID Connect Core: ID Tokens and UserInfo. */
export const openidConnect: Feature = {
  spec: 'OpenID Connect Core',
  clientMetadata: {
    userinfo_signed_response_alg: {
      operatorOnly: true,
      withToken: true,
      schema: Type.String({
        description: `The algorithm that signs UserInfo responses as a JWT: ${signingAlgorithms.join(', ')}; JSON when left out.`,
      }),
      read: (members, name, offered = signingAlgorithms) =>
        readChoice(members[name] === '' ? {} : members, name, offered, 'oidc-core-5.3.2-signed-userinfo'),
    },
    initiate_login_uri: {
      operatorOnly: true,
      withToken: true,
      schema: Type.String({
        description:
          'Where others send users to sign in to it, https, OpenID Connect Core §4; the start page and an expired page lead there.',
      }),
      read: readHttpsUri,
    },
  },
  tokenMembers: { id_token: Type.Optional(Type.String()) },
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).openidConnect,
}
