import { type Static, Type } from '@sinclair/typebox'
import { type Feature, section } from '../feature.ts'

const settings = {
  groups: Type.Object(
    {
      mostInClaim: Type.Integer({
        default: 200,
        minimum: 1,
        maximum: 10_000,
        description: 'How many names the claim groups has at most; it says so when there are more.',
      }),
    },
    section('Groups of users, and what clients see of them.'),
  ),
}

declare module '../config/schema.ts' {
  interface FeatureSettings {
    groups: Static<typeof settings.groups>
  }
}

/** Groups of users: the scope and the claim `groups`. */
export const groups: Feature = {
  spec: 'Groups',
  settings,
  scopes: {
    groups: {
      group: 'Your groups',
      access: 'identity',
      description: 'See which groups you belong to',
      claims: ['groups'],
    },
  },
  load: async () => (await import('./plugin.ts')).groups,
}
