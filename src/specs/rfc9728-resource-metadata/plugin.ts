import { Type } from '@sinclair/typebox'
import type { Resource } from '../../domain/resource.ts'
import { offlineAccess } from '../../domain/scope-catalogue.ts'
import { wellKnownUrl } from '../../domain/well-known.ts'
import type { Plugin } from '../../feature/deps.ts'
import { contentFrom, documentResponses, serveDocument } from '../../http/document.ts'
import { allowCaching } from '../../http/response.ts'

/**
 * RFC 9728 §2 and RFC 9728 §3: the metadata of the service's own API and of every resource on the issuer's origin, each
 * at its path-inserted URL, RFC 9728 §3.3, without members that have no value, RFC 9728 §3.2. Other resources publish
 * their own.
 */
export const resourceMetadata: Plugin<'config' | 'service' | 'definitions'> = async (app, deps) => {
  const { config, service, definitions } = deps
  const { origin } = new URL(service.issuer)
  const own = service.resources.own.identifier
  const isReserved = (name: string) => service.scopes.has(name) && !service.openScopes.has(name)
  // A resource does not ask for offline_access; clients that want it find it at the authorization server.
  // Nor for what only an operator gives: a client that asks for everything in the list would be rejected.
  const isAsked = (name: string) => name !== offlineAccess.name && !isReserved(name)
  const describe = ({ identifier, name, localized = {}, scopes }: Resource) => {
    const asked = [...scopes].filter(isAsked)
    return {
      resource: identifier,
      authorization_servers: [service.issuer],
      ...(asked.length > 0 && { scopes_supported: asked }),
      bearer_methods_supported: ['header'],
      resource_name: name,
      // RFC 9728 §2.1: name#de is resource_name#de.
      ...Object.fromEntries(
        Object.entries(localized).map(([member, value]) => [`resource_${member}`, value]),
      ),
      ...(config.service.documentation && { resource_documentation: config.service.documentation }),
      ...(config.service.policy && { resource_policy_uri: config.service.policy }),
      ...(config.service.terms && { resource_tos_uri: config.service.terms }),
    }
  }
  const maxAgeSeconds = config.lifetimes.metadataCacheSeconds
  const schema = { tags: ['discovery'], summary: 'Protected resource metadata, RFC 9728', response }
  const find = (identifier: string) => service.resources.find(identifier) ?? service.resources.own
  for (const identifier of [own, ...definitions.fileConfig.resources.map((one) => one.identifier)]) {
    if (!isBelow(identifier, origin)) continue
    const isOwn = identifier === own
    const paths = [pathOf(identifier), ...(isOwn ? [`${service.prefix}/.well-known/${wellKnownName}`] : [])]
    serveDocument(app, [...new Set(paths)], {
      content: contentFrom(
        () => service.catalogue,
        () => describe(find(identifier)),
      ),
      maxAgeSeconds,
      schema: { ...schema, ...(isOwn && { operationId: 'protectedResourceMetadata' }) },
    })
  }
  // Those that operators store come and go.
  app.get(`/.well-known/${wellKnownName}/*`, { schema: { hide: true } }, (request, reply) => {
    const [path = ''] = request.url.split('?', 1)
    const isAt = ({ identifier }: Resource) => isBelow(identifier, origin) && pathOf(identifier) === path
    const resource = service.allResources.find(isAt)
    if (resource === undefined) return reply.callNotFound()
    return allowCaching(reply, `public, max-age=${maxAgeSeconds}`).send(describe(resource))
  })
  app.seams.publishedMetadata.add((members) => ({
    ...members,
    protected_resources: service.allResources.map(({ identifier }) => identifier),
  }))
}

const wellKnownName = 'oauth-protected-resource'

function pathOf(identifier: string): string {
  return new URL(wellKnownUrl(identifier, wellKnownName)).pathname
}

function isBelow(identifier: string, origin: string): boolean {
  return URL.canParse(identifier) && new URL(identifier).origin === origin
}

const response = documentResponses({
  resource: Type.String(),
  authorization_servers: Type.Array(Type.String()),
})
