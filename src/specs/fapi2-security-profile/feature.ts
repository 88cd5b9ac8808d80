import { type Static, Type } from '@sinclair/typebox'
import { readChoice } from '../../clients/members.ts'
import type { Feature } from '../../feature/feature.ts'
import { clientProfile, signingProfile } from './client-profile.ts'
import { profileMember, profileName, signingProfileName } from './rules.ts'

const settings = {
  profile: Type.Union([Type.Literal('none'), Type.Literal(profileName)], {
    default: 'none',
    description:
      'What every client must conform to: nothing more than OAuth 2.0, or the FAPI 2.0 Security Profile. Without it `lychgate client profile` chooses clients.',
  }),
}

declare module '../../domain/errors.ts' {
  interface FeatureErrors {
    /** RFC 9101 §6.2; RFC 9101 declares it, too. */
    invalid_request_object: 400
  }
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    profile: Static<typeof settings.profile>
  }
}

/**
 * FAPI 2.0 Security Profile (Final): pushed requests, clients with keys and bound tokens, for some clients or for
 * all; and FAPI 2.0 Message Signing (Final) for some: signed requests and responses.
 */
export const securityProfile: Feature = {
  spec: 'FAPI 2.0 Security Profile',
  settings,
  clientMetadata: {
    [profileMember]: {
      operatorOnly: true,
      schema: Type.String({
        description:
          'The profile that it must conform to: fapi2 or fapi2-message-signing; see lychgate client profile.',
      }),
      read: (members, name) =>
        readChoice(
          members[name] === '' ? {} : members,
          name,
          [profileName, signingProfileName],
          'rfc7591-3.2.2-invalid-client-metadata',
        ),
    },
  },
  clientProfiles: { [profileName]: clientProfile, [signingProfileName]: signingProfile },
  load: async () => (await import('./plugin.ts')).securityProfile,
}
