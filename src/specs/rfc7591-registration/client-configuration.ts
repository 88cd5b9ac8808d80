import { isDeepStrictEqual } from 'node:util'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { bearerChallenge, readToken } from '../../domain/bearer.ts'
import { accept, remove, update } from '../../domain/decision.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { assertKey } from '../../http/token-scheme.ts'
import { clientInformation, logDroppedScopes, registrationPolicy } from './client-information.ts'
import { requireJsonObject } from './json-object.ts'
import { assertMayConfigure, requireRegistrationToken, updateClient } from './rules.ts'
import { registrationRoutes } from './schema.ts'

/** RFC 7592: a client that registered itself reads, replaces and deletes its registration. */
export const clientConfiguration: FastifyPluginAsyncTypebox<
  Needs<'config' | 'service' | 'store' | 'keys' | 'clock' | 'declared'>
> = async (app, { config, service, store, keys, clock, declared }) => {
  const routes = registrationRoutes(declared)
  const eventOf = (name: 'registration-changed' | 'registration-deleted', clientId: string, ip: string) =>
    auditEvent(name, { by: 'client', at: clock(), from: addressPrefix(ip) }, { clientId })

  /**
   * Authorizes a request by its registration access token; one that is bound to a key comes with a proof by that key.
   */
  async function authorize(request: FastifyRequest, reply: FastifyReply, key: string) {
    const schemes = app.tokenSchemes()
    const sent = readToken(request.headers.authorization, schemes)
    const token = requireRegistrationToken(
      sent,
      schemes.map((one) => bearerChallenge({ scheme: one })),
    )
    const { scheme } = sent
    const client = await store.find('client', key)
    assertMayConfigure(client, token, scheme)
    const { registrationKey: confirmation } = client
    if (scheme !== undefined && confirmation !== undefined)
      await assertKey(scheme, { request, reply, token, confirmation, resource: service.issuer })
    return { client, token, scheme }
  }

  app.get(
    '/api/oauth/register/:client_id',
    { config: { limit: 'token' }, schema: routes.read },
    async (request, reply) => {
      const { client, token } = await authorize(request, reply, clientKey(request.params.client_id))
      return clientInformation(service, client, token)
    },
  )

  app.put(
    '/api/oauth/register/:client_id',
    {
      bodyLimit: config.limits.registrationBodyBytes,
      config: {
        limit: 'registration',
        unreadableBody: 'invalid_client_metadata',
        bodyLimitSetting: 'limits.registrationBodyBytes',
      },
      schema: routes.update,
    },
    async (request, reply) => {
      const { params, body, ip } = request
      const key = clientKey(params.client_id)
      const { token, scheme } = await authorize(request, reply, key)
      const metadata = requireJsonObject(body)
      const updated = await store.transact('client', key, (client) => {
        assertMayConfigure(client, token, scheme)
        const policy = registrationPolicy({ config, service, keys, declared }, client.admitted)
        const replaced = updateClient(client, metadata, policy)
        // An update without a change causes no write and no event.
        if (isDeepStrictEqual(replaced, client)) return accept(client)
        const event = eventOf('registration-changed', client.id, ip)
        return accept(replaced, update('client', replaced), event)
      })
      logDroppedScopes(request.log, metadata['scope'], updated)
      return clientInformation(service, updated, token)
    },
  )

  app.delete(
    '/api/oauth/register/:client_id',
    { config: { limit: 'registration' }, schema: routes.delete },
    async (request, reply) => {
      const key = clientKey(request.params.client_id)
      const { token, scheme } = await authorize(request, reply, key)
      await store.transact('client', key, (client) => {
        assertMayConfigure(client, token, scheme)
        const event = eventOf('registration-deleted', client.id, request.ip)
        return accept(undefined, remove('client', client.id), event)
      })
      return reply.code(204).send()
    },
  )
}

// An identifier this server cannot have issued, such as one with a NUL, never reaches the database; no client has the
// empty one.
function clientKey(clientId: string): string {
  return /^[\w-]+$/.test(clientId) ? clientId : ''
}
