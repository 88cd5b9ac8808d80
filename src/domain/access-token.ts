import type { Confirmation } from './confirmation.ts'
import {
  currentGrant,
  filtered,
  isLoss,
  type Loss,
  noPart,
  noRefresh,
  type ScopePolicy,
} from './current-grant.ts'
import { OAuthError } from './errors.ts'
import { handleBelongsTo, type OpenedHandle } from './handle.ts'
import type { Client, ExchangedToken, GrantOfToken, Scope, Seconds } from './model.ts'
import type { Resources } from './resource.ts'

/** The facts of a valid token (RFC 7662 §2.2). */
export interface TokenFacts {
  readonly kind: 'access' | 'refresh'
  /** What is left of it now. */
  readonly grant: GrantOfToken
  readonly scope: Scope
  readonly resource: readonly string[]
  readonly issuedAt: Seconds
  readonly expiresAt: Seconds
  readonly tokenId: string
  /** The key of the client that it is bound to. */
  readonly confirmation?: Confirmation
}

/**
 * Returns the facts of a valid access token (RFC 6750 §3.1, §5.2); undefined if it is expired, revoked or foreign.
 */
export function verifyAccessToken(
  handle: OpenedHandle,
  grant: GrantOfToken | undefined,
  policy: ScopePolicy,
  now: Seconds,
): TokenFacts | undefined {
  if (handle.kind !== 'access' || !isLive(handle, grant) || now >= handle.expiresAt) return undefined
  if (grant.revokedTokens.includes(handle.tokenId)) return undefined
  const current = currentTerms(handle, grant, policy)
  if (isLoss(current)) return undefined
  return {
    kind: 'access',
    ...current,
    issuedAt: handle.issuedAt,
    expiresAt: handle.expiresAt,
    tokenId: handle.tokenId,
    ...(handle.confirmation && { confirmation: handle.confirmation }),
  }
}

/**
 * Returns the facts of a refresh token that is valid now. A rotated one is invalid, even in its reuse window. The row
 * says when the current one expires: a client that keeps it moves that by using it.
 */
export function verifyRefreshToken(
  handle: OpenedHandle,
  grant: GrantOfToken | undefined,
  policy: ScopePolicy,
  now: Seconds,
): TokenFacts | undefined {
  if (handle.kind !== 'refresh' || !isLive(handle, grant) || handle.seq !== grant.seq) return undefined
  const { refreshExpiresAt: expiresAt = 0 } = grant
  if (now >= expiresAt) return undefined
  const current = currentTerms(handle, grant, policy)
  if (isLoss(current)) return undefined
  return {
    kind: 'refresh',
    ...current,
    issuedAt: handle.issuedAt,
    expiresAt,
    tokenId: handle.tokenId,
    ...(handle.confirmation && { confirmation: handle.confirmation }),
  }
}

/**
 * Whether a client may present a token at an endpoint of this server, to learn about it (RFC 7662 §4) or to exchange it
 * (RFC 8693 §2.1): a client may present the tokens issued to it, a resource server the access tokens meant for it.
 */
export function mayPresent(
  client: Pick<Client, 'id' | 'introspects'>,
  token: Pick<TokenFacts, 'kind' | 'resource'> & { readonly grant: Pick<GrantOfToken, 'clientId'> },
  resources: Resources,
): boolean {
  if (token.grant.clientId === client.id) return true
  if (token.kind !== 'access') return false
  const own = client.introspects.map((identifier) => resources.find(identifier)?.identifier ?? identifier)
  return token.resource.some((identifier) => own.includes(identifier))
}

/** What a token or code may do now: its part of what is left of its grant, or why nothing is. */
export function currentTerms(
  { kind, narrowing }: Pick<OpenedHandle, 'kind' | 'narrowing'>,
  row: GrantOfToken,
  policy: ScopePolicy,
): Pick<TokenFacts, 'grant' | 'scope' | 'resource'> | Loss {
  const grant = currentGrant(row, row.client, policy)
  if (isLoss(grant)) return grant
  if (kind === 'refresh' && !row.client.grantTypes.includes('refresh_token')) return noRefresh
  if (kind !== 'access') return { grant, scope: grant.scope, resource: grant.resource }
  // A token that was not narrowed carries no scope: it is in the row, limited to what its resources understand.
  const resource = narrowing
    ? filtered(narrowing.resource, (id) => grant.resource.includes(id))
    : grant.resource
  const isOpen = (name: string) =>
    (narrowing === undefined || grant.scope.includes(name)) &&
    resource.some((id) => policy.resources.find(id)?.scopes.has(name))
  const scope = filtered(narrowing?.scope ?? grant.scope, isOpen)
  return scope.length === 0 ? noPart : { grant, scope, resource }
}

