import { check } from '../../domain/check.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Client } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { redirectUriMatches } from '../../domain/redirect-uri.ts'

/** A request to sign out, OpenID Connect RP-Initiated Logout §2. Only what is valid of it is here. */
export interface LogoutRequest {
  /** The user the client's ID Token is about. */
  readonly sub?: string
  readonly client?: Client
  /** Where to go afterwards: registered by the client. */
  readonly redirectUri?: string
  readonly state?: string
  /** Whether an ID Token identifies the client. Otherwise the user has to agree before any redirect. */
  readonly isHinted: boolean
  /** Why a part of the request is not used. */
  readonly fault?: OAuthError
}

/**
 * Validates a request to sign out (OpenID Connect RP-Initiated Logout §2, §3). What is not valid is not used, and its
 * error is returned: it costs the redirect, and never the sign-out (§4). The user is redirected only to a URI that the
 * client registered (RFC 6749 §10.15).
 * @param claims The claims of the `id_token_hint` once its signature and issuer were verified; expiry does not count.
 * @throws {OAuthError} `invalid_request` for a repeated parameter.
 */
export function parseLogoutRequest(
  parameters: Parameters,
  claims: Readonly<Record<string, unknown>> | undefined,
  client: Client | undefined,
): LogoutRequest {
  const [hint, clientId] = [single(parameters, 'id_token_hint'), single(parameters, 'client_id')]
  const redirectUri = single(parameters, 'post_logout_redirect_uri')
  const state = single(parameters, 'state')
  const unusable = faultOf(() => assertIssued(hint, claims))
  const mismatch = faultOf(() => assertSameClient(clientId, claims))
  const [hinted, named] = mismatch === undefined ? [claims, client] : []
  const unregistered =
    redirectUri === undefined ? undefined : faultOf(() => assertRegistered(redirectUri, named))
  const fault = unusable ?? mismatch ?? unregistered
  return {
    ...(typeof hinted?.['sub'] === 'string' && { sub: hinted['sub'] }),
    ...(named && { client: named }),
    ...(redirectUri !== undefined && unregistered === undefined && { redirectUri }),
    ...(state !== undefined && { state }),
    isHinted: hinted !== undefined,
    ...(fault && { fault }),
  }
}

function faultOf(assert: () => void): OAuthError | undefined {
  try {
    assert()
    return undefined
  } catch (error) {
    if (error instanceof OAuthError) return error
    throw error
  }
}

function assertIssued(hint: string | undefined, claims: object | undefined): void {
  check(
    hint === undefined || claims !== undefined,
    'oidc-rpl-2-hint-validated',
    'invalid_request',
    'id_token_hint is not an ID Token of this server',
    { passed: 'id_token_hint is absent or an ID Token of this server' },
  )
}

function assertSameClient(
  clientId: string | undefined,
  claims: Readonly<Record<string, unknown>> | undefined,
): void {
  check(
    clientId === undefined || claims === undefined || claims['aud'] === clientId,
    'oidc-rpl-2-client-id-match',
    'invalid_request',
    'client_id is not the client of id_token_hint',
    { stored: String(claims?.['aud']), received: clientId, passed: 'client_id agrees with id_token_hint' },
  )
}

function assertRegistered(redirectUri: string, client: Client | undefined): void {
  check(
    client !== undefined,
    'oidc-rpl-3-no-hint-no-redirect',
    'invalid_request',
    'post_logout_redirect_uri needs the client_id of a known client, or an id_token_hint',
    { received: redirectUri, passed: 'client_id or id_token_hint names the client' },
  )
  const anyPort = client.applicationType === 'native'
  check(
    client.postLogoutRedirectUris.some((registered) =>
      redirectUriMatches(registered, redirectUri, { anyPort }),
    ),
    'oidc-rpl-3-registered-redirect',
    'invalid_request',
    'post_logout_redirect_uri is not registered for this client (lychgate client set --post-logout-redirect-uri)',
    {
      stored: client.postLogoutRedirectUris,
      received: redirectUri,
      passed: 'post_logout_redirect_uri is registered',
    },
  )
}
