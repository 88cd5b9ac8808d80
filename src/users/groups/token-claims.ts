import { type JsonObject, rejection } from '../../clients/members.ts'
import { reservedClaims } from '../../domain/claims.ts'
import type { Group } from '../../domain/group.ts'
import { isObject } from '../../domain/is-object.ts'
import type { Client, Scope, UserClaims } from '../../domain/model.ts'

/** Where a claim can go. */
export const targets = ['userinfo', 'id_token', 'access_token'] as const
export type Target = (typeof targets)[number]

/** A constant. */
export type ClaimValue = string | number | boolean | readonly string[]

/** Where the value of a claim comes from: exactly one of these. Data, and never code. */
export interface ClaimOrigin {
  /** The names of the groups of the user. */
  readonly groups?: true
  /** The roles that groups give at this client: the id of a group, and its role. */
  readonly roles?: Readonly<Record<string, string>>
  readonly value?: ClaimValue
  /** Another claim of the user, such as `preferred_username`. */
  readonly copy?: string
}

/** One claim of the tokens of a client, which an operator sets. */
export interface ClaimRule extends ClaimOrigin {
  readonly claim: string
  readonly in: readonly Target[]
}

const claimSyntax = /^[a-z][\w.:/-]{0,99}$/i
const roleSyntax = /^[!-~](?:[ -~]{0,98}[!-~])?$/
const groupId = /^group_[\w-]{22}$/
const mostRules = 30
const mostRoles = 200
const longestValue = 1000
const origins = ['groups', 'roles', 'value', 'copy'] as const

/**
 * Reads `token_claims` of client metadata, which only an operator sets.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function readTokenClaims(members: JsonObject, name: string): readonly ClaimRule[] | undefined {
  const rules = members[name] || []
  if (!Array.isArray(rules)) throw rejection(`${name} must be an array`)
  if (rules.length > mostRules) throw rejection(`${name} has more than ${mostRules} claims`)
  const read = rules.map((rule, index) => readRule(rule, `${name}[${index}]`))
  const twice = read.find(({ claim }, index) => read.findIndex((one) => one.claim === claim) !== index)
  if (twice !== undefined) throw rejection(`${name} has a claim twice`, { received: twice.claim })
  return read.length === 0 ? undefined : read
}

function readRule(rule: unknown, where: string): ClaimRule {
  if (!isObject(rule)) throw rejection(`${where} must be an object`)
  const { claim, in: into = ['id_token', 'userinfo'], ...rest } = rule
  if (typeof claim !== 'string' || !claimSyntax.test(claim))
    throw rejection(`${where}.claim must be the name of a claim`)
  if (reservedClaims.has(claim))
    throw rejection(`${where}.claim is a claim that only the server sets`, {
      rule: 'lychgate-claim-reserved',
      received: claim,
    })
  if (!isTargets(into)) throw rejection(`${where}.in must be a list of: ${targets.join(', ')}`)
  const [origin, ...others] = Object.keys(rest)
  if (origin === undefined || others.length > 0)
    throw rejection(`${where} must have exactly one of: ${origins.join(', ')}`)
  return { claim, in: into, ...readOrigin(origin, rest[origin], where) }
}

function isTargets(value: unknown): value is readonly Target[] {
  return (
    Array.isArray(value) && value.length > 0 && value.every((one) => targets.some((target) => target === one))
  )
}

function readOrigin(origin: string, value: unknown, where: string): ClaimOrigin {
  if (origin === 'groups' && value === true) return { groups: true }
  if (origin === 'value' && isValue(value)) return { value }
  if (origin === 'copy' && typeof value === 'string' && claimSyntax.test(value)) return { copy: value }
  if (origin === 'roles' && isObject(value)) {
    const entries = Object.entries(value)
    const isRole = ([id, role]: readonly [string, unknown]): boolean =>
      groupId.test(id) && typeof role === 'string' && roleSyntax.test(role)
    if (entries.length <= mostRoles && entries.every(isRole))
      return { roles: Object.fromEntries(entries.map(([id, role]) => [id, String(role)])) }
  }
  throw rejection(`${where} must have groups: true, roles by the id of a group, a value, or a claim to copy`)
}

function isValue(value: unknown): value is ClaimValue {
  const isScalar = ['string', 'number', 'boolean'].includes(typeof value)
  const isList = Array.isArray(value) && value.every((one) => typeof one === 'string')
  return (isScalar || isList) && JSON.stringify(value).length <= longestValue
}

/** Returns the rules of a client for one target. */
export function claimRulesOf({ extra }: Pick<Client, 'extra'>, target: Target): readonly ClaimRule[] {
  const rules = extra?.['token_claims']
  // `as`: only readTokenClaims stores them.
  return Array.isArray(rules) ? (rules as ClaimRule[]).filter((rule) => rule.in.includes(target)) : []
}

/**
 * Applies rules to a user. A claim without a value is left out; the lists `groups` and `roles` may be empty. The
 * names of groups need the scope `groups` in an ID Token and in UserInfo; in an access token the operator of the API
 * decides.
 */
export function applyRules(
  rules: readonly ClaimRule[],
  target: Target,
  user: { readonly groups: readonly Group[]; readonly claims: UserClaims; readonly scope: Scope },
  groupNames: (claim: string) => Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const claims: Record<string, unknown> = {}
  for (const { claim, groups, roles, value, copy } of rules) {
    if (groups && (target === 'access_token' || user.scope.includes('groups')))
      Object.assign(claims, groupNames(claim))
    if (roles !== undefined) claims[claim] = rolesOf(roles, user.groups)
    if (value !== undefined) claims[claim] = value
    if (copy !== undefined && Object.hasOwn(user.claims, copy) && user.claims[copy] !== '')
      claims[claim] = user.claims[copy]
  }
  return claims
}

/** Returns the roles that groups give, each once and in their order. */
function rolesOf(roles: Readonly<Record<string, string>>, groups: readonly Group[]): readonly string[] {
  return [...new Set(groups.flatMap(({ id }) => (Object.hasOwn(roles, id) ? [roles[id] ?? ''] : [])))].sort()
}
