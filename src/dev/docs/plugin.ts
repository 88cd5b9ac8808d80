import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { readAsset } from '../../assets.ts'
import { remove } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { RecordExists } from '../../storage/store.ts'
import { seedClients } from '../clients.ts'
import { devPageHeaders } from '../dev-pages.ts'
import type { DevDeps } from '../plugin.ts'
import { readDocsAsset, separateImages } from './assets.ts'

const clientId = 'api-docs'

/**
 * `/docs`: the API description in Swagger UI, which signs in as a public client of its own (code flow, PKCE S256) and
 * calls the API with the token it gets.
 */
export const docsPage: FastifyPluginAsync<DevDeps> = async (
  app,
  { config, service, store, clock, random },
) => {
  const { issuer, prefix } = service
  const redirectUri = `${issuer}/docs/oauth2-redirect.html`
  const origin = new URL(issuer)

  /** Adds the client of the page on first use, and again after the issuer has changed. */
  const ensureClient = async (): Promise<void> => {
    const known = await store.find('client', clientId)
    if (known?.redirectUris.includes(redirectUri)) return
    if (known !== undefined) await store.write(remove('client', clientId))
    const client = {
      client_id: clientId,
      client_name: 'API documentation',
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'none',
    }
    try {
      await seedClients(store, [client], config, { clock, random })
    } catch (error) {
      // Two windows were opened at once.
      if (!(error instanceof RecordExists)) throw error
    }
  }

  const html = (content: string) =>
    `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n` +
    `<meta name="viewport" content="width=device-width, initial-scale=1">\n${content}</html>\n`
  const page = html(
    `<title>API documentation</title>\n<link rel="stylesheet" href="${prefix}/docs/swagger-ui.css">\n` +
      `<link rel="stylesheet" href="${prefix}/docs/docs.css">\n</head>\n<body>\n` +
      `<main><h1>API documentation</h1>\n<p><a href="${prefix}/">Development server</a></p>\n` +
      `<div id="swagger-ui" data-description="${prefix}/openapi.json" data-redirect="${redirectUri}" ` +
      `data-client="${clientId}"></div></main>\n<script src="${prefix}/docs/swagger-ui-bundle.js"></script>\n` +
      `<script src="${prefix}/docs/docs.js"></script>\n</body>\n`,
  )
  const redirectPage = html(
    `<title>Signed in</title>\n</head>\n<body>\n<script src="${prefix}/docs/oauth2-redirect.js"></script>\n</body>\n`,
  )
  /** The sign-in window hands its code to the page that opened it, which has to be of the same origin. */
  const isElsewhere = ({ headers }: FastifyRequest) => headers.host !== origin.host

  app.get('/docs', { schema: { hide: true } }, async (request, reply) => {
    if (isElsewhere(request)) return reply.redirect(`${issuer}/docs`)
    await ensureClient()
    return reply.headers(devPageHeaders).send(page)
  })
  app.get('/docs/oauth2-redirect.html', { schema: { hide: true } }, async (_request, reply) =>
    reply.headers(devPageHeaders).send(redirectPage),
  )
  const cached = (reply: FastifyReply, type: string) => reply.type(type).header('cache-control', 'no-cache')
  let styles: ReturnType<typeof separateImages> | undefined
  const stylesheet = () => {
    const urlOf = (number: number) => `${prefix}/docs/images/${number}`
    styles ??= separateImages(readDocsAsset('swagger-ui.css').toString(), urlOf)
    return styles
  }
  app.get('/docs/swagger-ui.css', { schema: { hide: true } }, async (_request, reply) =>
    cached(reply, 'text/css; charset=utf-8').send(stylesheet().css),
  )
  app.get<{ Params: { number: string } }>(
    '/docs/images/:number',
    { schema: { hide: true } },
    async ({ params }, reply) => {
      const image = stylesheet().images[Number(params.number)]
      if (image === undefined)
        throw new OAuthError('invalid_request', 'there is no such image', {
          rule: 'lychgate-dev-docs',
          status: 404,
        })
      return cached(reply, image.type).send(image.body)
    },
  )
  const scripts: Readonly<Record<string, () => Buffer>> = {
    'swagger-ui-bundle.js': () => readDocsAsset('swagger-ui-bundle.js'),
    'oauth2-redirect.js': () => readDocsAsset('oauth2-redirect.js'),
    'docs.js': () => readAsset('views/dev/docs.js'),
  }
  for (const [name, read] of Object.entries(scripts)) {
    let content: Buffer | undefined
    app.get(`/docs/${name}`, { schema: { hide: true } }, async (_request, reply) => {
      content ??= read()
      return cached(reply, 'text/javascript; charset=utf-8').send(content)
    })
  }
  app.get('/docs/docs.css', { schema: { hide: true } }, async (_request, reply) =>
    cached(reply, 'text/css; charset=utf-8').send(readAsset('views/dev/docs.css')),
  )
}
