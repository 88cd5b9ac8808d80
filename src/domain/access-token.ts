import type { Confirmation } from './confirmation.ts'
import { handleBelongsTo, type OpenedHandle } from './handle.ts'
import type { GrantOfToken, Scope, Seconds } from './model.ts'
import { type Resources, scopeAt } from './resource.ts'

/** The facts of a valid token (RFC 7662 §2.2). */
export interface TokenFacts {
  readonly kind: 'access' | 'refresh'
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
  resources: Resources,
  now: Seconds,
): TokenFacts | undefined {
  if (handle.kind !== 'access' || !isLive(handle, grant) || now >= handle.expiresAt) return undefined
  if (grant.revokedTokens.includes(handle.tokenId)) return undefined
  return {
    kind: 'access',
    grant,
    // A token that was not narrowed carries no scope: it is in the row, limited to what its resources understand.
    scope: handle.narrowing?.scope ?? scopeAt(grant.scope, grant.resource, resources),
    resource: handle.narrowing?.resource ?? grant.resource,
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
  now: Seconds,
): TokenFacts | undefined {
  if (handle.kind !== 'refresh' || !isLive(handle, grant) || handle.seq !== grant.seq) return undefined
  const { refreshExpiresAt: expiresAt = 0 } = grant
  if (now >= expiresAt) return undefined
  return {
    kind: 'refresh',
    grant,
    scope: grant.scope,
    resource: grant.resource,
    issuedAt: handle.issuedAt,
    expiresAt,
    tokenId: handle.tokenId,
    ...(handle.confirmation && { confirmation: handle.confirmation }),
  }
}

/** Why a token or code is no longer valid: the rule, and what the store knows. */
export interface Inactivity {
  readonly rule: string
  readonly why: string
}

/** The parts of a token or code that decide its expiry: an opened handle, or the claims of a JWT. */
export type Ending = Pick<OpenedHandle, 'kind' | 'seq' | 'expiresAt' | 'tokenId'>

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
  now: Seconds,
): Inactivity | undefined {
  const { kind, seq, tokenId } = token
  const expiresAt = (kind === 'refresh' && seq === grant?.seq && grant.refreshExpiresAt) || token.expiresAt
  const expired = now >= expiresAt && { rule: endOfTime[kind], why: `it expired at ${expiresAt}` }
  if (grant === undefined) {
    const gone = { rule: 'lychgate-grant-exists', why: 'its client or its user was removed' }
    return expired ? { ...expired, why: `${expired.why}, and its grant is gone` } : gone
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
  return undefined
}

function isLive(handle: OpenedHandle, grant: GrantOfToken | undefined): grant is GrantOfToken {
  return (
    grant !== undefined &&
    handleBelongsTo(handle, grant) &&
    grant.revokedAt === undefined &&
    handle.seq <= grant.seq
  )
}
