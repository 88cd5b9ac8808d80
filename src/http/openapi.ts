import { Type } from '@sinclair/typebox'
import type { Plugin } from '../feature/deps.ts'
import type { Service } from '../feature/service.ts'
import { readTextAsset } from '../system/assets.ts'
import { contentFrom, documentResponses, serveDocument } from './document.ts'

/**
 * The security schemes of the description (OpenAPI 3.1 §4.8.27): with the flow, its URLs and every scope, tools such as
 * Swagger UI and Postman sign in by themselves.
 */
export function securitySchemes({ issuer, catalogue }: Pick<Service, 'issuer' | 'catalogue'>) {
  const tokenUrl = `${issuer}/api/oauth/token`
  return {
    initialAccessToken: {
      type: 'http',
      scheme: 'bearer',
      description: 'The initial access token of RFC 7591 §3: `lychgate registration token create`.',
    },
    registrationAccessToken: {
      type: 'http',
      scheme: 'bearer',
      description: 'The registration access token of RFC 7592.',
    },
    bearer: { type: 'http', scheme: 'bearer', description: 'An access token, RFC 6750.' },
    oauth2: {
      type: 'oauth2',
      description: 'The authorization code flow with PKCE (S256).',
      flows: {
        authorizationCode: {
          authorizationUrl: `${issuer}/oauth/authorize`,
          tokenUrl,
          refreshUrl: tokenUrl,
          scopes: Object.fromEntries(catalogue.map(({ name, description }) => [name, description])),
        },
      },
    },
    openIdConnect: {
      type: 'openIdConnect',
      openIdConnectUrl: `${issuer}/.well-known/openid-configuration`,
    },
  } as const
}

/** What an operation needs: an access token with this scope, however it was obtained. */
export function securityFor(scope: string) {
  return [{ oauth2: [scope] }, { openIdConnect: [scope] }, { bearer: [] }] as const
}

/**
 * `/openapi.json`: the checked-in description, generated from the route schemas, with this service as its server and
 * without what it does not serve.
 */
export const apiDescription: Plugin<'config' | 'service'> = async (app, { config, service }) => {
  const describe = (): object => {
    const whole = JSON.parse(readTextAsset('openapi/openapi.json'))
    // An operator's scope catalogue may lack areas that the shipped one has.
    const served = Object.entries(whole.paths).filter(
      ([path]) => app.methodsOf(service.prefix + path).length > 0,
    )
    return {
      ...whole,
      servers: [{ url: service.issuer }],
      components: { ...whole.components, securitySchemes: securitySchemes(service) },
      paths: Object.fromEntries(served),
    }
  }
  serveDocument(app, ['/openapi.json'], {
    content: contentFrom(() => service.catalogue, describe),
    maxAgeSeconds: config.lifetimes.metadataCacheSeconds,
    schema: {
      operationId: 'apiDescription',
      tags: ['discovery'],
      summary: 'This description, OpenAPI 3.1',
      response: documentResponses({ openapi: Type.String(), paths: Type.Object({}) }),
    },
  })
}
