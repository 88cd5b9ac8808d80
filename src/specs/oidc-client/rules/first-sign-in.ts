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

/** A name may be taken this often before it is replaced by random text. */
const mostAlike = 9

/**
 * Returns user names for a user without a believed address, the best first: `work-ada`, `work-ada-2`. The id of the upstream
 * stands in front because the name there was not checked: it must not look like that of another user here, and apps
 * may know their users by it.
 * @param fresh Random text for a user without such a name, or with one that many have.
 */
export function userNames(
  { username, email }: Pick<UpstreamClaims, 'username' | 'email'>,
  { id }: Pick<Upstream, 'id'>,
  fresh: string,
): readonly string[] {
  const [local = ''] = (username ?? email ?? '').normalize('NFKC').toLowerCase().split('@')
  const name = local
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .slice(0, 40)
    .replaceAll(/^[-._]+|[-._]+$/g, '')
  const alike = name === '' ? [] : Array.from({ length: mostAlike - 1 }, (_, at) => `${id}-${name}-${at + 2}`)
  return [...(name === '' ? [] : [`${id}-${name}`]), ...alike, `${id}-${fresh}`]
}

/**
 * Returns the user to add when someone signs in for the first time; undefined if the policy adds none. An address that is
 * not believed is dropped.
 * @param username The name of a user without a believed address.
 */
export function newUserOf(claims: UpstreamClaims, upstream: Upstream, username: string): NewUser | undefined {
  const email = believedEmail(claims, upstream)
  const isWelcome =
    upstream.firstSignIn === 'any' || (upstream.firstSignIn === 'domain' && email !== undefined)
  if (!isWelcome) return undefined
  const { name, givenName, familyName } = claims
  return {
    username: email ?? username,
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
