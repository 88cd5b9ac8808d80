import { type Static, Type } from '@sinclair/typebox'
import { rejection } from '../../clients/members.ts'
import { type Feature, section } from '../../feature/feature.ts'
import { parseRequirement, requirementForm } from './requirement.ts'

const settings = {
  signInPolicy: Type.Object(
    {
      require: Type.String({
        default: 'password',
        description: `How every user has to sign in: ${requirementForm}. The pages of the account stay open, so that users can set up a factor.`,
      }),
      groups: Type.Array(
        Type.Object(
          {
            group: Type.String({ minLength: 1, description: 'The name of a group.' }),
            require: Type.String({ description: 'How its members, and those of groups below it, sign in.' }),
          },
          { additionalProperties: false },
        ),
        {
          default: [],
          description: 'What is required of the members of groups; the strictest requirement counts.',
          examples: [[{ group: 'admins', require: 'passkey' }]],
        },
      ),
    },
    section('The kind of sign-in that is required, in addition to what clients require.'),
  ),
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    signInPolicy: Static<typeof settings.signInPolicy>
  }
}

/** The kind of sign-in that is required: by the server, by groups and by clients. */
export const signInPolicy: Feature = {
  spec: 'Policy of sign-ins',
  settings,
  clientMetadata: {
    required_sign_in: {
      operatorOnly: true,
      schema: Type.String({ description: `How its users have to sign in: ${requirementForm}.` }),
      read: (members, name) => {
        const text = members[name] ?? ''
        if (text === '') return undefined
        if (typeof text === 'string' && parseRequirement(text) !== undefined) return text
        throw rejection(`${name} must be ${requirementForm}`)
      },
    },
  },
  load: async () => (await import('./plugin.ts')).signInPolicy,
}
