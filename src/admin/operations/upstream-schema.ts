import { Type } from '@sinclair/typebox'
import { upstreamMembers } from '../../users/upstream-members.ts'

const { id, name, issuer, clientId, ...defaulted } = upstreamMembers
const closed = { additionalProperties: false } as const

/** The secret that this server authenticates with there. */
export const clientSecret = Type.String({
  pattern: '^[\\x20-\\x7e]{1,1000}$',
  description: 'The client secret of this server there. It is stored sealed, and no response has it.',
})

/** The members that have a default, under their names in the admin API. */
const wireMembers = {
  client_authentication: defaulted.clientAuthentication,
  signing_algorithm: defaulted.signingAlgorithm,
  scope: defaulted.scope,
  first_sign_in: defaulted.firstSignIn,
  domains: defaulted.domains,
  multi_factor: defaulted.multiFactor,
  groups_claim: defaulted.groupsClaim,
  groups: defaulted.groups,
  max_age_seconds: defaulted.maxAgeSeconds,
  enabled: defaulted.enabled,
} as const

/** What an upstream has that no one said anything else about. */
export const defaultUpstream = Object.fromEntries(
  Object.entries(wireMembers).map(([member, { default: value }]) => [member, value]),
)
const optional = {
  client_authentication: Type.Optional(wireMembers.client_authentication),
  signing_algorithm: Type.Optional(wireMembers.signing_algorithm),
  scope: Type.Optional(wireMembers.scope),
  first_sign_in: Type.Optional(wireMembers.first_sign_in),
  domains: Type.Optional(wireMembers.domains),
  multi_factor: Type.Optional(wireMembers.multi_factor),
  groups_claim: Type.Optional(wireMembers.groups_claim),
  groups: Type.Optional(wireMembers.groups),
  max_age_seconds: Type.Optional(wireMembers.max_age_seconds),
  enabled: Type.Optional(wireMembers.enabled),
} as const

/** The members of a new upstream; files have all but the secret under the same names. */
export const newUpstreamMembers = { upstream_id: id, name, issuer, client_id: clientId, ...optional } as const

/** What is sent to add an upstream. */
export const NewUpstream = Type.Object(
  { ...newUpstreamMembers, client_secret: Type.Optional(clientSecret) },
  { title: 'NewUpstream', ...closed },
)
/** What is sent to change one: its id and issuer stay. */
export const ChangedUpstream = Type.Object(
  {
    name: Type.Optional(name),
    client_id: Type.Optional(clientId),
    ...optional,
    client_secret: Type.Optional(clientSecret),
  },
  { title: 'ChangedUpstream', minProperties: 1, ...closed },
)

/** An upstream as operators see it. */
export const UpstreamResource = Type.Object(
  {
    upstream_id: id,
    name,
    issuer,
    client_id: clientId,
    ...wireMembers,
    redirect_uri: Type.String({ description: 'To register there: each upstream has its own.' }),
    source: Type.String({ description: 'configuration, or store: only operations change those.' }),
    created_at: Type.Optional(Type.Integer()),
    updated_at: Type.Optional(Type.Integer()),
  },
  { title: 'Upstream', ...closed },
)
