import { type Static, Type } from '@sinclair/typebox'
import { isTextList } from '../../clients/members.ts'
import { groupsScope } from '../../domain/scope-catalogue.ts'
import { parseJson } from '../../domain/strict-json.ts'
import { type Feature, section } from '../../feature/feature.ts'
import { groupAccess, readAllowedGroups } from './rules.ts'
import { readTokenClaims } from './token-claims.ts'

const settings = {
  groups: Type.Object(
    {
      mostInClaim: Type.Integer({
        default: 200,
        minimum: 1,
        maximum: 10_000,
        description: 'How many names the claim groups has at most; it says so when there are more.',
      }),
      contact: Type.String({
        default: '',
        maxLength: 200,
        description:
          'The contact for users who may not use a client, such as an email address. Empty: the first contact of the client.',
      }),
    },
    section('Groups of users, and what clients see of them.'),
  ),
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    groups: Static<typeof settings.groups>
  }
}

/** Groups of users: who may use a client, and the scope and the claim `groups`. */
export const groups: Feature = {
  spec: 'Groups',
  settings,
  clientMetadata: {
    allowed_groups: {
      operatorOnly: true,
      schema: Type.Union([Type.String(), Type.Array(Type.String())], {
        description:
          'The ids of the groups whose members may use it, separated by spaces; lychgate client access takes names.',
      }),
      read: readAllowedGroups,
      factsOf: (_, after) => ({ allowed: isTextList(after) ? after.join(' ') : 'everyone' }),
    },
    token_claims: {
      operatorOnly: true,
      schema: Type.Array(Type.Any(), {
        description:
          'A JSON file with claims of its tokens; lychgate client claims describes it, and takes names.',
      }),
      readFile: (content: string) => parseJson(content),
      read: readTokenClaims,
    },
  },
  scopes: { groups: groupsScope },
  accessRule: () => groupAccess,
  load: async () => (await import('./plugin.ts')).groups,
}
