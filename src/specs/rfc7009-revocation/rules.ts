import { check, recordCheck } from '../../domain/check.ts'
import { accept, type Decision } from '../../domain/decision.ts'
import { revokeGrant } from '../../domain/grant.ts'
import { handleBelongsTo, type OpenedHandle } from '../../domain/handle.ts'
import { endingOf, grantIdOfJwt } from '../../domain/jwt-access-token.ts'
import type { Client, GrantOfToken, Seconds } from '../../domain/model.ts'

/**
 * Revokes a token (RFC 7009 §2.1): a refresh token, also a rotated one, revokes the whole grant; an access token only
 * itself. An unknown or invalid token is no error (RFC 7009 §2.2).
 * @throws {OAuthError} `invalid_grant` for a token issued to another client, which stays valid.
 */
export function revokeToken(
  handle: OpenedHandle,
  grant: GrantOfToken | undefined,
  client: Client,
  now: Seconds,
): Decision<void> {
  if (grant === undefined || !handleBelongsTo(handle, grant)) {
    recordCheck('rfc7009-2.2-unknown-token-200', 'an unknown token is no error')
    return accept(undefined)
  }
  assertIssuedTo(grant, client.id)
  return handle.kind === 'access'
    ? revokeOne(grant, handle.tokenId, handle.expiresAt, now)
    : revokeGrant(grant, 'rfc7009-2.1-refresh-cascades', now)
}

/**
 * The same for a JWT access token with a verified signature: introspection rejects it from here on, and resources
 * that verify it alone do at its end.
 * @throws {OAuthError} `invalid_grant` for a token issued to another client.
 */
export function revokeJwt(
  claims: Readonly<Record<string, unknown>>,
  grant: GrantOfToken | undefined,
  clientId: string,
  now: Seconds,
): Decision<void> {
  if (grant === undefined) return accept(undefined)
  assertIssuedTo(grant, clientId)
  if (grant.revokedAt !== undefined || grantIdOfJwt(claims) !== grant.id) return accept(undefined)
  const { tokenId, expiresAt } = endingOf(claims)
  return revokeOne(grant, tokenId, expiresAt, now)
}

function revokeOne(grant: GrantOfToken, tokenId: string, expiresAt: Seconds, now: Seconds): Decision<void> {
  if (now >= expiresAt || grant.revokedTokens.includes(tokenId)) return accept(undefined)
  return accept(undefined, { op: 'revokeAccessToken', grantId: grant.id, tokenId, expiresAt })
}

function assertIssuedTo(grant: GrantOfToken, clientId: string): void {
  check(
    grant.clientId === clientId,
    'rfc7009-2.1-issued-to-client',
    'invalid_grant',
    'the token was issued to another client',
    { stored: grant.clientId, received: clientId, passed: 'the token was issued to this client' },
  )
}
