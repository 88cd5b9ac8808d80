import { type Static, Type } from '@sinclair/typebox'
import { ConfigError } from '../../config/error.ts'
import { clientAlgorithms } from '../../domain/key-set.ts'
import { authenticationMethods } from './rules/requests.ts'

const choice = <T extends string>(values: readonly T[], fallback: T, description: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { default: fallback, description },
  )

const Upstream = Type.Object(
  {
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
    clientSecretFile: Type.Optional(
      Type.String({ description: 'The file with the client secret, read at the start and shown nowhere.' }),
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
  },
  { additionalProperties: false },
)

/** The option that names the upstreams. */
export const settings = {
  upstreams: Type.Array(Upstream, {
    default: [],
    description: 'OpenID Providers that users may sign in with.',
    examples: [
      [
        {
          id: 'work',
          name: 'Work',
          issuer: 'https://login.example.com',
          clientId: 'lychgate',
          clientAuthentication: 'client_secret_basic',
          clientSecretFile: '/run/secrets/upstream-work',
          signingAlgorithm: 'RS256',
          scope: 'openid profile email',
          firstSignIn: 'domain',
          domains: ['example.com'],
          multiFactor: 'ignore',
          groupsClaim: 'groups',
          groups: { teachers: 'Staff' },
          maxAgeSeconds: 28_800,
          enabled: true,
        },
      ],
    ],
  }),
}

/** An OpenID Provider that users may sign in with. */
export type Upstream = Static<typeof Upstream>

/** Returns where the metadata of an issuer is, OpenID Connect Discovery §4.1: without a slash at the end. */
export function metadataUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

/** @throws {ConfigError} for upstreams that cannot work together, or lack a secret. */
export function assertUsable(upstreams: readonly Upstream[]): void {
  const faults = upstreams.flatMap(
    ({ id, clientAuthentication, clientSecretFile, issuer, firstSignIn, domains }, at) => {
      const where = `upstreams (${id})`
      const others = upstreams.slice(0, at)
      const isSecret = clientAuthentication !== 'private_key_jwt'
      return [
        ...(others.some((one) => one.id === id) ? [`${where}: another upstream has this id`] : []),
        ...(others.some((one) => one.issuer === issuer)
          ? [`${where}: another upstream has this issuer`]
          : []),
        ...(isSecret && clientSecretFile === undefined ? [`${where}: clientSecretFile is missing`] : []),
        ...(firstSignIn === 'domain' && domains.length === 0
          ? [`${where}: firstSignIn is domain, and there are no domains`]
          : []),
      ]
    },
  )
  if (faults.length > 0) throw new ConfigError(faults)
}
