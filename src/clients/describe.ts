import type { Client } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { Known } from './integration.ts'
import type { ClientDeclarations } from './members.ts'
import { clientMetadata } from './metadata.ts'

/**
 * Describes a client to an operator with RFC 7591 §3.2.1 members and those that only an operator sets; never its
 * secret.
 */
export function describeClient(client: Client, { scopes, openScopes, declared }: Known) {
  return {
    ...clientMetadata(client, openScopes ?? scopes, scopes),
    origin: client.origin,
    ...(client.usedAt > client.issuedAt && { last_used_at: client.usedAt }),
    ...(client.anySecretMethod && { token_endpoint_auth_methods_accepted: secretMethods(declared) }),
    pkce: client.pkceOptional ? 'optional' : 'required',
    consent: client.consent,
    ...(client.introspects.length > 0 && { introspects: client.introspects }),
    ...omitUndefined({ resources: client.resources, locked_at: client.lockedAt }),
    ...(client.previousSecret !== undefined && {
      ...omitUndefined({ secret_used_at: client.secretUsedAt }),
      previous_secret_expires_at: client.previousSecret.expiresAt,
      ...omitUndefined({ previous_secret_used_at: client.previousSecret.usedAt }),
    }),
  }
}

/** Names how a client authenticates at the token endpoint, RFC 7591 §2. */
export function authenticationOf(
  { anySecretMethod, authenticationMethod }: Client,
  declared: ClientDeclarations,
): string {
  return anySecretMethod ? secretMethods(declared).join(' or ') : authenticationMethod
}

function secretMethods({ clientAuthentication }: ClientDeclarations): readonly string[] {
  return Object.entries(clientAuthentication)
    .flatMap(([name, { usesSecret }]) => (usesSecret ? [name] : []))
    .reverse()
}