/**
 * Limits what an exchanged token may do to what is left of the token that it was exchanged for, whose end is its own.
 * @param subject The grant of that token, with whether it was revoked alone.
 */
export function withinSubject(
  part: Pick<TokenFacts, 'scope' | 'resource'>,
  { tokenId }: Pick<ExchangedToken, 'tokenId'>,
  subject: GrantOfToken | undefined,
  policy: ScopePolicy,
): Pick<TokenFacts, 'scope' | 'resource'> | Loss {
  if (subject === undefined)
    return { rule: 'lychgate-subject-token-valid', why: `${exchanged} is not stored` }
  if (subject.revokedAt !== undefined || subject.revokedTokens.includes(tokenId))
    return { rule: 'lychgate-subject-token-valid', why: `${exchanged} was revoked` }
  const current = currentGrant(subject, subject.client, policy)
  if (isLoss(current)) return current
  const scope = filtered(part.scope, (name) => current.scope.includes(name))
  const resource = filtered(part.resource, (identifier) => current.resource.includes(identifier))
  return scope.length === 0 || resource.length === 0 ? noPart : { scope, resource }
}

const exchanged = 'the token that it was exchanged for, or the grant of that token,'

/** Why a token or code is no longer valid: the rule, and what the store knows. */
export type Inactivity = Loss

/**
 * The parts of a token or code that decide whether it is valid: an opened handle, or the claims of a JWT. Without the
 * narrowing it is as wide as its grant.
 */
export type Ending = Pick<OpenedHandle, 'kind' | 'seq' | 'expiresAt' | 'tokenId' | 'narrowing'>

const endOfTime = {
  access: 'rfc6750-5.3-short-lived',
  refresh: 'rfc9700-4.14.2-inactive-expiry',
  code: 'rfc6749-4.1.2-code-short-lived',
} as const

/**
 * Explains why a token or code of this server is invalid, for the log and `lychgate explain`; undefined if the store
 * has nothing against it.
 */
export function whyInactive(
  token: Ending,
  grant: GrantOfToken | undefined,
  policy: ScopePolicy,
  now: Seconds,
): Inactivity | undefined {
  const { kind, seq, tokenId } = token
  const expiresAt = (kind === 'refresh' && seq === grant?.seq && grant.refreshExpiresAt) || token.expiresAt
  const expired = now >= expiresAt && { rule: endOfTime[kind], why: `it expired at ${expiresAt}` }
  if (grant === undefined) {
    if (expired) return { ...expired, why: `${expired.why}, and its grant is no longer stored` }
    return {
      rule: 'lychgate-grant-exists',
      why: `its grant is no longer stored; by its own times it is valid until ${token.expiresAt}`,
    }
  }
  if (grant.revokedAt !== undefined) {
    return {
      rule: grant.revokedBy ?? 'rfc7009-2.1-immediate',
      why: `its grant was revoked at ${grant.revokedAt}`,
    }
  }
  if (expired) return expired
  if (grant.revokedTokens.includes(tokenId)) {
    return { rule: 'rfc7009-2-access-revocation', why: 'it was revoked by itself' }
  }
  if (seq > grant.seq) {
    return {
      rule: 'lychgate-grant-exists',
      why: `it is number ${seq} of a grant that is at ${grant.seq}: was the database restored from a backup?`,
    }
  }
  if (kind === 'code' && grant.seq > 0) {
    return { rule: 'rfc6749-4.1.2-code-single-use', why: `it was redeemed; the grant is at ${grant.seq}` }
  }
  if (kind === 'refresh' && seq < grant.seq) {
    return {
      rule: 'rfc9700-4.14.2-reuse-revokes-family',
      why: `it was used: it is number ${seq}, and since ${grant.rotatedAt} the current one is ${grant.seq}`,
    }
  }
  const current = currentTerms(token, grant, policy)
  return isLoss(current) ? current : undefined
}

/**
 * Says that a code or refresh token has expired where its grant is no longer stored: a genuine handle has its times.
 * @throws {OAuthError} `invalid_grant`
 */
export function assertNotOver(grant: object | undefined, handle: OpenedHandle, now: Seconds): void {
  const { kind, expiresAt } = handle
  if (grant !== undefined || now < expiresAt) return
  const what = kind === 'code' ? 'code' : 'refresh token'
  const detail = { rule: endOfTime[kind], stored: expiresAt, received: now }
  throw new OAuthError('invalid_grant', `the ${what} has expired`, detail)
}

function isLive(handle: OpenedHandle, grant: GrantOfToken | undefined): grant is GrantOfToken {
  return (
    grant !== undefined &&
    handleBelongsTo(handle, grant) &&
    grant.revokedAt === undefined &&
    handle.seq <= grant.seq
  )
}
