import type { FastifyRequest, preHandlerAsyncHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import {
  type AuthenticationRealm,
  authenticateClient,
  parseClientCredentials,
} from '../domain/client-authentication.ts'
import type { Client } from '../domain/model.ts'
import type { Parameters } from '../domain/parameters.ts'
import type { Store } from '../storage/store.ts'
import { parametersOf } from './parameters.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The authenticated client, once `requireClient` has run. */
    client: Client | undefined
  }
}

/** Adds `request.client`. */
export const clientAuthentication = fp(
  async (app) => {
    app.decorateRequest('client', undefined)
  },
  { name: 'client-authentication' },
)

/**
 * Authenticates the client of a form request, RFC 6749 §2.3, or rejects with `invalid_client`.
 * @param inferClientId Names the client of a request that has no client credentials at all.
 */
export function requireClient(
  store: Store,
  realm: AuthenticationRealm = { alwaysUnauthorized: false },
  inferClientId?: (parameters: Parameters) => Promise<string | undefined>,
): preHandlerAsyncHookHandler {
  return async (request) => {
    const { authorization } = request.headers
    const sent = parametersOf(request.body)
    const isAnonymous =
      authorization === undefined && sent['client_id'] === undefined && sent['client_secret'] === undefined
    const inferred = isAnonymous ? await inferClientId?.(sent) : undefined
    const parameters = inferred === undefined ? sent : { ...sent, client_id: inferred }
    const credentials = parseClientCredentials(authorization, parameters, realm)
    request.client = authenticateClient(await store.find('client', credentials.clientId), credentials, realm)
  }
}

/** The client `requireClient` put on the request. */
export function clientOf(request: FastifyRequest): Client {
  if (request.client === undefined) throw new Error('requireClient has not run on this route')
  return request.client
}
