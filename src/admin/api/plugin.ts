import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../../feature/deps.ts'
import { adminApiRoot } from '../../http/admin-listener.ts'
import { documentResponses, serveDocument } from '../../http/document.ts'
import { securitySchemes } from '../../http/openapi.ts'
import { readTextAsset } from '../../system/assets.ts'
import { accessResource } from './access.ts'
import { activityResource } from './activity.ts'
import { administration } from './administration.ts'
import { clientDocumentResource } from './client-documents.ts'
import { clientResource } from './clients.ts'
import { grantResource } from './grants.ts'
import { groupResource } from './groups.ts'
import { keyResource } from './keys.ts'
import { passwordResource } from './passwords.ts'
import { registrationResource } from './registrations.ts'
import { isOffered } from './scopes.ts'
import { userResource } from './users.ts'

/**
 * The admin API: users and clients, as the command line has them. It is a protected resource of this server (RFC 6750),
 * for administrators, and for clients to which an operator gave a scope of it.
 */
export const adminApi: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  if (!isOffered(deps.config)) return
  await app.register(deps.guard, { anonymous: 'challenge' })
  await app.register(administration, deps)
  for (const resource of [
    userResource,
    passwordResource,
    accessResource,
    grantResource,
    groupResource,
    clientResource,
    clientDocumentResource,
    registrationResource,
    keyResource,
    activityResource,
  ])
    await app.register(resource, { ...deps, prefix: adminApiRoot })
  describe(app, deps)
}

/** Serves the description of the API, OpenAPI 3.1, with this service as its server. */
function describe(app: FastifyInstance, { config, service }: AppDeps): void {
  let content: object | undefined
  const write = (): object => {
    const whole = JSON.parse(readTextAsset('openapi/admin.json'))
    const { registrationAccessToken: _, ...schemes } = securitySchemes(service)
    // Relative to the description: the management listener has several names.
    const url = config.admin.listener === 'management' ? service.prefix || '/' : service.issuer
    const components = { ...whole.components, securitySchemes: schemes }
    return { ...whole, servers: [{ url }], components }
  }
  serveDocument(app, [`${adminApiRoot}/openapi.json`], {
    content: () => {
      content ??= write()
      return content
    },
    maxAgeSeconds: config.lifetimes.metadataCacheSeconds,
    schema: {
      operationId: 'adminDescription',
      tags: ['admin'],
      summary: 'This description, OpenAPI 3.1',
      security: [],
      response: documentResponses({ openapi: Type.String(), paths: Type.Object({}) }),
    },
  })
}
