import { handleBelongsTo, type OpenedHandle } from './handle.ts'
import type { Grant, Scope, Seconds } from './model.ts'
import { type Resources, scopeAt } from './resource.ts'

/** What a live token says, RFC 7662 §2.2. */
export interface TokenFacts {
  readonly kind: 'access' | 'refresh'
  readonly grant: Grant
  readonly scope: Scope
  readonly resource: readonly string[]
  readonly issuedAt: Seconds
  readonly expiresAt: Seconds
  readonly tokenId: string
}

/** The facts of an access token that lives now, RFC 6750 §3.1; undefined for one that is expired, revoked or foreign. */
export function verifyAccessToken(
  handle: OpenedHandle,
  grant: Grant | undefined,
  resources: Resources,
  now: Seconds,
): TokenFacts | undefined {
  if (handle.kind !== 'access' || !isLive(handle, grant, now)) return undefined
  if (grant.revokedTokens.includes(handle.tokenId)) return undefined
  return {
    kind: 'access',
    grant,
    // A token that is not narrowed carries nothing: what it may do is in the row, cut to what its resources understand.
    scope: handle.narrowing?.scope ?? scopeAt(grant.scope, grant.resource, resources),
    resource: handle.narrowing?.resource ?? grant.resource,
    issuedAt: handle.issuedAt,
    expiresAt: handle.expiresAt,
    tokenId: handle.tokenId,
  }
}

/** The facts of a refresh token that would be accepted now. A rotated one is not live, whatever the reuse window says. */
export function verifyRefreshToken(
  handle: OpenedHandle,
  grant: Grant | undefined,
  now: Seconds,
): TokenFacts | undefined {
  if (handle.kind !== 'refresh' || !isLive(handle, grant, now) || handle.seq !== grant.seq) return undefined
  return {
    kind: 'refresh',
    grant,
    scope: grant.scope,
    resource: grant.resource,
    issuedAt: handle.issuedAt,
    expiresAt: handle.expiresAt,
    tokenId: handle.tokenId,
  }
}

/** Why a token of ours is not alive, in words for the log; asked once it is clear that it is not. */
export function whyNotAlive(
  { expiresAt, tokenId }: { readonly expiresAt: Seconds; readonly tokenId: string },
  grant: Grant | undefined,
  now: Seconds,
): string {
  if (grant === undefined) return 'its grant is gone'
  if (grant.revokedAt !== undefined) return `its grant was revoked at ${grant.revokedAt}`
  if (now >= expiresAt) return `it expired at ${expiresAt}`
  if (grant.revokedTokens.includes(tokenId)) return 'it was revoked by itself'
  return 'its grant does not know it'
}

function isLive(handle: OpenedHandle, grant: Grant | undefined, now: Seconds): grant is Grant {
  return (
    grant !== undefined &&
    handleBelongsTo(handle, grant) &&
    grant.revokedAt === undefined &&
    handle.seq <= grant.seq &&
    now < handle.expiresAt
  )
}
