import { Type } from '@sinclair/typebox'
import { ConfigError } from '../../config/error.ts'
import { upstreamFaults } from '../../users/rules/upstream.ts'
import { upstreamMembers } from '../../users/upstream-members.ts'
import type { ConfiguredUpstream } from '../../users/upstreams.ts'

const { id, name, issuer, clientId, clientAuthentication, ...more } = upstreamMembers
const UpstreamOption = Type.Object(
  {
    ...{ id, name, issuer, clientId, clientAuthentication },
    clientSecretFile: Type.Optional(
      Type.String({ description: 'The file with the client secret, read at the start and shown nowhere.' }),
    ),
    ...more,
  },
  { additionalProperties: false },
)

/** The option that names the upstreams. */
export const settings = {
  upstreams: Type.Array(UpstreamOption, {
    default: [],
    description: 'OpenID Providers that users may sign in with. Those of the store are added to them.',
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

/** Returns where the metadata of an issuer is, OpenID Connect Discovery §4.1: without a slash at the end. */
export function metadataUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

/** @throws {ConfigError} for upstreams that cannot work together, or lack a secret. */
export function assertConfigured(upstreams: readonly ConfiguredUpstream[]): void {
  const faults = upstreams.flatMap((upstream, at) => {
    const others = upstreams.slice(0, at)
    const repeated = (['id', 'issuer'] as const)
      .filter((member) => others.some((other) => other[member] === upstream[member]))
      .map((member) => `another upstream has this ${member}`)
    const own = upstreamFaults(upstream, upstream.clientSecretFile !== undefined)
    return [...repeated, ...own].map((fault) => `upstreams (${upstream.id}): ${fault}`)
  })
  if (faults.length > 0) throw new ConfigError(faults)
}
