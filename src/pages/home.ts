import type { Text } from '../domain/text.ts'
import type { Plugin } from '../feature/deps.ts'
import { msg } from './i18n/i18n.ts'

declare module './pages.ts' {
  interface Pages {
    home: {
      readonly issuer: string
      readonly links: readonly { readonly label: Text; readonly url: string }[]
    }
  }
}

/** Serves the issuer's address in a browser: what this is, and links for developers. */
export const homePage: Plugin<'service'> = async (app, { service }) => {
  const { issuer } = service
  const links = [
    { label: msg('home.metadata'), url: `${issuer}/.well-known/oauth-authorization-server` },
    { label: msg('home.discovery'), url: `${issuer}/.well-known/openid-configuration` },
    { label: msg('home.resource'), url: service.resourceMetadataUrl },
    { label: msg('home.api'), url: `${issuer}/openapi.json` },
  ]
  app.get('/', { schema: { hide: true } }, async (_request, reply) => reply.page('home', { issuer, links }))
}
