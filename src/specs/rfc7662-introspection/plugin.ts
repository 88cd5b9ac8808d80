import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { mayPresent, type TokenFacts } from '../../domain/access-token.ts'
import { check, recordCheck } from '../../domain/check.ts'
import { type DeclaredBindings, tokenTypeOf } from '../../domain/confirmation.ts'
import { jtiOf, signInOf, subjectOf } from '../../domain/jwt-access-token.ts'
import { formatScope } from '../../domain/scope.ts'
import type { Needs } from '../../feature/deps.ts'
import { type Service, tokenClaimsOf } from '../../feature/service.ts'
import { clientOf, signingAlgorithmsAt } from '../../http/client-authentication.ts'
import { assertForm, formBodies, parametersOf } from '../../http/parameters.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'
import { type TokenReader, tokenReader } from '../../http/token-reader.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The token that is introspected, if it is read ahead. */
    foundToken: ReturnType<TokenReader['find']> | undefined
  }
}

const IntrospectionRequest = Type.Object({
  token: Type.Optional(Type.String({ description: 'The access or refresh token.' })),
  token_type_hint: Type.Optional(
    Type.String({ description: 'Accepted and not needed: every kind is found.' }),
  ),
  client_id: Type.Optional(Type.String()),
})

const members = {
  active: Type.Boolean(),
  scope: Type.Optional(Type.String()),
  client_id: Type.Optional(Type.String()),
  username: Type.Optional(Type.String()),
  token_type: Type.Optional(Type.String()),
  exp: Type.Optional(Type.Integer()),
  iat: Type.Optional(Type.Integer()),
  sub: Type.Optional(Type.String()),
  aud: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
  iss: Type.Optional(Type.String()),
  jti: Type.Optional(Type.String()),
  acr: Type.Optional(
    Type.String({ description: 'The authentication context class of the sign-in, RFC 9470 §6.2.' }),
  ),
  auth_time: Type.Optional(Type.Integer({ description: 'When the user signed in, RFC 9470 §6.2.' })),
  cnf: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: 'The key of the client that it is bound to, RFC 7800 §3.1.',
    }),
  ),
}

/** Describes the response: the members of every server, and the claims that features declare. */
function introspectionResponse({ tokenClaims }: Service) {
  const claims = Object.entries(tokenClaims).map(([name, { schema }]) => [name, Type.Optional(schema)])
  return Type.Object(
    { ...members, ...Object.fromEntries(claims) },
    {
      title: 'Introspection',
      description: 'The state of a token, RFC 7662 §2.2.',
      additionalProperties: false,
    },
  )
}

/** RFC 7662 §2.1: the introspection endpoint. domain/access-token.ts decides who may present a token. */
export const introspection: FastifyPluginAsyncTypebox<
  Needs<'config' | 'store' | 'keys' | 'clock' | 'service' | 'declared'>
> = async (app, deps) => {
  const { config, service, store, clock, declared } = deps
  app.seams.metadata.add({
    introspection_endpoint_auth_methods_supported: Object.keys(declared.clientAuthentication),
    ...signingAlgorithmsAt('introspection', declared),
  })
  await app.register(formBodies, { config })
  const readToken = tokenReader(deps)
  app.decorateRequest('foundToken', undefined)
  /** Reads the token while the client is found and authenticated. */
  const readAhead = async (request: FastifyRequest) => {
    const { token } = parametersOf(request.body)
    if (typeof token !== 'string') return
    request.foundToken = readToken.find(token)
    // The request that awaits it gets the error. For a rejected client none does.
    request.foundToken.catch(() => undefined)
  }

  app.post(
    '/api/oauth/introspect',
    {
      config: { endpoint: 'introspection', limit: 'token' },
      schema: {
        operationId: 'introspect',
        tags: ['tokens'],
        summary: 'Introspect a token',
        consumes: ['application/x-www-form-urlencoded'],
        body: Type.Object({ ...IntrospectionRequest.properties, ...declared.authenticationParameters }),
        response: {
          200: introspectionResponse(service),
          ...badBody,
          401: ErrorResponse,
          429: ErrorResponse,
          503: ErrorResponse,
        },
      },
      preValidation: assertForm,
      preHandler: [...(store.isFar ? [readAhead] : []), app.requireClient({ alwaysUnauthorized: true })],
    },
    async (request) => {
      const { token } = request.body
      check(token !== undefined, 'rfc7662-2.1-token-required', 'invalid_request', 'token is missing', {
        passed: 'token is present',
      })
      const facts = await readToken(token, clock(), request.foundToken)
      if (facts.kind === 'dead')
        recordCheck(
          'rfc7662-2.2-inactive-form',
          'the token is not active; the response says no more',
          facts.why,
        )
      const mayKnow = facts.kind !== 'dead' && mayPresent(clientOf(request), facts, service.resources)
      return mayKnow ? describe(facts, service, declared.tokenBindings) : { active: false }
    },
  )
}

/** RFC 7662 §2.2. A refresh token has no token_type, as no API accepts it. */
function describe(
  facts: TokenFacts,
  service: Service,
  bindings: DeclaredBindings,
): Static<ReturnType<typeof introspectionResponse>> {
  const [audience, ...others] = facts.resource
  return {
    active: true,
    scope: formatScope(facts.scope),
    client_id: facts.grant.clientId,
    ...(facts.kind === 'access' && { token_type: tokenTypeOf(facts.confirmation, bindings) }),
    exp: facts.expiresAt,
    iat: facts.issuedAt,
    sub: subjectOf(facts.grant),
    aud: audience !== undefined && others.length === 0 ? audience : [...facts.resource],
    iss: service.issuer,
    jti: jtiOf(facts.grant, facts.tokenId),
    ...(facts.kind === 'access' && {
      ...signInOf(facts.grant),
      ...tokenClaimsOf(service, facts.grant, facts.grant.client),
    }),
    ...(facts.confirmation && { cnf: facts.confirmation }),
  }
}
