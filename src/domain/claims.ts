import { isDeceptive } from './deceptive.ts'
import type { ClaimsRequest, Client, Scope, User, UserClaims } from './model.ts'
import type { CatalogueScope } from './scope-catalogue.ts'

/** The claims that are one line of text, OpenID Connect Core §5.1: the ones that users may be allowed to edit. */
export const textClaims = [
  'name',
  'given_name',
  'family_name',
  'middle_name',
  'nickname',
  'profile',
  'picture',
  'website',
  'gender',
  'birthdate',
  'zoneinfo',
  'locale',
] as const

/** Claims of the protocol, and claims that prove who the user is: no operator's rule or attribute sets them. */
export const reservedClaims: ReadonlySet<string> = new Set([
  ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'azp', 'nonce', 'auth_time', 'acr', 'amr', 'sid'],
  ...['at_hash', 'c_hash', 's_hash', 'client_id', 'scope', 'cnf', 'act', 'may_act', 'events', 'active'],
  ...['token_type', 'sub_id', 'sub_jwk', 'toe', 'txn', 'email', 'email_verified', 'phone_number'],
  ...['phone_number_verified', 'preferred_username', 'verified_claims', 'authorization_details'],
])

export type TextClaim = (typeof textClaims)[number]

const longestText = 200

/** What is wrong with one line of text about a user. */
export function textFault(text: string, longest: number = longestText): 'tooLong' | 'invisible' | undefined {
  if (text.length > longest) return 'tooLong'
  return isDeceptive(text) ? 'invisible' : undefined
}

/** Which claims each scope opens, OpenID Connect Core §5.4. */
export type ScopeClaims = ReadonlyMap<string, readonly string[]>

/** The claims of the catalogue's scopes. */
export function indexScopeClaims(catalogue: readonly CatalogueScope[]): ScopeClaims {
  return new Map(catalogue.flatMap(({ name, claims }) => (claims ? [[name, claims] as const] : [])))
}

/** Every claim that some scope opens, in the order of the catalogue. */
export function claimNames(scopeClaims: ScopeClaims): readonly string[] {
  return [...new Set([...scopeClaims.values()].flat())]
}

/**
 * Returns the UserInfo claims (OpenID Connect Core §5.3.2): `sub`, the claims that the scope opens, and those requested
 * by the `claims` parameter. A claim without a value is left out.
 */
export function userInfo(
  user: Pick<User, 'id' | 'claims'>,
  scope: Scope,
  requested: ClaimsRequest,
  scopeClaims: ScopeClaims,
): { readonly sub: string; readonly [claim: string]: unknown } {
  const names = scope.flatMap((name) => scopeClaims.get(name) ?? [])
  return { sub: user.id, ...pick(user.claims, [...names, ...known(requested.userinfo, scopeClaims)]) }
}

/** The claims of a user that the `claims` parameter wants in the ID Token, OpenID Connect Core §5.5. */
export function idTokenClaims(
  user: Pick<User, 'claims'> | undefined,
  requested: ClaimsRequest,
  scopeClaims: ScopeClaims,
): Readonly<Record<string, unknown>> {
  return user ? pick(user.claims, known(requested.idToken, scopeClaims)) : {}
}

/** Claims of these scopes may be in an ID Token: apps show profile and email, and grant rights by groups. */
const idTokenScopes = ['profile', 'email', 'groups']

/**
 * Whether the ID Tokens of a client have the claims of the scopes: unless an operator says otherwise, those of a
 * confidential client of an operator, which come over the back channel.
 */
export function idTokenClaimsOf({
  idTokenClaims: said,
  origin,
  authenticationMethod,
}: Pick<Client, 'idTokenClaims' | 'origin' | 'authenticationMethod'>): 'scope' | 'none' {
  if (said !== 'default') return said ?? 'none'
  return origin === 'integration' && authenticationMethod !== 'none' ? 'scope' : 'none'
}

/** Returns what an operator said of it; of a client of a previous version that it has none, as a new one may have them. */
export function configuredIdTokenClaims(client: Client): 'scope' | 'none' | undefined {
  const { idTokenClaims: said } = client
  if (said !== undefined) return said === 'default' ? undefined : said
  return idTokenClaimsOf({ ...client, idTokenClaims: 'default' }) === 'scope' ? 'none' : undefined
}

/** Adds the claims of the scopes to those requested for the ID Token, OpenID Connect Core §5.4 and §5.5. */
export function requestedByScope(
  requested: ClaimsRequest,
  scope: Scope,
  scopeClaims: ScopeClaims,
): ClaimsRequest {
  const opened = idTokenScopes.flatMap((name) => (scope.includes(name) ? (scopeClaims.get(name) ?? []) : []))
  return { ...requested, idToken: [...requested.idToken, ...opened] }
}

/**
 * The scopes that open claims asked for one by one and not opened by `scope`, so that a user can be asked about them.
 * @param scopeClaims Of the scopes the client may have.
 */
export function scopeOfClaims(requested: ClaimsRequest, scope: Scope, scopeClaims: ScopeClaims): Scope {
  const names = [...requested.userinfo, ...requested.idToken].flatMap((claim) => {
    const openers = [...scopeClaims].flatMap(([name, claims]) => (claims.includes(claim) ? [name] : []))
    return openers.some((name) => scope.includes(name)) ? [] : openers.slice(0, 1)
  })
  return [...new Set(names)]
}

/** The claims asked for one by one that these scopes open; `auth_time` is about the sign-in and needs none. */
export function narrowClaims(
  requested: ClaimsRequest,
  scope: Scope,
  scopeClaims: ScopeClaims,
): ClaimsRequest {
  const isOpened = (claim: string) =>
    claim === 'auth_time' || scope.some((name) => scopeClaims.get(name)?.includes(claim))
  return { userinfo: requested.userinfo.filter(isOpened), idToken: requested.idToken.filter(isOpened) }
}

function known(names: readonly string[], scopeClaims: ScopeClaims): readonly string[] {
  const opened = names.length === 0 ? [] : claimNames(scopeClaims)
  return names.filter((name) => opened.includes(name))
}

function pick(claims: UserClaims, names: readonly string[]): Readonly<Record<string, unknown>> {
  const picked: Record<string, unknown> = {}
  for (const name of names) {
    if (Object.hasOwn(claims, name) && claims[name] !== '') picked[name] = claims[name]
  }
  return picked
}
