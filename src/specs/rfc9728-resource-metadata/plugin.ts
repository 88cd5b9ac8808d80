import { Type } from '@sinclair/typebox'
import { offlineAccess } from '../../domain/scope-catalogue.ts'
import { wellKnownUrl } from '../../domain/well-known.ts'
import type { Plugin } from '../../feature/deps.ts'
import { documentResponses, serveDocument } from '../../http/document.ts'

/**
 * RFC 9728 §2 and RFC 9728 §3: the metadata of the service's own API and of every configured resource on the issuer's
 * origin, each at its path-inserted URL, RFC 9728 §3.3, without members that have no value, RFC 9728 §3.2. Other
 * resources publish their own.
 */
export const resourceMetadata: Plugin<'config' | 'service'> = async (app, { config, service }) => {
  const { origin } = new URL(service.issuer)
  const own = service.resources.own
  const isReserved = (name: string) => service.scopes.has(name) && !service.openScopes.has(name)
  for (const resource of service.allResources.filter(({ identifier }) => isBelow(identifier, origin))) {
    // A resource does not ask for offline_access; clients that want it find it at the authorization server.
    // Nor for what only an operator gives: a client that asks for everything in the list would be rejected.
    const isAsked = (name: string) => name !== offlineAccess.name && !isReserved(name)
    const scopes = [...resource.scopes].filter(isAsked)
    const content = {
      resource: resource.identifier,
      authorization_servers: [service.issuer],
      ...(scopes.length > 0 && { scopes_supported: scopes }),
      bearer_methods_supported: ['header'],
      resource_name: resource.name,
      // RFC 9728 §2.1: name#de is resource_name#de.
      ...Object.fromEntries(
        Object.entries(resource.localized ?? {}).map(([name, value]) => [`resource_${name}`, value]),
      ),
      ...(config.service.documentation && { resource_documentation: config.service.documentation }),
      ...(config.service.policy && { resource_policy_uri: config.service.policy }),
      ...(config.service.terms && { resource_tos_uri: config.service.terms }),
    }
    const { pathname } = new URL(wellKnownUrl(resource.identifier, 'oauth-protected-resource'))
    const paths =
      resource === own ? [pathname, `${service.prefix}/.well-known/oauth-protected-resource`] : [pathname]
    serveDocument(app, [...new Set(paths)], {
      content: () => content,
      maxAgeSeconds: config.lifetimes.metadataCacheSeconds,
      schema: {
        tags: ['discovery'],
        summary: 'Protected resource metadata, RFC 9728',
        response,
        ...(resource === own && { operationId: 'protectedResourceMetadata' }),
      },
    })
  }
  app.seams.metadata.add({ protected_resources: service.allResources.map(({ identifier }) => identifier) })
}

function isBelow(identifier: string, origin: string): boolean {
  return URL.canParse(identifier) && new URL(identifier).origin === origin
}

const response = documentResponses({
  resource: Type.String(),
  authorization_servers: Type.Array(Type.String()),
})
