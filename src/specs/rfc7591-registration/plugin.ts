/**
 * RFC 7591 registration, and RFC 7592 for self-registered clients. rfc7591-registration/rules.ts decides what may be
 * registered, and who may change it; clients added by an operator cannot be reached here. The application sets the
 * rate limit.
 */

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { auditEvent } from '../../domain/audit.ts'
import { readToken } from '../../domain/bearer.ts'
import { accept, insert, update, type Write } from '../../domain/decision.ts'
import { type InitialToken, initialTokenKind, spendInitialToken } from '../../domain/initial-token.ts'
import { hashSecret, secretBytes } from '../../domain/secret.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { acceptOnlyJson } from '../../http/json-bodies.ts'
import { clientConfiguration } from './client-configuration.ts'
import { clientInformation, logDroppedScopes, registrationPolicy } from './client-information.ts'
import { requireJsonObject } from './json-object.ts'
import { assertProven, readInitialToken, registerClient } from './rules.ts'
import { registrationRoutes } from './schema.ts'

/**
 * The client registration endpoint, RFC 7591 §3 and RFC 7591 §3.2.1, and the client configuration endpoint,
 * RFC 7592 §2.
 */
export const registration: FastifyPluginAsyncTypebox<
  Needs<'config' | 'service' | 'store' | 'keys' | 'clock' | 'random' | 'declared'>
> = async (app, { config, service, store, keys, clock, random, declared }) => {
  acceptOnlyJson(app, config)
  // The schemas only document. The domain checks every member, so that each gets the exact code of RFC 7591 §3.2.2.
  app.setValidatorCompiler(() => () => true)
  await app.register(clientConfiguration, { config, service, store, keys, clock, declared })

  app.post(
    '/api/oauth/register',
    {
      bodyLimit: config.limits.registrationBodyBytes,
      config: {
        endpoint: 'registration',
        limit: 'registration',
        unreadableBody: 'invalid_client_metadata',
        bodyLimitSetting: 'limits.registrationBodyBytes',
      },
      schema: registrationRoutes(declared).register,
    },
    async (request, reply) => {
      const { body, headers, ip } = request
      const metadata = requireJsonObject(body)
      const fresh = {
        clientId: random(16),
        clientSecret: random(secretBytes),
        registrationToken: random(secretBytes),
      }
      const sent = readToken(headers.authorization, app.tokenSchemes())
      const initialToken = readInitialToken(sent)
      const confirmation = await app.tokenBindings.prove(request, reply, sent.scheme && initialToken)
      assertProven(sent, confirmation)
      const now = clock()
      const from = addressPrefix(ip)
      const admit = (token?: InitialToken) => {
        const policy = registrationPolicy({ config, service, keys, declared }, token)
        const context = { now, from, confirmation, ...(token && { token }) }
        const registered = registerClient(metadata, policy, fresh, context)
        const { id: clientId, admitted } = registered.client
        const facts = { clientId, ...(admitted && { token: admitted.by }) }
        const event = auditEvent('registration', { by: 'client', at: now, from }, facts)
        const writes: readonly Write[] = [insert('client', registered.client), event]
        return { registered, writes }
      }
      const register = async () => {
        const { registered, writes } = admit()
        await store.write(...writes)
        return registered
      }
      // Of registrations at the same time, no more succeed than the token has uses.
      const registerWith = (text: string) =>
        store.transact(initialTokenKind, hashSecret(text), (found) => {
          const spent = spendInitialToken(found, now)
          const { registered, writes } = admit(spent)
          return accept(registered, update(initialTokenKind, spent), ...writes)
        })
      const { client, clientSecret, registrationToken } = await (initialToken === undefined
        ? register()
        : registerWith(initialToken))
      logDroppedScopes(request.log, metadata['scope'], client)
      return reply.code(201).send({
        ...clientInformation(service, client, registrationToken),
        ...(clientSecret !== undefined && { client_secret: clientSecret }),
      })
    },
  )
}
