import { type Static, Type } from '@sinclair/typebox'
import { type Feature, flag, section } from '../../feature/feature.ts'

const settings = {
  dpop: Type.Object(
    {
      nonce: Type.Union([Type.Literal('off'), Type.Literal('token'), Type.Literal('always')], {
        default: 'off',
        description:
          'Where a proof needs a nonce of this server: nowhere (off), at the token and the push endpoint (token), or at its APIs, too (always). Without one, each proof is remembered until it is too old.',
      }),
    },
    section('Tokens bound to a key of their client, RFC 9449.'),
  ),
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    dpop: Static<typeof settings.dpop>
  }
}

/** RFC 9449: a client proves with each request that it has the key that its tokens are bound to. */
export const dpop: Feature = {
  spec: 'RFC 9449',
  settings,
  clientMetadata: {
    dpop_bound_access_tokens: flag('Whether all its tokens must be bound to a key, RFC 9449 §5.2.'),
  },
  authorizationParameters: {
    dpop_jkt: Type.Optional(
      Type.String({ description: 'The thumbprint of the key that the code is bound to, RFC 9449 §10.' }),
    ),
  },
  tokenBindings: {
    jkt: { tokenType: 'DPoP', responseHeader: 'DPoP-Nonce' },
  },
  load: async () => (await import('./plugin.ts')).dpop,
}
