import type { FastifyPluginAsync } from 'fastify'
import { wellKnownUrl } from '../domain/well-known.ts'
import { serveDocument } from '../http/document.ts'

/** The members of RFC 9728 §2 an API usually has. */
export interface ResourceMetadataOptions {
  /** The identifier of this API, as in the authorization server's configuration. */
  readonly resource: string
  /** The issuers whose tokens it accepts. */
  readonly authorizationServers: readonly string[]
  readonly scopes?: readonly string[]
  /** The name that users see. */
  readonly name?: string
  /** URL of its documentation. */
  readonly documentation?: string
  /** How long clients may cache the document; 300 by default. */
  readonly maxAgeSeconds?: number
}

/**
 * Publishes the metadata of this API at its well-known URL, RFC 9728 §3.1, for pages of any origin; the guard's
 * challenges name it.
 */
export const protectedResourceMetadata: FastifyPluginAsync<ResourceMetadataOptions> = async (
  app,
  options,
) => {
  if (app.prefix !== '')
    throw new Error('register protectedResourceMetadata without a prefix: its place is fixed')
  const { resource, authorizationServers, scopes = [], name, documentation } = options
  const content = {
    resource,
    authorization_servers: authorizationServers,
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    ...(name !== undefined && { resource_name: name }),
    ...(documentation !== undefined && { resource_documentation: documentation }),
  }
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('access-control-allow-origin', '*')
    done()
  })
  const { pathname } = new URL(wellKnownUrl(resource, 'oauth-protected-resource'))
  serveDocument(app, [pathname], { content: () => content, maxAgeSeconds: options.maxAgeSeconds ?? 300 })
}
