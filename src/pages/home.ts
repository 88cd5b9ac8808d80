import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { msg } from './i18n/catalogue.ts'

/** The issuer opened in a browser: what this is and where a developer goes on. */
export const homePage: FastifyPluginAsync<Pick<AppDeps, 'service'>> = async (app, { service }) => {
  const { issuer } = service
  const links = [
    { label: msg('home.metadata'), url: `${issuer}/.well-known/oauth-authorization-server` },
    { label: msg('home.discovery'), url: `${issuer}/.well-known/openid-configuration` },
    { label: msg('home.resource'), url: service.resourceMetadataUrl },
    { label: msg('home.api'), url: `${issuer}/openapi.json` },
  ]
  app.get('/', { schema: { hide: true } }, async (_request, reply) => reply.page('home', { issuer, links }))
}
