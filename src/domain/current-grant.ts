import { recordCheck } from './check.ts'
import type { ScopeClaims } from './claims.ts'
import { OAuthError } from './errors.ts'
import type { AuthorizationRequest, ClaimsRequest, Grant, GrantedClient, Scope } from './model.ts'
import type { Resources } from './resource.ts'
import { offlineAccess } from './scope-catalogue.ts'

/*
 * What is left of a grant. A scope, resource or grant type that was taken from the client, from the catalogue or from
 * the configuration is gone at the next use of any code or token that the server looks up. It is computed at each use
 * and never written to the grant, so a mistake can be corrected.
 */

/** What a client may have now depends on this. */
export interface ScopePolicy {
  /** Names of the scope catalogue. */
  readonly scopes: ReadonlySet<string>
  /** Scopes that a client may have without an operator. */
  readonly openScopes: ReadonlySet<string>
  /** Those about a user: a client that acts for itself has none of them. */
  readonly userScopes: ReadonlySet<string>
  readonly scopeClaims: ScopeClaims
  readonly resources: Resources
  readonly grantTypes: Beginnings
}

/** The grant types by which grants begin. */
export interface Beginnings {
  readonly withRedirect: readonly string[]
  /** Of a user, on a device. */
  readonly withoutRedirect: readonly string[]
  /** Of a client that exchanges a token, RFC 8693. */
  readonly fromToken: readonly string[]
  /** Of a client that acts for itself. */
  readonly withoutUser: readonly string[]
}

/** Why nothing is left. */
export interface Loss {
  readonly rule: string
  readonly why: string
}

export const currentlyAllowed = 'lychgate-currently-allowed'

const lossOf = (why: string): Loss => ({ rule: currentlyAllowed, why })
const noGrantType = lossOf(
  'the client no longer has the grant type of this grant (lychgate client set --grant-type)',
)
const noResource = lossOf(
  'no resource of the grant is open to the client now (resources in the configuration, or lychgate client set --resource)',
)
const noScope = lossOf(
  'no scope of the grant is open to the client now (lychgate client set --scope, or scopes in the configuration)',
)
export const noRefresh = lossOf(
  'the client no longer has the grant type refresh_token (lychgate client set --grant-type)',
)
export const noPart = lossOf(
  'nothing that this token was narrowed to is open to the client now (lychgate client set --scope, or scopes and resources in the configuration)',
)

type GrantTerms = Pick<Grant, 'scope' | 'resource' | 'claims'>
type Approved = GrantTerms & Pick<Grant, 'userId' | 'redirectUri' | 'exchangedFrom'>

/** Whether `currentGrant` found that nothing is left. */
export function isLoss(found: object): found is Loss {
  return 'why' in found
}

/**
 * Returns what is left of a grant: the grant itself, without an allocation, if nothing was taken.
 * @param client As it is now.
 */
export function currentGrant<G extends Approved>(
  grant: G,
  client: GrantedClient,
  policy: ScopePolicy,
): G | Loss {
  return left(grant, beginningsOf(grant, policy.grantTypes), client, policy)
}

/**
 * Returns what is left of a request that waits for its user: what was taken is not shown and not granted. If nothing
 * is left, returns the error for the client: `invalid_scope`, `invalid_target` or `unauthorized_client`.
 */
export function currentRequest(
  request: AuthorizationRequest,
  client: GrantedClient,
  policy: ScopePolicy,
): AuthorizationRequest | OAuthError {
  const { withRedirect, withoutRedirect } = policy.grantTypes
  const begun = request.redirectUri === '' ? withoutRedirect : withRedirect
  const current = left(request, begun, client, policy)
  if (isLoss(current)) {
    const codes = new Map([[noScope, 'invalid_scope'] as const, [noResource, 'invalid_target'] as const])
    return new OAuthError(codes.get(current) ?? 'unauthorized_client', current.why, { rule: current.rule })
  }
  const { claimScope } = current
  const openers = claimScope && filtered(claimScope, (name) => mayHave(name, client, policy))
  return openers === claimScope ? current : { ...current, claimScope: openers ?? [] }
}

