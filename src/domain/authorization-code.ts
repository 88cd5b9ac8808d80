import { assertNotOver } from './access-token.ts'
import { check } from './check.ts'
import { requireCurrent, type ScopePolicy } from './current-grant.ts'
import { type Decision, withWrites } from './decision.ts'
import { type GrantLifetimes, redeemGrant } from './grant.ts'
import { handleBelongsTo, type OpenedHandle } from './handle.ts'
import type { Client, Grant, Seconds } from './model.ts'
import { verifyCodeVerifier } from './pkce.ts'
import { learnFromExchange } from './pkce-auto.ts'
import { type AccessTokenTerms, accessTokenTerms } from './resource.ts'

/** A token request of grant type `authorization_code`, RFC 6749 §4.1.3. */
export interface CodeRedemption {
  readonly handle: OpenedHandle
  readonly client: Client
  readonly redirectUri: string | undefined
  readonly codeVerifier: string | undefined
  readonly resource: readonly string[]
}

/** A grant and what the access token issued from it now may do. */
export interface Issued {
  readonly grant: Grant
  readonly terms: AccessTokenTerms
}

/**
 * Redeems an authorization code, RFC 6749 §4.1.3 and RFC 7636 §4.6. A second, otherwise valid use revokes the grant,
 * RFC 6749 §4.1.2; a failed one leaves the code as it was.
 * @throws {OAuthError} `invalid_grant`, `invalid_target` or `invalid_request`, for an error that leaves the grant as
 * it was.
 */
export function redeemCode(
  grant: Grant | undefined,
  redemption: CodeRedemption,
  policy: ScopePolicy,
  lifetimes: GrantLifetimes,
  now: Seconds,
): Decision<Issued> {
  const { handle, client, redirectUri, codeVerifier } = redemption
  assertNotOver(grant, handle, now)
  check(
    grant !== undefined && handleBelongsTo(handle, grant),
    'rfc6749-4.1.3-code-valid',
    'invalid_grant',
    'the code is unknown',
    { passed: 'the code belongs to a grant' },
  )
  check(
    grant.clientId === client.id,
    'rfc6749-4.1.3-code-issued-to-client',
    'invalid_grant',
    'the code was issued to another client',
    { stored: grant.clientId, received: client.id, passed: 'the code was issued to this client' },
  )
  assertSameRedirectUri(grant, redirectUri)
  verifyCodeVerifier(codeVerifier, grant.codeChallenge)
  const current = requireCurrent(grant, client, policy)
  const terms = accessTokenTerms(current, current.scope, redemption.resource, policy.resources, client)
  const issue = {
    accessTokenSeconds: terms.seconds,
    refreshable: client.grantTypes.includes('refresh_token'),
  }
  const decision = redeemGrant(current, issue, lifetimes, now)
  if ('rejection' in decision) return decision
  const learned = learnFromExchange(client, grant.codeChallenge !== undefined, now)
  return withWrites({ ...decision, result: { grant: decision.result, terms } }, ...learned)
}

function assertSameRedirectUri(grant: Grant, redirectUri: string | undefined): void {
  const isSame = redirectUri === undefined ? !grant.redirectUriSent : redirectUri === grant.redirectUri
  check(
    isSame,
    redirectUri === undefined && !isSame
      ? 'rfc6749-4.1.3-redirect-uri-required'
      : 'rfc6749-4.1.3-redirect-uri-identical',
    'invalid_grant',
    'redirect_uri differs from the one of the authorization request',
    {
      stored: grant.redirectUri,
      received: redirectUri,
      passed: 'redirect_uri is that of the authorization request',
    },
  )
}
