import { type Static, Type } from '@sinclair/typebox'
import { rejection } from '../../clients/members.ts'
import type { Config } from '../../config/schema.ts'
import { type Feature, section } from '../../feature/feature.ts'
import { hasPasskeys } from '../../feature/service.ts'
import { parseRequirement, requirementForm } from './requirement.ts'
import { policyAccess } from './requirements.ts'

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

/** Where no passkey can be made, a policy that requires one would lock out every user, administrators too. */
function* faults(config: Config): Generator<string> {
  const { require: ofAll, groups } = config.signInPolicy
  const all = [{ where: 'require', text: ofAll }].concat(
    groups.map(({ require: text }, index) => ({ where: `groups.${index}.require`, text })),
  )
  for (const { where, text } of all) {
    const found = parseRequirement(text)
    if (found === undefined) yield `signInPolicy.${where}: must be ${requirementForm}`
    else if (found.kind === 'passkey' && !hasPasskeys(config))
      yield `signInPolicy.${where}: passkey would lock out every user, the last administrator included: passkeys need an issuer with a host name`
  }
}

/** The kind of sign-in that is required: by the server, by groups and by clients. */
export const signInPolicy: Feature = {
  spec: 'Policy of sign-ins',
  settings,
  faults,
  clientMetadata: {
    required_sign_in: {
      operatorOnly: true,
      schema: Type.String({ description: `How its users have to sign in: ${requirementForm}.` }),
      read: (members, name, _algorithms, declared) => {
        const text = members[name] ?? ''
        if (text === '') return undefined
        const requirement = typeof text === 'string' ? parseRequirement(text) : undefined
        if (requirement === undefined) throw rejection(`${name} must be ${requirementForm}`)
        if (requirement.kind === 'passkey' && declared?.withoutPasskeys)
          throw rejection(`${name} must not be passkey: passkeys need an issuer with a host name`)
        return text
      },
    },
  },
  accessRule: policyAccess,
  load: async () => (await import('./plugin.ts')).signInPolicy,
}
