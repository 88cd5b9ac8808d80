import type { FastifyRequest, preHandlerAsyncHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import type { AppDeps, Declared } from '../deps.ts'
import {
  type AuthenticationMethod,
  type AuthenticationRealm,
  authenticateClient,
  type ClientAuthentication,
  parseClientCredentials,
} from '../domain/client-authentication.ts'
import type { Client } from '../domain/model.ts'
import type { Parameters } from '../domain/parameters.ts'
import { additions } from '../feature.ts'
import { parametersOf } from './parameters.ts'

/** Finds a client by its identifier. */
export type ClientResolver = (clientId: string) => Promise<Client | undefined>

declare module 'fastify' {
  interface FastifyRequest {
    /** The authenticated client, once `requireClient` has run. */
    client: Client | undefined
  }
  interface FastifyInstance {
    /** Adds a client authentication method that its feature declares. */
    addClientAuthentication(name: string, method: ClientAuthentication): void
    /** Adds a place where clients are found. The first that knows the identifier wins; the store is asked last. */
    addClientResolver(resolve: ClientResolver): void
    resolveClient: ClientResolver
    /**
     * Returns a hook that authenticates the client of a form request, RFC 6749 §2.3, or rejects with `invalid_client`.
     * @param inferClientId Names the client of a request that has no client credentials at all.
     */
    requireClient(
      realm?: AuthenticationRealm,
      inferClientId?: (parameters: Parameters) => Promise<string | undefined>,
    ): preHandlerAsyncHookHandler
  }
}

/** How clients are found and authenticated, and the extension points of both. */
export const clientAuthentication = fp<Pick<AppDeps, 'store' | 'declared'>>(
  async (app, { store, declared }) => {
    const methods = additions<AuthenticationMethod>(
      'client authentication method',
      declared.clientAuthentication,
    )
    const resolvers: ClientResolver[] = []
    app.decorateRequest('client', undefined)
    app.decorate('addClientAuthentication', (name, method) => {
      const { usesSecret } = declared.clientAuthentication[name] ?? {}
      methods.add(name, { ...method, name, ...(usesSecret && { usesSecret }) })
    })
    app.addHook('onReady', async () => methods.assertComplete())
    app.decorate('addClientResolver', (resolve) => void resolvers.push(resolve))
    const resolveClient: ClientResolver = async (clientId) => {
      for (const resolve of resolvers) {
        const client = await resolve(clientId)
        if (client !== undefined) return client
      }
      return store.find('client', clientId)
    }
    app.decorate('resolveClient', (clientId) =>
      resolvers.length === 0 ? store.find('client', clientId) : resolveClient(clientId),
    )
    const proofs = Object.keys(declared.authenticationParameters)
    app.decorate(
      'requireClient',
      (realm = { alwaysUnauthorized: false }, inferClientId): preHandlerAsyncHookHandler =>
        async (request) => {
          const { authorization } = request.headers
          const sent = parametersOf(request.body)
          const isAnonymous =
            authorization === undefined &&
            sent['client_id'] === undefined &&
            proofs.every((name) => sent[name] === undefined)
          const inferred = isAnonymous ? await inferClientId?.(sent) : undefined
          const parameters = inferred === undefined ? sent : { ...sent, client_id: inferred }
          const claimed = parseClientCredentials(methods.added.values(), authorization, parameters, realm)
          const clientId = claimed.clientId ?? (await claimed.method.findClientId?.(claimed.proof ?? ''))
          const client = clientId === undefined ? undefined : await app.resolveClient(clientId)
          const failed = await claimed.method.verify(client, claimed.proof)
          request.client = authenticateClient(client, claimed, failed, realm)
        },
    )
  },
  { name: 'client-authentication' },
)

/** Returns the metadata member that names the algorithms of assertions at an endpoint, RFC 8414 §2, if there are any. */
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
