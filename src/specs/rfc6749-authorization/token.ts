import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { check } from '../../domain/check.ts'
import type { Write } from '../../domain/decision.ts'
import type { Client, Grant, Seconds } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { additions } from '../../feature/feature.ts'
import { clientOf, signingAlgorithmsAt } from '../../http/client-authentication.ts'
import { assertForm, formBodies, parametersOf } from '../../http/parameters.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'
import { clientOfRefreshToken } from './grant-types.ts'
import type { TokenResponse } from './issue-tokens.ts'
import { tokenRequest, tokenResponse } from './schema.ts'

/** Does what one grant type asks for an authenticated client that is registered for it. */
export type GrantHandler = (
  client: Client,
  parameters: Parameters,
  request: FastifyRequest,
) => Promise<TokenResponse>

/**
 * Returns writes that fail (`Overtaken`) if what a grant depends on has ended: no token is issued then, and the grant
 * is revoked.
 */
export type TokenConditions = (grant: Grant, client: Client, now: Seconds) => readonly Write[]

declare module 'fastify' {
  interface FastifyInstance {
    /** Adds a grant type, which its feature declares, to the token endpoint and to the metadata. */
    addGrantType(name: string, redeem: GrantHandler): void
    readonly grantTypes: ReadonlyMap<string, GrantHandler>
    /** Adds writes to every transaction in which a code is redeemed or a refresh token rotated. */
    addTokenConditions(conditions: TokenConditions): void
    readonly tokenConditions: readonly TokenConditions[]
  }
}

/**
 * The extension point of the token endpoint: what is not added here, as the password grant (RFC 9700 §2.4), is
 * `unsupported_grant_type`.
 */
export const grantTypes = fp<Pick<AppDeps, 'declared'>>(
  async (app, { declared }) => {
    const handlers = additions<GrantHandler>('grant type', declared.grantTypes)
    app.decorate('grantTypes', handlers.added)
    app.decorate('addGrantType', (name, redeem) => {
      handlers.add(name, redeem)
      app.advertise({ grant_types_supported: [name] })
    })
    const conditions: TokenConditions[] = []
    app.decorate('tokenConditions', conditions)
    app.decorate('addTokenConditions', (one) => void conditions.push(one))
    app.addHook('onReady', async () => handlers.assertComplete())
  },
  { name: 'grant-types', dependencies: ['metadata'] },
)

/**
 * RFC 6749 §3.2: the token endpoint. It owns what every grant type shares (form, client authentication, whether the
 * client may use the grant type); a grant type only does what is its own.
 */
export const token: FastifyPluginAsyncTypebox<AppDeps> = async (app, { config, store, keys, declared }) => {
  app.advertise({ token_endpoint_auth_methods_supported: Object.keys(declared.clientAuthentication) })
  app.advertise(signingAlgorithmsAt('token', declared))
  await app.register(formBodies, { config })
  app.post(
    '/api/oauth/token',
    {
      config: { endpoint: 'token', limit: 'token' },
      schema: {
        operationId: 'token',
        tags: ['tokens'],
        summary: 'Exchange a code, or refresh',
        consumes: ['application/x-www-form-urlencoded'],
        body: tokenRequest(declared),
        response: {
          200: tokenResponse(declared),
          ...badBody,
          401: ErrorResponse,
          429: ErrorResponse,
          503: ErrorResponse,
        },
      },
      preValidation: assertForm,
      preHandler: app.requireClient({ alwaysUnauthorized: false }, clientOfRefreshToken({ store, keys })),
    },
    async (request, reply) => {
      const client = clientOf(request)
      const parameters = parametersOf(request.body)
      const redeem = grantHandler(app.grantTypes, single(parameters, 'grant_type'), client)
      const confirming = app.tokenBindings.confirm(request, reply, client)
      request.confirmation = confirming && (await confirming)
      // To adopt the promise instead would take two more turns of the microtask queue.
      return await redeem(client, parameters, request)
    },
  )
}

function grantHandler(
  handlers: ReadonlyMap<string, GrantHandler>,
  grantType: string | undefined,
  client: Client,
): GrantHandler {
  check(
    grantType !== undefined,
    'rfc6749-4.1.3-grant-type-required',
    'invalid_request',
    'grant_type is missing',
    { passed: 'grant_type is present' },
  )
  const redeem = handlers.get(grantType)
  check(
    redeem !== undefined,
    'rfc6749-5.2-unsupported-grant-type',
    'unsupported_grant_type',
    'grant_type is not one this server offers',
    { received: grantType, passed: 'the server offers this grant_type' },
  )
  check(
    client.grantTypes.includes(grantType),
    'rfc6749-5.2-unauthorized-client',
    'unauthorized_client',
    'this client is not registered for this grant_type',
    {
      stored: client.grantTypes,
      received: grantType,
      passed: 'the client is registered for this grant_type',
    },
  )
  return redeem
}
