import { keysOf } from '../../../clients/keys.ts'
import { type JsonObject, rejection } from '../../../clients/members.ts'
import { algorithmNamed, algorithmOf } from '../../../domain/key-set.ts'

/**
 * Checks that a client can authenticate: it has keys, or names where they are, and one of them fits its algorithm; or
 * it trusts an issuer.
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
