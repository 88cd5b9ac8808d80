import { check } from '../domain/check.ts'
import type { Client } from '../domain/model.ts'
import { type Parameters, single } from '../domain/parameters.ts'
import { redirectUriMatches } from '../domain/redirect-uri.ts'

/** A request to sign out, OpenID Connect RP-Initiated Logout §2. */
export interface LogoutRequest {
  /** The user the client's ID Token is about. */
  readonly sub?: string
  readonly client?: Client
  /** Where to go afterwards, proven. */
  readonly redirectUri?: string
  readonly state?: string
}

/**
 * Validates a request to sign out (OpenID Connect RP-Initiated Logout §2, §3). The user is redirected only to a URI
 * that the client registered, and only if it sent an ID Token of this server (RFC 6749 §10.15).
 * @param hinted The claims of the `id_token_hint` once its signature and issuer were verified; expiry does not count.
 * @throws {OAuthError} `invalid_request`
 */
export function parseLogoutRequest(
  parameters: Parameters,
  hinted: Readonly<Record<string, unknown>> | undefined,
  client: Client | undefined,
): LogoutRequest {
  check(
    single(parameters, 'id_token_hint') === undefined || hinted !== undefined,
    'oidc-rpl-2-hint-validated',
    'invalid_request',
    'id_token_hint is not an ID Token of this server',
    { passed: 'id_token_hint is absent or an ID Token of this server' },
  )
  const clientId = single(parameters, 'client_id')
  check(
    clientId === undefined || hinted === undefined || hinted['aud'] === clientId,
    'oidc-rpl-2-client-id-match',
    'invalid_request',
    'client_id is not the client of id_token_hint',
    { stored: String(hinted?.['aud']), received: clientId, passed: 'client_id agrees with id_token_hint' },
  )
  const redirectUri = single(parameters, 'post_logout_redirect_uri')
  const state = single(parameters, 'state')
  if (redirectUri !== undefined) assertRegistered(redirectUri, hinted, client)
  return {
    ...(typeof hinted?.['sub'] === 'string' && { sub: hinted['sub'] }),
    ...(client && { client }),
    ...(redirectUri !== undefined && { redirectUri }),
    ...(state !== undefined && { state }),
  }
}

function assertRegistered(redirectUri: string, hinted: object | undefined, client: Client | undefined): void {
  check(
    hinted !== undefined && client !== undefined,
    'oidc-rpl-3-no-hint-no-redirect',
    'invalid_request',
    'post_logout_redirect_uri needs an id_token_hint',
    { received: redirectUri, passed: 'id_token_hint names the client' },
  )
  const anyPort = client.applicationType === 'native'
  check(
    client.postLogoutRedirectUris.some((registered) =>
      redirectUriMatches(registered, redirectUri, { anyPort }),
    ),
    'oidc-rpl-3-registered-redirect',
    'invalid_request',
    'post_logout_redirect_uri is not registered for this client',
    {
      stored: client.postLogoutRedirectUris,
      received: redirectUri,
      passed: 'post_logout_redirect_uri is registered',
    },
  )
}
