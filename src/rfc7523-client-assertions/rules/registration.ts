import { type JsonObject, readUri, rejection } from '../../clients/members.ts'
import { isObject } from '../../domain/is-object.ts'
import {
  algorithmNamed,
  algorithmOf,
  KeySetFault,
  type PublicKey,
  parseKeySet,
} from '../../domain/key-set.ts'
import { isLoopbackUri } from '../../domain/redirect-uri.ts'

/** Reads `jwks`, RFC 7591 §2: public keys only, and not together with `jwks_uri`. */
export function readKeys(
  members: JsonObject,
  name: string,
): { readonly keys: readonly PublicKey[] } | undefined {
  const value = members[name] ?? ''
  if (value === '') return undefined
  if ((members['jwks_uri'] ?? '') !== '')
    throw rejection('jwks and jwks_uri exclude each other', { rule: 'rfc7591-2-jwks-exclusive' })
  try {
    return { keys: parseKeySet(value) }
  } catch (error) {
    if (error instanceof KeySetFault) throw rejection(`jwks ${error.message}`)
    throw error
  }
}

/** Reads `jwks_uri`, RFC 7591 §2: https, or loopback for development. */
export function readKeysUri(members: JsonObject, name: string): string | undefined {
  const uri = readUri(members, name)
  if (uri === undefined || /^https:/i.test(uri) || isLoopbackUri(uri)) return uri
  throw rejection(`${name} must be an https URI`, { rule: 'rfc7591-2-uri-members-valid' })
}

/**
 * Checks that a client can authenticate: it has keys, or names where they are, and one of them fits its algorithm; or it
 * trusts an issuer.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function assertCanSign(extra: JsonObject): void {
  const { jwks, jwks_uri: uri, trusted_issuers: trusted, token_endpoint_auth_signing_alg: algorithm } = extra
  if (uri !== undefined || (jwks === undefined && trusted !== undefined)) return
  if (jwks === undefined)
    throw rejection('private_key_jwt needs jwks, jwks_uri or trusted_issuers', {
      rule: 'rfc7523-2.2-registration',
    })
  const registered = algorithmNamed(algorithm)
  if (keysOf(jwks).some((key) => algorithmOf(key, registered) !== undefined)) return
  throw rejection('jwks has no key for token_endpoint_auth_signing_alg', { rule: 'rfc7523-2.2-registration' })
}

/** Returns the keys that are registered by value. */
export function keysOf(jwks: unknown): readonly PublicKey[] {
  // `as`: readKeys alone writes this member.
  return isObject(jwks) ? (jwks['keys'] as readonly PublicKey[]) : []
}
