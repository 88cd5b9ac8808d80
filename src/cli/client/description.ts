import { clientMetadata } from '../../clients/metadata.ts'
import type { Config } from '../../config/schema.ts'
import { type Client, clientAuthenticationMethods } from '../../domain/model.ts'
import { withOfflineAccess } from '../../domain/scope-catalogue.ts'

/** RFC 7591 §3.2.1 members of a client, and those that only an operator sets; never its secret. */
export function describeClient(client: Client, config: Pick<Config, 'scopes'>) {
  const metadata = clientMetadata(
    client,
    withOfflineAccess(config.scopes).map(({ name }) => name),
  )
  return {
    ...metadata,
    origin: client.origin,
    ...(client.usedAt > client.issuedAt && { last_used_at: client.usedAt }),
    ...(client.anySecretMethod && { token_endpoint_auth_methods_accepted: secretMethods }),
    pkce: client.pkceOptional ? 'optional' : 'required',
    consent: client.consent,
    ...(client.introspects.length > 0 && { introspects: client.introspects }),
  }
}

/** How it authenticates at the token endpoint, in words of RFC 7591 §2. */
export function authenticationOf({ anySecretMethod, authenticationMethod }: Client): string {
  return anySecretMethod ? secretMethods.join(' or ') : authenticationMethod
}

const secretMethods = clientAuthenticationMethods
  .filter((method) => method.startsWith('client_secret_'))
  .reverse()
