import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { check } from '../../domain/check.ts'
import type { Client } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { GrantHandler, ProofUse } from '../../feature/contributions.ts'
import type { Needs } from '../../feature/deps.ts'
import { repeatableOf } from '../../feature/feature.ts'
import { clientOf, signingAlgorithmsAt } from '../../http/client-authentication.ts'
import { assertForm, formBodies, parametersOf } from '../../http/parameters.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'
import { insertOnce } from '../../storage/store.ts'
import { clientOfRefreshToken, readGrantAhead } from './grant-types.ts'
import { tokenRequest, tokenResponse } from './schema.ts'

/**
 * RFC 6749 §3.2: the token endpoint. It owns what every grant type shares (form, client authentication, whether the
 * client may use the grant type); a grant type only does what is its own. What
 * is not added, as the password grant (RFC 9700 §2.4), is `unsupported_grant_type`.
 */
export const token: FastifyPluginAsyncTypebox<Needs<'config' | 'store' | 'keys' | 'declared'>> = async (
  app,
  { config, store, keys, declared },
) => {
  app.seams.metadata.add({
    token_endpoint_auth_methods_supported: Object.keys(declared.clientAuthentication),
  })
  app.seams.metadata.add(signingAlgorithmsAt('token', declared))
  await app.register(formBodies, { config })
  app.post(
    '/api/oauth/token',
    {
      config: { endpoint: 'token', limit: 'token', repeats: repeatableOf(declared.tokenParameters) },
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
      preHandler: [
        ...(store.isFar ? [readGrantAhead({ store, keys })] : []),
        app.requireClient({ alwaysUnauthorized: false }, clientOfRefreshToken({ store, keys })),
      ],
    },
    async (request, reply) => {
      const client = clientOf(request)
      const parameters = parametersOf(request.body)
      const redeem = grantHandler(app.seams.grantTypes.added, single(parameters, 'grant_type'), client)
      const { ahead } = request
      const later = ahead && ((use: ProofUse) => void Object.assign(ahead, { use }))
      try {
        const confirming = app.tokenBindings.confirm(request, reply, client, later)
        request.confirmation = confirming && (await confirming)
        // To adopt the promise instead would take two more turns of the microtask queue.
        return await redeem(client, parameters, request)
      } finally {
        // What was rejected before anything was decided about the grant.
        if (ahead?.use !== undefined) ahead.use.assertFirst(await insertOnce(store, ahead.use.write))
      }
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
