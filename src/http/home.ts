import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'

/** The issuer opened in a browser: what this is and where a developer goes on. */
export const homePage: FastifyPluginAsync<Pick<AppDeps, 'service'>> = async (app, { service }) => {
  const { issuer } = service
  const links = [
    { label: 'Authorization server metadata', url: `${issuer}/.well-known/oauth-authorization-server` },
    { label: 'OpenID Connect discovery', url: `${issuer}/.well-known/openid-configuration` },
    { label: 'Protected resource metadata', url: service.resourceMetadataUrl },
    { label: 'API description', url: `${issuer}/openapi.json` },
  ]
  app.get('/', { schema: { hide: true } }, async (_request, reply) => reply.page('home', { issuer, links }))
}
