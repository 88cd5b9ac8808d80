import { assertNotOver } from './access-token.ts'
import type { Issued } from './authorization-code.ts'
import { check, recordCheck } from './check.ts'
import { currentlyAllowed, filtered, requireCurrent, type ScopePolicy } from './current-grant.ts'
import type { Decision } from './decision.ts'
import { type GrantRules, rotateGrant } from './grant.ts'
import { type Handle, handleBelongsTo, type OpenedHandle } from './handle.ts'
import type { Client, Grant, Scope, Seconds } from './model.ts'
import { accessTokenTerms } from './resource.ts'
import { parseScope } from './scope.ts'

/** A token request of grant type `refresh_token`, RFC 6749 §6. */
export interface RefreshRequest {
  readonly handle: OpenedHandle
  readonly client: Client
  readonly scope: string | undefined
  readonly resource: readonly string[]
}

/**
 * Uses a refresh token, RFC 6749 §6, which rotates it unless its client keeps it, RFC 9700 §4.14.2. Everything is
 * validated before anything changes; reuse of a rotated token revokes the grant.
 * @throws {OAuthError} `invalid_grant`, `invalid_scope` or `invalid_target`, with the token still usable.
 */
export function refresh(
  grant: Grant | undefined,
  request: RefreshRequest,
  policy: ScopePolicy,
  rules: GrantRules,
  now: Seconds,
): Decision<Issued> {
  const { handle, client } = request
  assertNotOver(grant, handle, now)
  check(
    grant !== undefined && handleBelongsTo(handle, grant),
    'rfc6749-6-invalid-refresh',
    'invalid_grant',
    'the refresh token is unknown',
    { passed: 'the refresh token belongs to a grant' },
  )
  check(
    grant.clientId === client.id,
    'rfc6749-6-bound-to-client',
    'invalid_grant',
    'the refresh token was issued to another client',
    { stored: grant.clientId, received: client.id, passed: 'the refresh token was issued to this client' },
  )
  const current = requireCurrent(grant, client, policy)
  const scope = narrowedScope(grant, current.scope, request.scope)
  const terms = accessTokenTerms(current, scope, request.resource, policy.resources, client)
  const issue = { accessTokenSeconds: terms.seconds, refreshable: true }
  const decision = rotateGrant(current, handle.seq, issue, rules, now)
  return 'rejection' in decision
    ? decision
    : { result: { grant: decision.result, terms }, writes: decision.writes }
}

/**
 * Returns the contents of the current refresh token of a grant. One that its client keeps has the same contents after
 * each use, so it names the end of the grant; when it expires is in the row.
 */
export function refreshHandle(
  grant: Grant,
  { keepsRefreshToken }: Pick<GrantRules, 'keepsRefreshToken'>,
): Handle {
  const { id: grantId, seq, rotatedAt = 0, refreshExpiresAt = 0, absoluteExpiresAt } = grant
  const expiresAt = keepsRefreshToken ? absoluteExpiresAt : refreshExpiresAt
  return { kind: 'refresh', grantId, seq, issuedAt: rotatedAt, expiresAt }
}

/** Returns the requested part of what is left of the grant; what was taken is left out, without an error. */
function narrowedScope(grant: Grant, left: Scope, requested: string | undefined): Scope {
  if (requested === undefined) {
    recordCheck('rfc6749-6-scope-omitted-original', 'no scope: that of the grant', left)
    return left
  }
  const scope = parseScope(requested)
  const beyond = scope.find((name) => !grant.scope.includes(name))
  check(
    beyond === undefined,
    beyond === undefined ? 'rfc6749-6-scope-narrow' : 'rfc6749-6-scope-exceed',
    'invalid_scope',
    'scope goes beyond what the user granted',
    { stored: grant.scope, received: beyond ?? scope, passed: 'scope is within what the user granted' },
  )
  const current = filtered(scope, (name) => left.includes(name))
  check(
    current.length > 0 || scope.length === 0,
    currentlyAllowed,
    'invalid_scope',
    'scope names nothing that is open to this client now (lychgate client set --scope, or scopes in the configuration)',
    { stored: left, received: scope, passed: 'the client may have the scope now' },
  )
  return current
}
