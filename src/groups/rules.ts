import type { Group } from '../domain/group.ts'
import type { ClaimsRequest, Scope } from '../domain/model.ts'

/** The part of a use of claims that decides about the claim `groups`. */
interface Use {
  readonly target: 'userinfo' | 'id_token' | 'access_token'
  readonly scope: Scope
  readonly requested: ClaimsRequest
}

/**
 * Whether a response has the claim `groups`: UserInfo by the scope, and UserInfo and ID Tokens by the `claims` parameter
 * (OpenID Connect Core §5.5), as far as the user agreed.
 */
export function wantsGroups({ target, scope, requested }: Use): boolean {
  switch (target) {
    case 'userinfo':
      return scope.includes('groups') || requested.userinfo.includes('groups')
    case 'id_token':
      return requested.idToken.includes('groups')
    case 'access_token':
      return false
  }
}

/**
 * Returns the claim `groups`: the names, in their order. With more than `most` it has the first of them, and
 * `groups_truncated` says so: a client must not conclude that the user is not in a group.
 */
export function groupClaims(groups: readonly Group[], most: number): Readonly<Record<string, unknown>> {
  const names = groups.map(({ name }) => name).toSorted((one, other) => (one < other ? -1 : 1))
  return {
    groups: names.slice(0, most),
    ...(names.length > most && { groups_truncated: true }),
  }
}
