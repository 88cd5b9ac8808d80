import { gunzipSync } from 'node:zlib'
import type { FastifyReply } from 'fastify'
import { mayHave } from '../domain/current-grant.ts'
import { remove } from '../domain/decision.ts'
import { RecordExists } from '../storage/store.ts'
import { hasAsset, readAsset } from '../system/assets.ts'
import { seedClients } from './clients.ts'
import { type DevDeps, type DevPart, hidden, missing } from './part.ts'

const clientId = 'api-docs'
const [css, javascript] = ['text/css; charset=utf-8', 'text/javascript; charset=utf-8'] as const

/**
 * `/docs`: the API description in Swagger UI, which obtains a token as a public client (code flow, PKCE S256) and calls
 * the API with it.
 */
export const docsPage: DevPart = async (app, deps) => {
  const { issuer, prefix } = deps.service
  const redirectUri = `${issuer}/docs/oauth2-redirect.html`

  app.get('/docs', hidden, async ({ headers }, reply) => {
    // The sign-in window passes its code to the page that opened it, which must have the same origin.
    if (headers.host !== new URL(issuer).host) return reply.redirect(`${issuer}/docs`)
    await ensureClient(redirectUri, deps)
    const client = await deps.store.find('client', clientId)
    const names = deps.service.catalogue.map(({ name }) => name)
    const scope = client ? names.filter((name) => mayHave(name, client, deps.service)).join(' ') : ''
    const model = { description: `${prefix}/openapi.json`, redirectUri, clientId, scope }
    return reply.devPage('docs', model)
  })
  app.get('/docs/oauth2-redirect.html', hidden, async (_request, reply) => reply.devPage('docs-redirect', {}))

  let separated: ReturnType<typeof separateImages> | undefined
  const stylesheet = () => {
    const urlOf = (number: number) => `${prefix}/docs/images/${number}`
    separated ??= separateImages(readDocsAsset('swagger-ui.css').toString(), urlOf)
    return separated
  }
  const files = {
    'swagger-ui.css': [css, () => stylesheet().css],
    'docs.css': [css, () => readAsset('views/dev/docs.css')],
    'swagger-ui-bundle.js': [javascript, () => readDocsAsset('swagger-ui-bundle.js')],
    'oauth2-redirect.js': [javascript, () => readDocsAsset('oauth2-redirect.js')],
    'docs.js': [javascript, () => readAsset('views/dev/docs.js')],
  } as const
  const cached = (reply: FastifyReply, type: string) => reply.type(type).header('cache-control', 'no-cache')
  for (const [name, [type, read]] of Object.entries(files)) {
    let content: string | Buffer | undefined
    app.get(`/docs/${name}`, hidden, async (_request, reply) => {
      content ??= read()
      return cached(reply, type).send(content)
    })
  }
  app.get<{ Params: { number: string } }>('/docs/images/:number', hidden, async ({ params }, reply) => {
    const image = stylesheet().images[Number(params.number)]
    if (image === undefined) throw missing('lychgate-dev-docs', 'there is no such image')
    return cached(reply, image.type).send(image.body)
  })
}

/** Adds the client of the page, and replaces it after the issuer has changed. */
async function ensureClient(redirectUri: string, { config, store, clock, random }: DevDeps): Promise<void> {
  const known = await store.find('client', clientId)
  if (known?.redirectUris.includes(redirectUri)) return
  if (known !== undefined) await store.write(remove('client', clientId))
  const client = {
    client_id: clientId,
    client_name: 'API documentation',
    redirect_uris: [redirectUri],
    token_endpoint_auth_method: 'none',
  }
  await seedClients(store, [client], config, { clock, random }).catch((error: unknown) => {
    // Another window has added it.
    if (!(error instanceof RecordExists)) throw error
  })
}

/** The files of Swagger UI that the page needs. */
export const docsAssets = ['swagger-ui.css', 'swagger-ui-bundle.js', 'oauth2-redirect.js'] as const

/** A file of Swagger UI: from its package in a checkout; the builds contain it compressed. */
export function readDocsAsset(name: (typeof docsAssets)[number]): Buffer {
  const installed = `node_modules/@fastify/swagger-ui/static/${name}` as const
  return hasAsset(installed) ? readAsset(installed) : gunzipSync(readAsset(`dist/docs/${name}.gz`))
}

const embedded =
  /url\((?:"data:(image\/[a-z+]+);charset=utf-8,((?:[^"\\]|\\.)*)"|data:(image\/[a-z+]+);base64,([\w+/=]+))\)/g

/**
 * The stylesheet with a URL in place of each image it embeds, and the images in the order of these URLs: the policy of
 * the pages allows no `data:` images.
 * @param urlOf The URL of an image by its number.
 */
export function separateImages(stylesheet: string, urlOf: (number: number) => string) {
  const images: { readonly type: string; readonly body: Buffer }[] = []
  const separated = stylesheet.replaceAll(
    embedded,
    (_, textType?: string, text?: string, type?: string, base64 = '') => {
      const body =
        text === undefined
          ? Buffer.from(base64, 'base64')
          : Buffer.from(decodeURIComponent(text.replaceAll(/\\(.)/g, '$1')))
      images.push({ type: textType ?? type ?? '', body })
      return `url("${urlOf(images.length - 1)}")`
    },
  )
  return { css: separated, images }
}
