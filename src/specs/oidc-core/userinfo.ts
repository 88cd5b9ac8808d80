import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { errorCodes, type FastifyReply, type FastifyRequest } from 'fastify'
import { bearerError, readToken } from '../../domain/bearer.ts'
import { claimNames, userInfo as describe } from '../../domain/claims.ts'
import { offeredAlgorithms, signingAlgorithms } from '../../domain/key-term.ts'
import type { User } from '../../domain/model.ts'
import type { ClaimsUse } from '../../feature/contributions.ts'
import type { Needs } from '../../feature/deps.ts'
import { securityFor } from '../../http/openapi.ts'
import { assertForm, formBodies, isFormEncoded } from '../../http/parameters.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'

const UserInfoResponse = Type.Object(
  { sub: Type.String() },
  {
    additionalProperties: true,
    description:
      'The claims the scope and the claims parameter open, OpenID Connect Core §5.1; as a JWT for a client that registered userinfo_signed_response_alg.',
  },
)

/**
 * OpenID Connect Core §5.3 and OpenID Connect Core §5.3.2: UserInfo, by GET and by POST with the token in the header
 * or the form.
 */
export const userInfo: FastifyPluginAsyncTypebox<
  Needs<'config' | 'service' | 'store' | 'keys' | 'declared'>
> = async (app, { config, service, store, keys, declared }) => {
  app.seams.metadata.add({
    userinfo_signing_alg_values_supported: offeredAlgorithms(config.keys),
    claims_supported: [
      'sub',
      'iss',
      'aud',
      'exp',
      'iat',
      'auth_time',
      'nonce',
      'acr',
      'amr',
      'at_hash',
      ...Object.keys(declared.signInClaims),
      ...claimNames(service.scopeClaims),
    ],
  })
  await app.register(formBodies, { config })
  const hasToken = ({ headers }: FastifyRequest) =>
    readToken(headers.authorization, app.tokenSchemes()).credentials.kind !== 'absent'
  // OpenID Connect Core §5.3.1: with the token in the header, the body means nothing, and any type of it is accepted.
  const anyBody = { parseAs: 'buffer', bodyLimit: config.limits.tokenBodyBytes } as const
  app.addContentTypeParser('*', anyBody, (request, _body, done) => {
    if (hasToken(request)) done(null, undefined)
    else done(new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE())
  })
  const describeUser = async (user: User, use: ClaimsUse) => {
    const granting = app.seams.grantedClaims.collect(use)
    const granted = granting && (await granting)
    const claims = app.seams.userClaims.collect(user) ?? {}
    const described = describe({ id: user.id, claims }, use.scope, use.requested, service.scopeClaims)
    return granted === undefined ? described : { ...granted, ...described }
  }
  app.seams.previews.add(({ grant, client }) => {
    const { userId, scope, claims: requested } = grant
    if (userId === undefined || !scope.includes('openid')) return undefined
    const use = { target: 'userinfo', userId, clientId: client.id, client, scope, requested } as const
    return store
      .find('user', userId)
      .then(async (user) => (user ? { userinfo: await describeUser(user, use) } : {}))
  })
  const respond = async ({ access }: FastifyRequest, reply: FastifyReply) => {
    if (access === undefined) throw new Error('requireScope has not run on this route')
    const { clientId = '', scope, requestedClaims: requested = { userinfo: [], idToken: [] } } = access
    const [user, client] = await (access.owners ??
      Promise.all([store.find('user', access.sub), app.resolveClient(clientId)]))
    if (user === undefined || access.kind === 'client') {
      throw bearerError(
        'invalid_token',
        access.kind === 'user' ? 'the user no longer exists' : 'the token is of a client, not of a user',
        service.resourceMetadataUrl,
        {
          rule: 'oidc-core-5.3.3-error',
        },
      )
    }
    const use = { target: 'userinfo', userId: user.id, clientId, scope, requested } as const
    const body = await describeUser(user, { ...use, ...(client !== undefined && { client }) })
    const registered = signingAlgorithms.find(
      (name) => name === client?.extra?.['userinfo_signed_response_alg'],
    )
    if (client === undefined || registered === undefined) return body
    const algorithm = keys.usable(registered, app.grantRulesOf(client).idTokenAlgorithms?.[0])
    // OpenID Connect Core §5.3.2: the members iss and aud say whose it is.
    const signed = await keys.sign(algorithm, 'JWT', { ...body, iss: service.issuer, aud: clientId })
    return reply.type('application/jwt').send(signed)
  }
  const schema = {
    tags: ['api'],
    security: securityFor('openid'),
    response: {
      200: UserInfoResponse,
      400: ErrorResponse,
      401: ErrorResponse,
      403: ErrorResponse,
      503: ErrorResponse,
    },
  }
  app.get(
    '/api/oauth/userinfo',
    {
      config: { endpoint: 'userinfo', endpointTitle: 'UserInfo' },
      schema: { ...schema, operationId: 'userInfo', summary: 'Claims about the user' },
      preHandler: app.requireScope('openid'),
    },
    respond,
  )
  app.post(
    '/api/oauth/userinfo',
    {
      schema: {
        ...schema,
        response: { ...schema.response, ...badBody },
        operationId: 'userInfoByPost',
        summary: 'Claims about the user, by POST',
        consumes: ['application/x-www-form-urlencoded'],
      },
      preValidation: function assertFormUnlessToken(request, reply, done) {
        if (hasToken(request) && !isFormEncoded(request.body)) request.body = undefined
        assertForm(request, reply, done)
      },
      preHandler: app.requireScope('openid'),
    },
    respond,
  )
}
