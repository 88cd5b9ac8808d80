import { type Static, Type } from '@sinclair/typebox'
import { readChoice } from '../../clients/members.ts'
import { type Feature, flag, section } from '../../feature/feature.ts'
import { readLogoutUri } from './rules.ts'

const settings = {
  backchannelLogout: Type.Object(
    {
      keepSeconds: Type.Integer({
        default: 604_800,
        minimum: 60,
        description: 'How long `lychgate logout deliveries` lists a delivery after its end.',
      }),
    },
    section('Logout tokens for clients, OpenID Connect Back-Channel Logout.'),
  ),
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    backchannelLogout: Static<typeof settings.backchannelLogout>
  }
}

/**
 * OpenID Connect Back-Channel Logout: `sid` in ID Tokens, and a logout token for each client of a session that ends.
 */
export const backchannelLogout: Feature = {
  spec: 'OpenID Connect Back-Channel Logout',
  settings,
  clientMetadata: {
    backchannel_logout_uri: {
      operatorOnly: true,
      withToken: true,
      schema: Type.String({
        description: 'Where it is sent a logout token when a session ends, https, Back-Channel Logout §2.2.',
      }),
      read: readLogoutUri,
    },
    backchannel_logout_session_required: {
      ...flag('Whether logout tokens must have a sid; they always do, Back-Channel Logout §2.2.'),
      operatorOnly: true,
      withToken: true,
    },
    refresh_tokens: {
      operatorOnly: true,
      schema: Type.String({
        description: 'session: its tokens end with the session of the user, or standalone (default).',
      }),
      read: (members, name) =>
        readChoice(
          members[name] === '' ? {} : members,
          name,
          ['session', 'standalone'],
          'rfc7591-3.2.2-invalid-client-metadata',
        ),
    },
  },
  signInClaims: {
    sid: Type.String({ description: 'The session of the sign-in, Back-Channel Logout §2.1.' }),
  },
  load: async () => (await import('./plugin.ts')).backchannelLogout,
}
