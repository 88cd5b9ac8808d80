import { isSecretUseDue, noteSecretUse, type SecretName } from '../../clients/use.ts'
import { parseBearer } from '../../domain/bearer.ts'
import { check } from '../../domain/check.ts'
import { basicChallenge, type ClientAuthentication } from '../../domain/client-authentication.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Client, Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import { secretMatches } from '../../domain/secret.ts'
import type { Store } from '../../storage/store.ts'
import type { Clock } from '../../system/system.ts'

/**
 * The two methods that send the client secret. Each compares it for an unknown client too, RFC 6749 §2.3.1, and
 * accepts the previous secret of a client until its end.
 */
export function secretMethods({
  store,
  clock,
}: {
  readonly store: Pick<Store, 'transact'>
  readonly clock: Clock
}) {
  const verify: ClientAuthentication['verify'] = (client, secret = '') => {
    const now = clock()
    const name = secretMatching(client, secret, now)
    if (name === undefined) return { why: 'with another secret' }
    if (client === undefined || !isSecretUseDue(client, name, now)) return undefined
    return store.transact('client', client.id, (found) => noteSecretUse(found, name, now))
  }
  return { post: { ...secretPost, verify }, basic: { ...secretBasic, verify } }
}

function secretMatching(client: Client | undefined, secret: string, now: Seconds): SecretName | undefined {
  if (secretMatches(secret, client?.secretHash)) return 'current'
  const { previousSecret: previous } = client ?? {}
  if (previous === undefined || now >= previous.expiresAt) return undefined
  return secretMatches(secret, previous.hash) ? 'previous' : undefined
}

/** Reads the client secret from a form field, RFC 6749 §2.3.1 and OAuth 2.1 §2.4.1. */
const secretPost: Omit<ClientAuthentication, 'verify'> = {
  parameter: 'client_secret',
  read: (parameters) => {
    const proof = single(parameters, 'client_secret')
    return proof === undefined ? undefined : { proof }
  },
}

/** Reads the client secret from HTTP Basic, RFC 6749 §2.3.1. Any other scheme is rejected. */
const secretBasic: Omit<ClientAuthentication, 'verify'> = {
  read: (_parameters, authorization, realm) => {
    if (authorization === undefined) return undefined
    if (realm.alwaysUnauthorized && parseBearer(authorization).kind !== 'absent') throw bearerRejected()
    return parseBasic(authorization)
  },
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
