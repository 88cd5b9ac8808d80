import { clientMetadata, type RegistrationPolicy } from '../clients/metadata.ts'
import type { AppDeps, Deps } from '../deps.ts'
import type { Client } from '../domain/model.ts'
import { withOfflineAccess } from '../domain/scope-catalogue.ts'

/** What the configuration and the current keys allow at registration, RFC 7591 §2. */
export function registrationPolicy({
  config,
  keys,
  declared,
}: Pick<AppDeps, 'config' | 'keys' | 'declared'>): RegistrationPolicy {
  return {
    ...config.registration,
    redirectUris: config.limits.redirectUris,
    metadataBytes: config.limits.clientMetadataBytes,
    scopes: withOfflineAccess(config.scopes).map(({ name }) => name),
    algorithms: keys.algorithms,
    declared,
  }
}

/**
 * The client information response, RFC 7591 §3.2.1, RFC 7592 §3 and OpenID Connect Registration §3.2, without the
 * client secret.
 */
export function clientInformation(config: Deps['config'], client: Client, registrationToken: string) {
  const catalogue = withOfflineAccess(config.scopes).map(({ name }) => name)
  return {
    ...clientMetadata(client, catalogue),
    registration_client_uri: `${config.issuer}/api/oauth/register/${client.id}`,
    registration_access_token: registrationToken,
  }
}
