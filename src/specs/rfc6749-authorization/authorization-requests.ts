import fp from 'fastify-plugin'
import {
  coreResponseModes,
  type ProvenRedirect,
  parseAuthorizationRequest,
  resolveRedirectUri,
} from '../../domain/authorization-request.ts'
import { check } from '../../domain/check.ts'
import type { AuthorizationRequest, Client } from '../../domain/model.ts'
import type { Parameters } from '../../domain/parameters.ts'
import type { LoadedRequest } from '../../feature/contributions.ts'
import type { Needs } from '../../feature/deps.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The steps that the endpoint and its pages run, in order. */
    readonly authorizationRequests: AuthorizationRequests
  }
}

export interface AuthorizationRequests {
  /** @param from The network of the request, see address-prefix.ts. */
  load(parameters: Parameters, from: string): LoadedRequest | Promise<LoadedRequest>
  /** Validates the client's right to the redirect URI, RFC 6749 §3.1.2.3. A request that is rejected says why. */
  proveRedirect(loaded: LoadedRequest, client: Client): ProvenRedirect
  /** Validates everything else, RFC 6749 §4.1.1 and OpenID Connect Core §3.1.2.2. */
  parse(
    loaded: Omit<LoadedRequest, 'rejection'>,
    client: Client,
    redirect: ProvenRedirect,
  ): Promise<AuthorizationRequest>
  /** Throws what the loader found wrong, and runs the checks of features. */
  assert(client: Client, loaded: LoadedRequest): void
}

/** Loads, checks and ends authorization requests, RFC 6749 §4.1.1. */
export const authorizationRequests = fp<Needs<'service' | 'keys' | 'declared'>>(
  async (app, { service, keys, declared }) => {
    const { seams } = app
    const responseModes = [...coreResponseModes, ...Object.keys(declared.responseModes)]
    // A feature that loads such requests says so; OpenID Connect Discovery §3 has another default.
    app.seams.metadata.add({ request_parameter_supported: false, request_uri_parameter_supported: false })
    app.decorate('authorizationRequests', {
      load: (parameters, from) => seams.requestLoaders.choose(parameters, from) ?? { parameters },
      proveRedirect: ({ parameters, rejection }, client) => {
        try {
          return resolveRedirectUri(parameters, client, responseModes)
        } catch (error) {
          throw rejection ?? error
        }
      },
      parse: async ({ parameters, extra = {}, ...proven }, client, redirect) => {
        const hint = parameters['id_token_hint']
        const hintedSub = typeof hint === 'string' ? await subOfHint(hint) : proven.hintedSub
        const request = parseAuthorizationRequest(parameters, client, redirect, service, hintedSub)
        const added = seams.requestReaders.collect(parameters, extra, client)
        const hasExtra = added !== undefined || Object.keys(extra).length > 0
        return hasExtra ? { ...request, extra: { ...extra, ...added } } : request
      },
      assert: (client, { parameters, extra = {}, rejection }) => {
        if (rejection !== undefined) throw rejection
        seams.requestChecks.assert(client, extra, parameters)
      },
    })

    /** OpenID Connect Core §3.1.2.2: our signature and issuer count, the expiry does not. */
    const subOfHint = async (hint: string): Promise<string> => {
      const claims = await keys.verify(hint, 'JWT')
      check(
        claims?.['iss'] === service.issuer && typeof claims['sub'] === 'string',
        'oidc-core-3.1.2.2-hint-issuer',
        'invalid_request',
        'id_token_hint is not an ID Token of this server',
        { passed: 'id_token_hint is absent or an ID Token of this server' },
      )
      return claims['sub']
    }
  },
  { name: 'authorization-requests' },
)
