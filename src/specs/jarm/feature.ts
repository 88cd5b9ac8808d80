import { Type } from '@sinclair/typebox'
import { readChoice } from '../../clients/members.ts'
import { signingAlgorithms } from '../../domain/key-term.ts'
import type { Feature } from '../../feature/feature.ts'
import { algorithmMember, modesMember, readModes, responseModes } from './rules.ts'

/** JARM (JWT Secured Authorization Response Mode for OAuth 2.0): a client may ask for a signed response. */
export const signedResponses: Feature = {
  spec: 'JARM',
  clientMetadata: {
    [algorithmMember]: {
      operatorOnly: true,
      withToken: true,
      schema: Type.String({
        description: `The algorithm that signs the authorization responses that it asks for as a JWT: ${signingAlgorithms.join(', ')}; RS256 when left out.`,
      }),
      read: (members, name, offered = signingAlgorithms) =>
        readChoice(members[name] === '' ? {} : members, name, offered, 'jarm-3-signed-response-alg'),
    },
    [modesMember]: {
      operatorOnly: true,
      withToken: true,
      schema: Type.Array(Type.String(), {
        description:
          'The response modes that it may ask for, FAPI 2.0 Message Signing §5.4; each when left out.',
      }),
      read: readModes,
    },
  },
  responseModes,
  load: async () => (await import('./plugin.ts')).jarm,
}
