import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { Needs, PageDeps } from '../../feature/deps.ts'
import { adminApiRoot } from '../../http/admin-listener.ts'
import { contentFrom, documentResponses, serveDocument } from '../../http/document.ts'
import { securitySchemes } from '../../http/openapi.ts'
import { readTextAsset } from '../../system/assets.ts'
import { hasUpstreams } from '../../users/upstreams.ts'
import { accessOperations } from '../operations/access.ts'
import * as activity from '../operations/activity.ts'
import { isOffered } from '../operations/api-scopes.ts'
import { clientLocks, compareSecret, profileClient, rotateSecret } from '../operations/client-acts.ts'
import { previewClient } from '../operations/client-preview.ts'
import { readClientRejection } from '../operations/client-rejection.ts'
import { clientOperations } from '../operations/clients.ts'
import { documentOperations } from '../operations/documents.ts'
import * as grants from '../operations/grants.ts'
import * as groupReads from '../operations/group-reads.ts'
import { addGroup, editGroup, joinGroup, leaveGroup, removeGroup } from '../operations/groups.ts'
import { inviteUsers } from '../operations/invitations.ts'
import * as keys from '../operations/keys.ts'
import * as links from '../operations/links.ts'
import * as personalTokens from '../operations/personal-tokens.ts'
import { listRecipes } from '../operations/recipes.ts'
import { registrationOperations } from '../operations/registrations.ts'
import * as resources from '../operations/resources.ts'
import * as scopes from '../operations/scopes.ts'
import * as sessions from '../operations/sessions.ts'
import { sendTestEmail } from '../operations/test-email.ts'
import * as upstreams from '../operations/upstreams.ts'
import { userActs } from '../operations/user-acts.ts'
import * as userChanges from '../operations/user-changes.ts'
import * as users from '../operations/users.ts'
import { administration } from './administration.ts'
import { addOperation } from './operation.ts'
import { personalTokenVerifier } from './personal-tokens.ts'

/**
 * The admin API: users and clients, as the command line has them. It is a protected resource of this server (RFC 6750),
 * for administrators, and for clients to which an operator gave a scope of it.
 */
export const adminApi: FastifyPluginAsync<PageDeps & Needs<'guard'>> = async (app, deps) => {
  if (!isOffered(deps.config)) return
  const verifyPersonalToken = personalTokenVerifier(deps)
  await app.register(deps.guard, { anonymous: 'challenge', verifyPersonalToken })
  await app.register(administration, deps)
  await app.register(operations, { ...deps, prefix: adminApiRoot })
  describe(app, deps)
}

/** Adds the routes of what is defined once for all doors. */
const operations: FastifyPluginAsync<PageDeps> = async (app, deps) => {
  for (const operation of [
    ...Object.values(users),
    ...Object.values(userChanges),
    inviteUsers,
    sendTestEmail,
    ...Object.values(userActs),
    ...Object.values(accessOperations(deps.declared)),
    ...Object.values(sessions),
    ...Object.values(links),
    ...Object.values(personalTokens),
    ...Object.values(grants),
    ...Object.values(groupReads),
    ...[addGroup, editGroup, removeGroup, joinGroup, leaveGroup],
    ...(app.publishedClients === undefined ? [] : Object.values(documentOperations(deps.declared))),
    ...Object.values(registrationOperations(deps.declared)),
    ...(hasUpstreams(deps.config) ? Object.values(upstreams) : []),
    ...Object.values(keys),
    listRecipes,
    ...Object.values(scopes),
    ...Object.values(resources),
    readClientRejection,
    previewClient,
    ...Object.values(activity),
    ...Object.values(clientOperations(deps.declared)),
    ...[rotateSecret, compareSecret],
    ...Object.values(clientLocks(deps.declared)),
    ...(Object.keys(deps.declared.clientProfiles).length === 0 ? [] : [profileClient(deps.declared)]),
  ])
    addOperation(app, deps, operation)
}

/** Serves the description of the API, OpenAPI 3.1, with this service as its server. */
function describe(app: FastifyInstance, { config, service }: Needs<'config' | 'service'>): void {
  const write = (): object => {
    const whole = JSON.parse(readTextAsset('openapi/admin.json'))
    const { registrationAccessToken: _, ...schemes } = securitySchemes(service)
    // Relative to the description: the management listener has several names.
    const url = config.admin.listener === 'management' ? service.prefix || '/' : service.issuer
    const components = { ...whole.components, securitySchemes: schemes }
    return { ...whole, servers: [{ url }], components }
  }
  serveDocument(app, [`${adminApiRoot}/openapi.json`], {
    content: contentFrom(() => service.catalogue, write),
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
