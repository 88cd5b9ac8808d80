import { parseBearer } from './bearer.ts'
import { check, recordCheck } from './check.ts'
import { OAuthError } from './errors.ts'
import type { Client, ClientAuthenticationMethod } from './model.ts'
import { type Parameters, single } from './parameters.ts'
import { secretMatches } from './secret.ts'

/** The credentials of a request, before they are verified. */
export interface ClientCredentials {
  readonly method: ClientAuthenticationMethod
  readonly clientId: string
  readonly clientSecret?: string
}

/** The status of a failed authentication: always 401 at introspection (RFC 7662 §2.3). */
export interface AuthenticationRealm {
  readonly alwaysUnauthorized: boolean
}

const basicChallenge = { 'www-authenticate': 'Basic realm="lychgate"' }

/**
 * Reads the credentials of a request, RFC 6749 §2.3.1: HTTP Basic, or form fields (OAuth 2.1 §2.4.1), never both,
 * never the query. A public client sends its `client_id` (RFC 6749 §3.2.1, RFC 7009 §5).
 * @throws {OAuthError} `invalid_request` for two methods at once or no client_id, `invalid_client` for a broken
 * header.
 */
export function parseClientCredentials(
  authorization: string | undefined,
  parameters: Parameters,
  realm: AuthenticationRealm,
): ClientCredentials {
  const clientId = single(parameters, 'client_id')
  const clientSecret = single(parameters, 'client_secret')
  if (authorization !== undefined) {
    if (realm.alwaysUnauthorized && parseBearer(authorization).kind !== 'absent') throw bearerRefused()
    const basic = parseBasic(authorization)
    check(
      clientSecret === undefined,
      'rfc6749-2.3-one-auth-method',
      'invalid_request',
      'the client authenticates by header and by client_secret at once',
      { passed: 'the client authenticates in one way' },
    )
    check(
      clientId === undefined || clientId === basic.clientId,
      'rfc6749-2.3-one-auth-method',
      'invalid_request',
      'client_id differs from the one in the Authorization header',
      {
        stored: basic.clientId,
        received: clientId,
        passed: 'client_id agrees with the Authorization header',
      },
    )
    return basic
  }
  check(
    clientId !== undefined,
    'rfc6749-3.2.1-public-sends-client-id',
    realm.alwaysUnauthorized ? 'invalid_client' : 'invalid_request',
    'client_id is missing',
    { passed: 'client_id is present', ...(realm.alwaysUnauthorized && { headers: basicChallenge }) },
  )
  if (clientSecret === undefined) return { method: 'none', clientId }
  return { method: 'client_secret_post', clientId, clientSecret }
}

/**
 * Verifies the credentials (RFC 6749 §2.3): only the registered method counts, or any that sends the secret
 * where an operator registered none (mod_auth_openidc and zitadel/oidc mix the two), and a client_id alone is no
 * credential, RFC 6749 §2.2. Credentials are checked for every grant type (RFC 6749 §3.2.1). An unknown client, a
 * wrong secret and a wrong method get the same error.
 * @throws {OAuthError} `invalid_client`
 */
export function authenticateClient(
  client: Client | undefined,
  credentials: ClientCredentials,
  realm: AuthenticationRealm,
): Client {
  const { method, clientSecret } = credentials
  // Compare also for an unknown client, so that the time taken does not reveal it.
  const secretIsRight = clientSecret !== undefined && secretMatches(clientSecret, client?.secretHash)
  const proven = client?.authenticationMethod === 'none' ? method === 'none' : secretIsRight
  const isMethod = client !== undefined && isRegisteredMethod(client, method)
  if (client !== undefined && isMethod && proven) {
    recordCheck(
      method === 'none'
        ? 'rfc6749-3.2.1-public-sends-client-id'
        : 'rfc6749-3.2.1-confidential-must-authenticate',
      'the client authenticates as it registered',
      client.authenticationMethod,
      method,
    )
    return client
  }
  const byHeader = method === 'client_secret_basic'
  const isWrongMethod = client !== undefined && !isMethod
  throw new OAuthError('invalid_client', 'client authentication failed', {
    rule: isWrongMethod ? 'oidc-core-9-registered-method-enforced' : 'rfc6749-5.2-invalid-client-400-or-401',
    // The response does not distinguish these; the log does.
    stored: client?.authenticationMethod ?? 'no client with this client_id',
    received: isWrongMethod || client === undefined ? method : `${method}, with another secret`,
    // RFC 6749 §5.2: a 401 obliges to a challenge, and clients read any challenge at the token endpoint as a response
    // to theirs.
    status: byHeader || realm.alwaysUnauthorized ? 401 : 400,
    ...((byHeader || realm.alwaysUnauthorized) && { headers: basicChallenge }),
  })
}

function isRegisteredMethod(client: Client, method: ClientCredentials['method']): boolean {
  return client.authenticationMethod === method || (client.anySecretMethod === true && method !== 'none')
}

function parseBasic(authorization: string): ClientCredentials & { readonly clientSecret: string } {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization)?.[1]
  const decoded = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString()
  const colon = decoded.indexOf(':')
  const clientId = colon < 0 ? undefined : formDecode(decoded.slice(0, colon))
  const clientSecret = colon < 0 ? undefined : formDecode(decoded.slice(colon + 1))
  check(
    clientId !== undefined && clientId !== '' && clientSecret !== undefined,
    'rfc6749-2.3.1-basic-form-decoding',
    'invalid_client',
    'the Authorization header is not valid HTTP Basic',
    { headers: basicChallenge, passed: 'the Authorization header is valid HTTP Basic' },
  )
  return { method: 'client_secret_basic', clientId, clientSecret }
}

/** Rejects a bearer token at introspection (RFC 7662 §2.3 allows one) with the error of RFC 6750. */
function bearerRefused(): OAuthError {
  return new OAuthError('invalid_token', 'no access token authorizes this call', {
    rule: 'rfc7662-2.3-bad-bearer-401',
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  })
}

function formDecode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    // No credential has it, and PostgreSQL has no text with it.
    return decoded.includes('\0') ? undefined : decoded
  } catch {
    return undefined
  }
}
