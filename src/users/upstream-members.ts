import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { clientAlgorithms } from '../domain/key-set.ts'

/** How this server may authenticate at an upstream, OpenID Connect Core §9. */
export const authenticationMethods = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const

const choice = <T extends string>(values: readonly T[], fallback: T, description: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { default: fallback, description },
  )

/** The members of an upstream. A configuration has them under these names, and the admin API in snake case. */
export const upstreamMembers = {
  id: Type.String({
    pattern: '^[a-z0-9][a-z0-9-]{0,31}$',
    description: 'Its name in addresses, such as that of its redirect URI (docs/upstreams.md).',
  }),
  name: Type.String({ minLength: 1, maxLength: 40, description: 'The name on its button.' }),
  issuer: Type.String({ description: 'Its issuer identifier, exactly as its metadata has it.' }),
  clientId: Type.String({ minLength: 1, description: 'The `client_id` of this server there.' }),
  clientAuthentication: choice(
    authenticationMethods,
    'client_secret_basic',
    'How this server authenticates there; private_key_jwt uses its own signing keys (`jwks_uri`).',
  ),
  signingAlgorithm: choice(
    clientAlgorithms,
    'RS256',
    'The algorithm that signs its ID Tokens; no other is accepted.',
  ),
  scope: Type.String({
    default: 'openid profile email',
    description: 'The scope that is requested there.',
  }),
  firstSignIn: choice(
    ['off', 'domain', 'any'],
    'off',
    'Who gets an account by signing in: no one, users of `domains`, or everyone. Existing users link theirs on the account page.',
  ),
  domains: Type.Array(Type.String({ pattern: '^[a-z0-9.-]+$' }), {
    default: [],
    description:
      'Email domains it is an authority for: a verified address of another domain is not believed.',
  }),
  multiFactor: choice(
    ['ignore', 'accept'],
    'ignore',
    'accept: `mfa` in its `amr` counts here, and users with one-time codes are not asked for one.',
  ),
  groupsClaim: Type.String({
    default: 'groups',
    minLength: 1,
    description: 'The claim of its ID Token or UserInfo that has the groups of a user.',
  }),
  groups: Type.Record(Type.String(), Type.String(), {
    default: {},
    description:
      'Groups there, and the group here that each gives at a sign-in. What it no longer gives is taken again.',
  }),
  maxAgeSeconds: Type.Integer({
    default: 86_400,
    minimum: 300,
    description: 'The longest session that a sign-in there begins here.',
  }),
  enabled: Type.Boolean({
    default: true,
    description: 'false: no sign-in, and what came through it ends at the next refresh.',
  }),
} as const

const UpstreamMembers = Type.Object(upstreamMembers)

/** An OpenID Provider that users may sign in with. */
export type Upstream = Static<typeof UpstreamMembers>

/** What members have if no one says otherwise. */
export const upstreamDefaults = Object.fromEntries(
  Object.entries(upstreamMembers).flatMap(([name, { default: value }]) =>
    value === undefined ? [] : [[name, value]],
  ),
) as Omit<Upstream, 'id' | 'name' | 'issuer' | 'clientId'> // the four members without a default

/** Returns the first member whose value cannot be that; undefined: there is none. */
export function malformedMember(upstream: Upstream): string | undefined {
  return Value.Errors(UpstreamMembers, upstream).First()?.path.split('/')[1]
}
