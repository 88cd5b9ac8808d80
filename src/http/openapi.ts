import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { readTextAsset } from '../assets.ts'
import type { AppDeps } from '../deps.ts'
import { documentResponses, serveDocument } from './document.ts'

/**
 * `/openapi.json`: the checked-in description, generated from the route schemas, with this service as its server and
 * without what it does not serve.
 */
export const apiDescription: FastifyPluginAsync<Pick<AppDeps, 'config' | 'service'>> = async (
  app,
  { config, service },
) => {
  const describe = (): object => {
    const whole = JSON.parse(readTextAsset('openapi/openapi.json'))
    // An operator's scope catalogue may lack areas that the shipped one has.
    const served = Object.entries(whole.paths).filter(
      ([path]) => app.methodsOf(service.prefix + path).length > 0,
    )
    return { ...whole, servers: [{ url: service.issuer }], paths: Object.fromEntries(served) }
  }
  let content: object | undefined
  serveDocument(app, ['/openapi.json'], {
    content: () => {
      content ??= describe()
      return content
    },
    maxAgeSeconds: config.lifetimes.metadataCacheSeconds,
    schema: {
      operationId: 'apiDescription',
      tags: ['discovery'],
      summary: 'This description, OpenAPI 3.1',
      response: documentResponses({ openapi: Type.String(), paths: Type.Object({}) }),
    },
  })
}
