import { parseBearer } from '../domain/bearer.ts'
import { check } from '../domain/check.ts'
import { basicChallenge, type ClientAuthentication } from '../domain/client-authentication.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Client } from '../domain/model.ts'
import { single } from '../domain/parameters.ts'
import { secretMatches } from '../domain/secret.ts'

/** Verifies a client secret, RFC 6749 §2.3.1; it is compared for an unknown client too. */
function verifySecret(client: Client | undefined, secret = '') {
  return secretMatches(secret, client?.secretHash) ? undefined : { why: 'with another secret' }
}

/** The client secret as a form field, RFC 6749 §2.3.1 and OAuth 2.1 §2.4.1. */
export const secretPost: ClientAuthentication = {
  parameter: 'client_secret',
  read: (parameters) => {
    const proof = single(parameters, 'client_secret')
    return proof === undefined ? undefined : { proof }
  },
  verify: verifySecret,
}

/** The client secret by HTTP Basic, RFC 6749 §2.3.1. Any other scheme is rejected. */
export const secretBasic: ClientAuthentication = {
  read: (_parameters, authorization, realm) => {
    if (authorization === undefined) return undefined
    if (realm.alwaysUnauthorized && parseBearer(authorization).kind !== 'absent') throw bearerRejected()
    return parseBasic(authorization)
  },
  verify: verifySecret,
}

function parseBasic(authorization: string) {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization)?.[1]
  const decoded = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString()
  const colon = decoded.indexOf(':')
  const clientId = colon < 0 ? undefined : formDecode(decoded.slice(0, colon))
  const proof = colon < 0 ? undefined : formDecode(decoded.slice(colon + 1))
  check(
    clientId !== undefined && clientId !== '' && proof !== undefined,
    'rfc6749-2.3.1-basic-form-decoding',
    'invalid_client',
    'the Authorization header is not valid HTTP Basic',
    { headers: basicChallenge, passed: 'the Authorization header is valid HTTP Basic' },
  )
  return { clientId, proof }
}

/** Rejects a bearer token at introspection (RFC 7662 §2.3 allows one) with the error of RFC 6750. */
function bearerRejected(): OAuthError {
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
