import { isDeepStrictEqual } from 'node:util'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { AppDeps } from '../deps.ts'
import { auditEvent } from '../domain/audit.ts'
import { accept, remove, update } from '../domain/decision.ts'
import { addressPrefix } from '../http/address-prefix.ts'
import { clientInformation, registrationPolicy } from './client-information.ts'
import { requireJsonObject } from './json-object.ts'
import { assertMayConfigure, requireRegistrationToken, updateClient } from './rules.ts'
import { registrationRoutes } from './schema.ts'

/** RFC 7592: a client that registered itself reads, replaces and deletes its registration. */
export const clientConfiguration: FastifyPluginAsyncTypebox<
  Pick<AppDeps, 'config' | 'service' | 'store' | 'keys' | 'clock' | 'declared'>
> = async (app, { config, service, store, keys, clock, declared }) => {
  const routes = registrationRoutes(declared)
  const eventOf = (name: 'registration-changed' | 'registration-deleted', clientId: string, ip: string) =>
    auditEvent(name, { by: 'client', at: clock(), from: addressPrefix(ip) }, { clientId })

  app.get(
    '/api/oauth/register/:client_id',
    { config: { limit: 'token' }, schema: routes.read },
    async ({ params, headers }) => {
      const token = requireRegistrationToken(headers.authorization)
      const client = await store.find('client', clientKey(params.client_id))
      assertMayConfigure(client, token)
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
    async ({ params, headers, body, ip }) => {
      const token = requireRegistrationToken(headers.authorization)
      const updated = await store.transact('client', clientKey(params.client_id), (client) => {
        assertMayConfigure(client, token)
        const policy = registrationPolicy({ config, service, keys, declared }, client.admitted)
        const replaced = updateClient(client, requireJsonObject(body, config.limits.jsonDepth), policy)
        // An update without a change causes no write and no event.
        if (isDeepStrictEqual(replaced, client)) return accept(client)
        const event = eventOf('registration-changed', client.id, ip)
        return accept(replaced, update('client', replaced), event)
      })
      return clientInformation(service, updated, token)
    },
  )

  app.delete(
    '/api/oauth/register/:client_id',
    { config: { limit: 'registration' }, schema: routes.delete },
    async ({ params, headers, ip }, reply) => {
      const token = requireRegistrationToken(headers.authorization)
      await store.transact('client', clientKey(params.client_id), (client) => {
        assertMayConfigure(client, token)
        const event = eventOf('registration-deleted', client.id, ip)
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
