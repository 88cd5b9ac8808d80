import type { Grant, Seconds } from '../../domain/model.ts'

/** Where a grant stands in the state machine of grant.ts. */
export function stateOf(grant: Grant, now: Seconds): 'approved' | 'active' | 'revoked' | 'expired' {
  if (grant.revokedAt !== undefined) return 'revoked'
  if (now >= grant.expiresAt) return 'expired'
  return grant.seq === 0 ? 'approved' : 'active'
}

/** A grant without its secret; instants are seconds since the epoch. */
export function describeGrant(grant: Grant, username: string | undefined, now: Seconds) {
  const { id, userId, clientId, scope, resource, redirectUri, approvedAt, expiresAt } = grant
  return {
    grant: id,
    state: stateOf(grant, now),
    sub: userId,
    ...(username !== undefined && { username }),
    client_id: clientId,
    scope: scope.join(' '),
    resource,
    redirect_uri: redirectUri,
    approved_at: approvedAt,
    authenticated_at: grant.authenticatedAt,
    ...(grant.rotatedAt !== undefined && { refreshed_at: grant.rotatedAt }),
    ...(grant.refreshExpiresAt !== undefined && { refresh_token_expires_at: grant.refreshExpiresAt }),
    expires_at: expiresAt,
    ...(grant.revokedAt !== undefined && { revoked_at: grant.revokedAt, revoked_by: grant.revokedBy }),
  }
}
