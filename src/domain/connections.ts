import { type AuditContext, auditEvent } from './audit.ts'
import { accept, type Decision, remove, removeAll, type Write } from './decision.ts'
import { canGrantLive } from './grant.ts'
import type { Consent, Grant, Seconds } from './model.ts'
import { omitUndefined } from './omit-undefined.ts'
import { recordKind } from './record.ts'

/** Remembered consent, by `consentKey`. */
export const consentKind = recordKind<Consent>('consent', {
  id: ({ userId, clientId }) => consentKey(userId, clientId),
  userId: ({ userId }) => userId,
  clientId: ({ clientId }) => clientId,
  madeAt: ({ grantedAt }) => grantedAt,
})

/** The key of remembered consent. */
export function consentKey(userId: string, clientId: string): string {
  return `${userId} ${clientId}`
}

/** Who revokes access, when, and whose grants: without a user, those of clients that act for themselves. */
export type RevocationContext = AuditContext & { readonly userId?: string | undefined }
/** The same for the grants of one user. */
export type UserRevocation = AuditContext & { readonly userId: string }

/** A client that can use a user's account, or need not ask for it again. */
export interface ConnectedClient {
  readonly clientId: string
}

/** The rule a user's own revocation follows. */
const withdrawn = 'oidc-core-16.18-user-revocation'

/**
 * Revokes one grant and every token issued from it (OpenID Connect Core §16.18). Remembered consent is deleted too, or
 * the client could get another grant silently. False if the grant is not the user's or has ended.
 */
export function endGrant(
  grant: Grant | undefined,
  { userId, ...context }: RevocationContext,
): Decision<boolean> {
  if (grant === undefined || grant.userId !== userId || !canGrantLive(grant, context.at)) return accept(false)
  const { id: grantId, clientId } = grant
  return accept(
    true,
    { op: 'revokeGrant', grantId, at: context.at, rule: withdrawn },
    ...(userId === undefined ? [] : [remove(consentKind, consentKey(userId, clientId))]),
    auditEvent('revocation', context, {
      ...omitUndefined({ userId }),
      clientId,
      grant: grantId,
      rule: withdrawn,
    }),
  )
}

/** Revokes all access of one client (OpenID Connect Core §16.18), including grants that are being inserted now. */
export function endConnection(
  { clientId }: ConnectedClient,
  { userId, ...context }: UserRevocation,
): readonly Write[] {
  return [
    { op: 'revokeGrantsOf', userId, clientId, at: context.at, rule: withdrawn },
    remove(consentKind, consentKey(userId, clientId)),
    auditEvent('revocation', context, { userId, clientId, rule: withdrawn }),
  ]
}

/**
 * Does the same for every client, with one audit event each, so that the log can be filtered by client.
 * @param rule Why, for `lychgate explain`.
 */
export function endConnections(
  connections: readonly ConnectedClient[],
  { userId, ...context }: UserRevocation,
  rule: string = withdrawn,
): readonly Write[] {
  return [
    { op: 'revokeGrantsOf', userId, at: context.at, rule },
    removeAll(consentKind, userId),
    ...connections.map(({ clientId }) => auditEvent('revocation', context, { userId, clientId, rule })),
  ]
}

/** A grant, and the name of its user if that still exists. */
export type OwnedGrant = Grant & { readonly username?: string | undefined }

/** The state of a grant in the state machine of domain/grant.ts. */
export function stateOfGrant(grant: Grant, now: Seconds): 'approved' | 'active' | 'revoked' | 'expired' {
  if (grant.revokedAt !== undefined) return 'revoked'
  if (now >= grant.expiresAt) return 'expired'
  return grant.seq === 0 ? 'approved' : 'active'
}

/** Describes a grant without its secret. Instants are seconds since the epoch. */
export function describeGrant(grant: OwnedGrant, now: Seconds) {
  const { id, userId, username, clientId, scope, resource, redirectUri, approvedAt, expiresAt } = grant
  const { exchangedFrom } = grant
  return {
    grant: id,
    state: stateOfGrant(grant, now),
    sub: userId,
    ...(username !== undefined && { username }),
    client_id: clientId,
    ...(exchangedFrom && {
      exchanged_from: { grant: exchangedFrom.grantId, client_id: exchangedFrom.clientId },
    }),
    scope: scope.join(' '),
    resource,
    // Empty for a grant that no redirect was part of: of a device, or of a client that acts for itself.
    ...(redirectUri !== '' && { redirect_uri: redirectUri }),
    approved_at: approvedAt,
    authenticated_at: grant.authenticatedAt,
    ...(grant.rotatedAt !== undefined && { refreshed_at: grant.rotatedAt }),
    ...(grant.refreshExpiresAt !== undefined && { refresh_token_expires_at: grant.refreshExpiresAt }),
    expires_at: expiresAt,
    ...(grant.revokedAt !== undefined && { revoked_at: grant.revokedAt, revoked_by: grant.revokedBy }),
  }
}
