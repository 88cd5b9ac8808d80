import { type Check, nameOf } from './check.ts'
import { checks } from './checks.ts'
import type { Traits } from './flow.ts'
import type { Server } from './server.ts'

/** A set of clauses that belong together, and how its clients behave. */
export interface Profile {
  readonly name: string
  readonly about: string
  readonly covers: (check: Check) => boolean
  readonly traits: Traits
}

const webTraits: Traits = {
  methods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
  pushes: false,
  dpop: false,
  signs: false,
}
const confidential: Traits = {
  ...webTraits,
  methods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
}
const highSecurity: Traits = { methods: ['private_key_jwt'], pushes: true, dpop: true, signs: false }

const documents = (...prefixes: readonly string[]) => {
  const known = new RegExp(`^(?:${prefixes.join('|')})-`)
  return ({ id }: Check) => known.test(id)
}

const oauth = documents(
  'rfc6749',
  'rfc6750',
  'rfc7009',
  'rfc759[12]',
  'rfc7636',
  'rfc7662',
  'rfc8252',
  'rfc8414',
  'rfc8628',
  'rfc8707',
  'rfc9126',
  'rfc9207',
  'rfc9101',
  'rfc9449',
  'rfc9700',
  'oauth21',
)
const openid = documents('rfc6749', 'rfc6750', 'oidc-(?:core|disc|reg|rpl|bcl)')
/** What OAuth 2.1 and its successors demand of every client, and OpenID Connect Core leaves open. */
const demandsPkce = ({ id }: Check) =>
  /required|pkce-for-all|method-default-plain|method-unsupported/.test(id) && id.startsWith('rfc7636')
const highSecurityTexts = documents(
  'rfc6749',
  'rfc6750',
  'rfc7636',
  'rfc7523(?:bis)?',
  'rfc8414',
  'rfc9101',
  'rfc9126',
  'rfc9207',
  'rfc9449',
  'fapi2',
)
/** FAPI 2.0 §5.3.2.1 forbids the rotation that others demand, and has no public clients. */
const againstHighSecurity = /^(?!fapi2).*(?:rotat|reuse-revokes|public|ambiguous|registered$)/

export const profiles: readonly Profile[] = [
  { name: 'oauth21', about: 'OAuth 2.1 and the specifications around it', covers: oauth, traits: webTraits },
  {
    name: 'oidc-basic',
    about: 'OpenID Connect with the code flow',
    covers: (check) => openid(check) && !demandsPkce(check),
    traits: confidential,
  },
  {
    name: 'mcp-2026-07-28',
    about: 'authorization servers of MCP',
    covers: (check) => oauth(check) || documents('mcp', 'rfc9728', 'cimd')(check),
    traits: webTraits,
  },
  {
    name: 'fapi2',
    about: 'FAPI 2.0 Security Profile',
    covers: (check) =>
      highSecurityTexts(check) &&
      !check.id.startsWith('fapi2-ms-') &&
      !againstHighSecurity.test(nameOf(check)),
    traits: highSecurity,
  },
  {
    name: 'fapi2-ms',
    about: 'FAPI 2.0 Message Signing',
    covers: (check) =>
      (highSecurityTexts(check) || documents('jarm')(check)) &&
      !againstHighSecurity.test(nameOf(check)) &&
      // In a signed request an empty text is a value.
      !check.id.endsWith('3.1-empty-as-omitted'),
    traits: { ...highSecurity, signs: true },
  },
  {
    name: 'all',
    about: 'every clause except those of FAPI 2.0, which contradict others, and of the draft of RFC 7523',
    covers: (check) => !documents('fapi2', 'rfc7523bis')(check),
    traits: webTraits,
  },
]

/** Chooses the profile that the metadata speak for. */
export function profileFor({ metadata, openid: document, supports }: Server): Profile {
  const isStrict =
    metadata['require_pushed_authorization_requests'] === true &&
    supports('token_endpoint_auth_methods_supported', 'private_key_jwt')
  const isSigned = isStrict && metadata['require_signed_request_object'] === true
  const name = isSigned ? 'fapi2-ms' : isStrict ? 'fapi2' : document !== undefined ? 'all' : 'oauth21'
  return profileNamed(name)
}

/** @throws {RangeError} for an unknown name. */
export function profileNamed(name: string): Profile {
  const found = profiles.find((profile) => profile.name === name)
  if (found === undefined) throw new RangeError(`profiles are ${profiles.map((one) => one.name).join(', ')}`)
  return found
}

/** The checks of a profile, in their order. */
export function checksOf(profile: Profile, only?: RegExp): readonly Check[] {
  return checks.filter((check) => profile.covers(check) && (only === undefined || only.test(check.id)))
}
