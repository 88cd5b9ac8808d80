import { omitUndefined } from '../../../domain/omit-undefined.ts'
import { canonicalEmail, type NewUser } from '../../../users/rules/user.ts'
import type { Upstream } from '../../../users/upstream-members.ts'
import type { UpstreamClaims } from './id-token.ts'

/**
 * Returns the email address of an upstream's user that is believed: the upstream says that it is verified, and the
 * operator named the upstream as an authority for its domain. The domain is compared as it came, in ASCII: what
 * normalisation makes of another one is not that domain.
 */
export function believedEmail(
  { email, emailVerified }: UpstreamClaims,
  { domains }: Pick<Upstream, 'domains'>,
): string | undefined {
  const [, domain] = /^[\x21-\x7e]+@([A-Za-z0-9.-]+)$/.exec(email ?? '') ?? []
  const isBelieved = domain !== undefined && emailVerified && domains.includes(domain.toLowerCase())
  return isBelieved ? canonicalEmail(email ?? '') : undefined
}

/**
 * Returns the user to add when someone signs in for the first time; undefined if the policy adds none. An address that is
 * not believed is dropped, and so is a user name: neither may look like that of another user.
 * @param fresh Random text for the name of a user without a believed address.
 */
export function newUserOf(claims: UpstreamClaims, upstream: Upstream, fresh: string): NewUser | undefined {
  const email = believedEmail(claims, upstream)
  const isWelcome =
    upstream.firstSignIn === 'any' || (upstream.firstSignIn === 'domain' && email !== undefined)
  if (!isWelcome) return undefined
  const { name, givenName, familyName } = claims
  return {
    username: email ?? `${upstream.id}-${fresh}`,
    ...(email !== undefined && { email, emailVerified: true }),
    claims: omitUndefined({ name, given_name: givenName, family_name: familyName }),
  }
}

/** Returns the names of the groups here that the groups of a user there give, each by a line of the operator's. */
export function mappedNames(
  { groups: there = [] }: Pick<UpstreamClaims, 'groups'>,
  { groups }: Pick<Upstream, 'groups'>,
): readonly string[] {
  return Object.entries(groups).flatMap(([group, name]) => (there.includes(group) ? name : []))
}
