import { isTextList, type JsonObject, rejection } from '../../clients/members.ts'
import type { AccessRule } from '../../domain/access.ts'
import type { Condition, Reading, RecordReads } from '../../domain/decision.ts'
import { allowedGroupsOf, deepestGroup, type Group, groupKind, membershipKind } from '../../domain/group.ts'
import type { ClaimsRequest, Scope } from '../../domain/model.ts'

const mostAllowed = 100

/**
 * Reads `allowed_groups`: ids in a list, or in a text separated by spaces. An empty list lets every user use the client
 * and is not stored.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function readAllowedGroups(members: JsonObject, name: string): readonly string[] | undefined {
  const value = members[name] ?? []
  const ids = typeof value === 'string' ? value.split(' ').filter((id) => id !== '') : value
  if (!isTextList(ids) || !ids.every((id) => /^group_[\w-]{22}$/.test(id)))
    throw rejection(`${name} must be ids of groups`)
  if (ids.length > mostAllowed) throw rejection(`${name} has more than ${mostAllowed} groups`)
  return ids.length === 0 ? undefined : [...new Set(ids)]
}

/** Why the others may not: the rule by which their grants are revoked, and the description of the error. */
export const denial = {
  rule: 'lychgate-group-required',
  why: 'the user is in none of the groups that may use this client (lychgate client access)',
} as const

/** The rule for operators: whether the user is in a group that may use the client. */
export const groupAccess: AccessRule = {
  about: 'group',
  rule: denial.rule,
  ofSettings: false,
  member: {
    name: 'allowed_groups',
    fact: 'allowed',
    read: (text) => (text === 'everyone' ? undefined : text.split(' ')),
  },
  judge: ({ client, groups }) => {
    const allowed = client && allowedGroupsOf(client)
    if (allowed === undefined) return { passed: true, why: 'every user may use the client' }
    const group = groups.find(({ id }) => allowed.includes(id))
    return group === undefined
      ? { passed: false, why: denial.why }
      : { passed: true, why: `the user is in ${group.name}, which may use the client` }
  },
}

/** Requires in a transaction that the user is a member of one of these groups, or of one below them. */
export function requireMember(allowed: readonly string[], userId: string): Condition {
  return { ...denial, holds: (read) => isMember(allowed, userId, read) }
}

function* isMember(allowed: readonly string[], userId: string, read: RecordReads): Reading<boolean> {
  let ids = (yield* read.listOf(membershipKind, userId)).map(({ groupId }) => groupId)
  for (let depth = 1; depth <= deepestGroup; depth += 1) {
    if (ids.some((id) => allowed.includes(id))) return true
    const parents = new Set<string>()
    for (const id of ids) {
      const { parentId } = (yield* read.find(groupKind, id)) ?? {}
      if (parentId !== undefined) parents.add(parentId)
    }
    ids = [...parents]
  }
  return false
}

/** The part of a use of claims that decides about the claim `groups`. */
interface Use {
  readonly target: 'userinfo' | 'id_token' | 'access_token'
  readonly scope: Scope
  readonly requested: ClaimsRequest
}

/**
 * Whether a response has the claim `groups`: UserInfo by the scope, and UserInfo and ID Tokens by the `claims`
 * parameter (OpenID Connect Core §5.5), if the user agreed.
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
 * Returns a claim with the names of groups, in their order. With more than `most` it has the first of them, and
 * `groups_truncated` says so: a client must not conclude that the user is not in a group.
 */
export function groupClaims(
  groups: readonly Group[],
  most: number,
  claim = 'groups',
): Readonly<Record<string, unknown>> {
  const names = groups.map(({ name }) => name).sort()
  return {
    [claim]: names.slice(0, most),
    ...(names.length > most && { groups_truncated: true }),
  }
}
