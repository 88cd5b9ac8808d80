import { readFileSync } from 'node:fs'
import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { serveDocument } from './document.ts'

const file = new URL('../../openapi/openapi.json', import.meta.url)

/** `/openapi.json`: the checked-in description, generated from the route schemas, with this service as its server. */
export const apiDescription: FastifyPluginAsync<Pick<AppDeps, 'config' | 'service'>> = async (
  app,
  { config, service },
) => {
  let content: object | undefined
  serveDocument(app, ['/openapi.json'], {
    content: () => {
      content ??= { ...JSON.parse(readFileSync(file, 'utf8')), servers: [{ url: service.issuer }] }
      return content ?? {}
    },
    maxAgeSeconds: config.lifetimes.metadataCacheSeconds,
    schema: { operationId: 'apiDescription', tags: ['discovery'], summary: 'This description, OpenAPI 3.1' },
  })
}
