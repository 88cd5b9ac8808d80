import type { FastifyRequest, preHandlerAsyncHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import {
  type AuthenticationMethod,
  type AuthenticationRealm,
  authenticateClient,
  parseClientCredentials,
} from '../domain/client-authentication.ts'
import type { Client } from '../domain/model.ts'
import type { Parameters } from '../domain/parameters.ts'
import type { LookupReason } from '../feature/contributions.ts'
import type { Declared, Needs } from '../feature/deps.ts'
import { addressPrefix } from './address-prefix.ts'
import { parametersOf } from './parameters.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The authenticated client, once `requireClient` has run; at the authorization endpoint the one that is named. */
    client: Client | undefined
    /** The id of the client that did not authenticate, for the log. */
    namedClient: string | undefined
  }
  interface FastifyInstance {
    /**
     * Finds a client by its identifier.
     * @param from The network of the request, see address-prefix.ts; needed for a client of which nothing is stored.
     */
    resolveClient(clientId: string, reason?: LookupReason, from?: string): Promise<Client | undefined>
    /** Stores a client that a signed-in user approves, if it is not stored; returns the one that is stored then. */
    keepClient(client: Client): Promise<Client>
    /**
     * Returns a hook that authenticates the client of a form request, RFC 6749 §2.3, or rejects with `invalid_client`.
     * @param inferClientId Names the client of a request that has no client credentials at all.
     */
    requireClient(
      realm?: AuthenticationRealm,
      inferClientId?: (parameters: Parameters) => Promise<string | undefined>,
      reason?: 'authentication' | 'push' | 'device',
    ): preHandlerAsyncHookHandler
  }
}

/** How clients are found and authenticated. */
export const clientAuthentication = fp<Needs<'store' | 'declared'>>(
  async (app, { store, declared }) => {
    const { seams } = app
    let methods: readonly AuthenticationMethod[] = []
    app.addHook('onReady', async () => {
      methods = [...seams.clientAuthentication.added].map(([name, method]) => {
        const { usesSecret } = declared.clientAuthentication[name] ?? {}
        return { ...method, name, ...(usesSecret && { usesSecret }) }
      })
    })
    app.decorateRequest('client', undefined)
    app.decorateRequest('namedClient', undefined)
    app.decorate('resolveClient', (clientId, reason = 'display', from = '') => {
      const resolver = seams.clientResolvers.choose(clientId)
      return resolver === undefined ? store.find('client', clientId) : resolver.find(clientId, reason, from)
    })
    app.decorate('keepClient', async (client) => {
      // What is stored has no such network.
      if (client.published?.namedFrom === undefined) return client
      return (await seams.clientResolvers.choose(client.id)?.keep?.(client)) ?? client
    })
    const proofs = Object.keys(declared.authenticationParameters)
    app.decorate(
      'requireClient',
      (
        realm = { alwaysUnauthorized: false },
        inferClientId,
        reason = 'authentication',
      ): preHandlerAsyncHookHandler =>
        async function requireClient(request) {
          const { authorization } = request.headers
          const sent = parametersOf(request.body)
          const isAnonymous =
            authorization === undefined &&
            sent['client_id'] === undefined &&
            proofs.every((name) => sent[name] === undefined)
          const inferred = isAnonymous ? await inferClientId?.(sent) : undefined
          const parameters = inferred === undefined ? sent : { ...sent, client_id: inferred }
          const claimed = parseClientCredentials(methods, authorization, parameters, realm)
          const clientId = claimed.clientId ?? (await claimed.method.findClientId?.(claimed.proof ?? ''))
          const from = clientId && seams.clientResolvers.choose(clientId) ? addressPrefix(request.ip) : ''
          const client = clientId === undefined ? undefined : await app.resolveClient(clientId, reason, from)
          request.namedClient = client?.id
          const verifying = claimed.method.verify(client, claimed.proof)
          const failed = verifying instanceof Promise ? await verifying : verifying
          const authenticated = authenticateClient(client, claimed, failed, realm)
          seams.authenticatedClient.assert({ client: authenticated, proof: claimed.proof, realm })
          request.client = authenticated
        },
    )
  },
  { name: 'client-authentication' },
)

/**
 * Returns the metadata member that names the algorithms of assertions at an endpoint, RFC 8414 §2, if there are any.
 */
export function signingAlgorithmsAt(
  endpoint: 'token' | 'revocation' | 'introspection',
  { clientAuthentication }: Declared,
): Readonly<Record<string, readonly string[]>> {
  const algorithms = Object.values(clientAuthentication).flatMap(
    ({ signingAlgorithms = [] }) => signingAlgorithms,
  )
  return algorithms.length === 0
    ? {}
    : { [`${endpoint}_endpoint_auth_signing_alg_values_supported`]: algorithms }
}

/** The client that `requireClient` stored on the request. */
export function clientOf(request: FastifyRequest): Client {
  if (request.client === undefined) throw new Error('requireClient has not run on this route')
  return request.client
}