function left<A extends GrantTerms>(
  terms: A,
  begun: readonly string[],
  client: GrantedClient,
  policy: ScopePolicy,
): A | Loss {
  if (!client.grantTypes.some((name) => begun.includes(name))) return noGrantType
  const isOwn = begun === policy.grantTypes.withoutUser
  const isWithinOwn = isOwn || begun === policy.grantTypes.fromToken
  const { resources } = policy
  const resource = filtered(
    terms.resource,
    (id) => resources.find(id) !== undefined && (!isWithinOwn || (client.resources?.includes(id) ?? true)),
  )
  if (resource.length === 0) return noResource
  const scope = filtered(terms.scope, (name) =>
    isOwn ? mayHaveItself(name, client, policy) : mayHave(name, client, policy),
  )
  const isUsable = (name: string) =>
    name !== offlineAccess.name && resource.some((id) => resources.find(id)?.scopes.has(name))
  if (!scope.some(isUsable)) return noScope
  const claims = currentClaims(terms, scope, client, policy)
  if (scope === terms.scope && resource === terms.resource && claims === terms.claims) return terms
  return { ...terms, scope, resource, claims }
}

/**
 * The same, for a request to the token endpoint.
 * @throws {OAuthError} `invalid_grant`, if nothing is left.
 */
export function requireCurrent(grant: Grant, client: GrantedClient, policy: ScopePolicy): Grant {
  const current = currentGrant(grant, client, policy)
  if (isLoss(current)) throw new OAuthError('invalid_grant', current.why, { rule: current.rule })
  recordCheck(currentlyAllowed, 'what the client may have of the grant now', current.scope)
  return current
}

/** The members of a list that pass; the list itself, without an allocation, if all do. */
export function filtered(list: readonly string[], passes: (member: string) => boolean): readonly string[] {
  return list.every(passes) ? list : list.filter(passes)
}

/** Whether a client may request a scope for a user, RFC 6749 §3.3. */
export function mayHave(
  name: string,
  client: Pick<GrantedClient, 'origin' | 'scope'>,
  { scopes, openScopes }: Pick<ScopePolicy, 'scopes' | 'openScopes'>,
): boolean {
  const isOpen = openScopes.has(name)
  if (!scopes.has(name) || (!isOpen && client.origin !== 'integration')) return false
  // offline_access gives nothing that the grant type does not give, so no client has to register it.
  return name === offlineAccess.name || (client.scope?.includes(name) ?? isOpen)
}

/** Whether a client may have a scope when it acts for itself: its list has it, and it is not about a user. */
export function mayHaveItself(
  name: string,
  { scope = [] }: Pick<GrantedClient, 'scope'>,
  { scopes, userScopes }: Pick<ScopePolicy, 'scopes' | 'userScopes'>,
): boolean {
  return scope.includes(name) && scopes.has(name) && !userScopes.has(name)
}

function beginningsOf({ userId, redirectUri, exchangedFrom }: Approved, all: Beginnings): readonly string[] {
  if (exchangedFrom !== undefined) return all.fromToken
  if (userId === undefined) return all.withoutUser
  return redirectUri === '' ? all.withoutRedirect : all.withRedirect
}

/** Claims requested one by one go with the scope that opened them: one of the grant, or one that was asked about. */
function currentClaims(
  { scope: granted, claims }: GrantTerms,
  scope: Scope,
  client: GrantedClient,
  policy: ScopePolicy,
): ClaimsRequest {
  if (claims.userinfo.length + claims.idToken.length === 0) return claims
  const isOpen = (claim: string): boolean => {
    if (claim === 'auth_time') return true
    const openers = [...policy.scopeClaims].flatMap(([name, opened]) =>
      opened.includes(claim) ? [name] : [],
    )
    const ofGrant = openers.filter((name) => granted.includes(name))
    if (ofGrant.length > 0) return ofGrant.some((name) => scope.includes(name))
    return openers.some((name) => mayHave(name, client, policy))
  }
  const [userinfo, idToken] = [filtered(claims.userinfo, isOpen), filtered(claims.idToken, isOpen)]
  return userinfo === claims.userinfo && idToken === claims.idToken ? claims : { userinfo, idToken }
}
