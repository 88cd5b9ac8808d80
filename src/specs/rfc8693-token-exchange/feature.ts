import { Type } from '@sinclair/typebox'
import { readText } from '../../clients/members.ts'
import type { Feature } from '../../feature/feature.ts'
import {
  accessTokenType,
  actorClaim,
  mayActClaim,
  parameters,
  tokenExchange,
  tokenParameters,
} from './schema.ts'

/** RFC 8693: a client that an operator allows it exchanges an access token that it received for one of its own. */
export const exchangeOfTokens: Feature = {
  spec: 'RFC 8693',
  grantTypes: {
    [tokenExchange]: { title: 'token exchange', operatorOnly: true, fromToken: true, parameters },
  },
  tokenParameters,
  clientMetadata: {
    exchanged_by: {
      operatorOnly: true,
      schema: Type.String({
        description: 'The one client that may exchange its access tokens, as may_act says, RFC 8693 §4.4.',
      }),
      read: readText,
    },
  },
  tokenMembers: {
    issued_token_type: Type.Optional(Type.Literal(accessTokenType, { description: 'RFC 8693 §2.2.1.' })),
  },
  tokenClaims: {
    act: { schema: actorClaim, of: ({ extra }) => extra?.['act'] },
    may_act: {
      schema: mayActClaim,
      of: (_, { extra }) => extra?.['exchanged_by'] && { sub: extra['exchanged_by'] },
    },
  },
  load: async () => (await import('./plugin.ts')).exchangeOfTokens,
}
