import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { auditGrant } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { grantIdOfJwt, tokenIdOfJwt } from '../../domain/jwt-access-token.ts'
import type { Seconds } from '../../domain/model.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { clientOf, signingAlgorithmsAt } from '../../http/client-authentication.ts'
import { assertForm, formBodies } from '../../http/parameters.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'
import { grantOfTokenKey } from '../../storage/store.ts'
import { revokeJwt, revokeToken } from './rules.ts'

const RevocationRequest = Type.Object({
  token: Type.Optional(Type.String({ description: 'The access or refresh token.' })),
  token_type_hint: Type.Optional(
    Type.String({ description: 'Accepted and not needed: every kind is found.' }),
  ),
  client_id: Type.Optional(Type.String()),
})

/**
 * RFC 7009 §2: the revocation endpoint. rfc7009-revocation/rules.ts decides what a revocation ends. Every kind of
 * token is found whatever `token_type_hint` is, RFC 7009 §2.1 and RFC 7009 §2.2, and can be revoked, so the error of
 * RFC 7009 §2.2.1 is never sent.
 */
export const revocation: FastifyPluginAsyncTypebox<
  Needs<'config' | 'store' | 'keys' | 'clock' | 'declared'>
> = async (app, { config, store, keys, clock, declared }) => {
  app.seams.metadata.add({
    revocation_endpoint_auth_methods_supported: Object.keys(declared.clientAuthentication),
    ...signingAlgorithmsAt('revocation', declared),
  })
  await app.register(formBodies, { config })
  app.post(
    '/api/oauth/revoke',
    {
      config: { endpoint: 'revocation', limit: 'token' },
      schema: {
        operationId: 'revoke',
        tags: ['tokens'],
        summary: 'Revoke a token',
        consumes: ['application/x-www-form-urlencoded'],
        body: Type.Object({ ...RevocationRequest.properties, ...declared.authenticationParameters }),
        response: {
          200: Type.Unsafe<undefined>({
            type: 'null',
            description: 'The token is invalid now, or was never valid.',
          }),
          ...badBody,
          401: ErrorResponse,
          429: ErrorResponse,
          503: ErrorResponse,
        },
      },
      preValidation: assertForm,
      preHandler: app.requireClient(),
    },
    async (request, reply) => {
      const { token } = request.body
      check(token !== undefined, 'rfc7009-2.1-token-required', 'invalid_request', 'token is missing', {
        passed: 'token is present',
      })
      const [client, now] = [clientOf(request), clock()]
      const handle = await keys.open(token, 'access', 'refresh')
      const context = { at: now, from: addressPrefix(request.ip) }
      if (handle)
        await store.transact('grantOfToken', grantOfTokenKey(handle.grantId, handle.tokenId), (grant) =>
          auditGrant(revokeToken(handle, grant, client, now), grant, () => context),
        )
      else await revokeSigned(token, client.id, context)
      return reply.code(200).send()
    },
  )

  const revokeSigned = async (token: string, clientId: string, context: { at: Seconds; from: string }) => {
    const claims = await keys.verify(token, 'at+jwt')
    const grantId = claims && grantIdOfJwt(claims)
    if (grantId)
      await store.transact('grantOfToken', grantOfTokenKey(grantId, tokenIdOfJwt(claims)), (grant) =>
        auditGrant(revokeJwt(claims, grant, clientId, context.at), grant, () => context),
      )
  }
}
