import type { FastifyBaseLogger } from 'fastify'
import { clientMetadata } from '../../clients/describe.ts'
import type { RegistrationPolicy } from '../../clients/metadata.ts'
import type { AdmittedClient, Client } from '../../domain/model.ts'
import { parseScope } from '../../domain/scope.ts'
import type { AppDeps, Needs } from '../../feature/deps.ts'
import { boundedList } from '../../http/log.ts'

/** What the configuration, the current keys and an initial access token allow at registration, RFC 7591 §2 and §3. */
export function registrationPolicy(
  { config, service, keys, declared }: Needs<'config' | 'service' | 'keys' | 'declared'>,
  admission?: Pick<AdmittedClient, 'redirects'>,
): RegistrationPolicy {
  return {
    ...config.registration,
    redirectUris: config.limits.redirectUris,
    metadataBytes: config.limits.clientMetadataBytes,
    scopes: [...service.openScopes],
    algorithms: keys.algorithms,
    declared,
    closedGrantTypes: new Map(
      Object.entries(declared.grantTypes).flatMap(([name, { closedBy }]) => {
        const option = closedBy?.(config)
        return option === undefined ? [] : [[name, option] as const]
      }),
    ),
    ...(admission && { admission }),
  }
}

/**
 * The client information response, RFC 7591 §3.2.1, RFC 7592 §3 and OpenID Connect Registration §3.2, without the
 * client secret.
 */
export function clientInformation(service: AppDeps['service'], client: Client, registrationToken: string) {
  return {
    ...clientMetadata(client, [...service.openScopes]),
    registration_client_uri: `${service.issuer}/api/oauth/register/${client.id}`,
    registration_access_token: registrationToken,
  }
}

/** Logs the scopes that a client asked for and did not get, as the `scope` of its response shows, RFC 7591 §3.2.1. */
export function logDroppedScopes(
  log: FastifyBaseLogger,
  requestedScope: unknown,
  { id, scope }: Client,
): void {
  if (typeof requestedScope !== 'string' || scope === undefined) return
  const dropped = parseScope(requestedScope).filter((name) => !scope.includes(name))
  if (dropped.length === 0) return
  log.info({ client: id, dropped: boundedList(dropped, (name) => name) }, 'scopes were left out')
}
