import { currentTerms, type Ending, type TokenFacts } from './access-token.ts'
import { contextClassOf } from './authentication-context.ts'
import { type Confirmation, confirmationOf } from './confirmation.ts'
import { isLoss, type ScopePolicy } from './current-grant.ts'
import type { Grant, GrantOfToken, Seconds } from './model.ts'
import type { AccessTokenTerms } from './resource.ts'
import { formatScope } from './scope.ts'

/**
 * Returns the claims of a JWT access token (RFC 9068 §2.2): of the user only `sub` and how they signed in. Without a
 * user the client is the subject. `jti` names the grant and the token, so that introspection finds a revocation; a
 * resource server that verifies without a look-up accepts the token until `exp`.
 * @param confirmation The key of the client that it is bound to (RFC 7800 §3.1).
 */
export function jwtAccessTokenPayload(
  issuer: string,
  grant: Grant,
  terms: AccessTokenTerms,
  tokenId: string,
  now: Seconds,
  confirmation?: Confirmation,
): Readonly<Record<string, unknown>> {
  const [audience, ...others] = terms.resource
  return {
    iss: issuer,
    sub: subjectOf(grant),
    aud: others.length === 0 ? audience : terms.resource,
    client_id: grant.clientId,
    scope: formatScope(terms.scope),
    iat: now,
    exp: now + terms.seconds,
    ...signInOf(grant),
    ...(grant.methods.length > 0 && { amr: grant.methods }),
    jti: jtiOf(grant, tokenId),
    ...(confirmation !== undefined && { cnf: confirmation }),
  }
}

/** Returns how and when the user of a grant signed in (RFC 9470 §6); nothing for a client that acts for itself. */
export function signInOf({
  userId,
  acr: requested,
  methods,
  authenticatedAt,
}: Pick<Grant, 'userId' | 'acr' | 'methods' | 'authenticatedAt'>) {
  const acr = requested ?? contextClassOf(methods)
  return {
    ...(userId !== undefined && { auth_time: authenticatedAt }),
    ...(acr !== undefined && { acr }),
  }
}

/** Returns `sub` of a grant's access tokens: its user, or the client that acts for itself (RFC 9068 §2.2). */
export function subjectOf({ userId, clientId }: Pick<Grant, 'userId' | 'clientId'>): string {
  return userId ?? clientId
}

/** The identifier of a token: the same in a JWT and in its introspection, RFC 7662 §2.2. */
export function jtiOf({ id }: Pick<Grant, 'id'>, tokenId: string): string {
  return `${id}.${tokenId}`
}

/** The grant a verified JWT access token belongs to. */
export function grantIdOfJwt(claims: Readonly<Record<string, unknown>>): string | undefined {
  const { jti } = claims
  return typeof jti === 'string' ? /^([\w-]{16})\.[\w-]{22}$/.exec(jti)?.[1] : undefined
}

/** The id of a verified JWT access token within its grant. */
export function tokenIdOfJwt({ jti }: Readonly<Record<string, unknown>>): string {
  return String(jti).split('.')[1] ?? ''
}

/** Returns what `whyInactive` needs, from the claims of a JWT access token of this server. */
export function endingOf(claims: Readonly<Record<string, unknown>>): Ending {
  const { exp, scope, aud } = claims
  const narrowing = {
    scope: typeof scope === 'string' && scope !== '' ? scope.split(' ') : [],
    resource: [aud].flat().map(String),
  }
  return { kind: 'access', seq: 0, expiresAt: Number(exp), tokenId: tokenIdOfJwt(claims), narrowing }
}

/** As verifyAccessToken, for the claims of a JWT whose signature, type and issuer were verified; RFC 9068 §4. */
export function verifyJwtAccessToken(
  claims: Readonly<Record<string, unknown>>,
  grant: GrantOfToken | undefined,
  policy: ScopePolicy,
  now: Seconds,
): TokenFacts | undefined {
  const { exp, iat, cnf } = claims
  if (grant === undefined || grant.revokedAt !== undefined || grantIdOfJwt(claims) !== grant.id)
    return undefined
  if (typeof exp !== 'number' || typeof iat !== 'number' || now >= exp) return undefined
  const ending = endingOf(claims)
  const { tokenId } = ending
  if (grant.revokedTokens.includes(tokenId)) return undefined
  const current = currentTerms(ending, grant, policy)
  if (isLoss(current)) return undefined
  const confirmation = confirmationOf(cnf)
  return {
    kind: 'access',
    ...current,
    issuedAt: iat,
    expiresAt: exp,
    tokenId,
    ...(confirmation && { confirmation }),
  }
}
