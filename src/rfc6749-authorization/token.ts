import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from '@sinclair/typebox'
import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import { check } from '../domain/check.ts'
import { handleBelongsTo } from '../domain/handle.ts'
import { type Client, clientAuthenticationMethods, type GrantType } from '../domain/model.ts'
import type { Parameters } from '../domain/parameters.ts'
import type { IssuedTokens, TokenMembers } from '../domain/token-members.ts'
import { addressPrefix } from '../http/address-prefix.ts'
import { clientOf, requireClient } from '../http/client-authentication.ts'
import { assertForm, formBodies } from '../http/parameters.ts'
import { badBody, ErrorResponse } from '../http/schema.ts'
import { TokenMembers as OwnMembers, TokenRequest, tokenResponse } from './schema.ts'

export type TokenParameters = Static<typeof TokenRequest>
export type TokenAnswer = Static<ReturnType<typeof Type.Object<typeof OwnMembers>>> &
  Readonly<Record<string, unknown>>

/**
 * Does what one grant type asks for an authenticated client that is registered for it.
 * @param from The network the request came from, for the audit log.
 */
export type GrantHandler = (client: Client, parameters: TokenParameters, from: string) => Promise<TokenAnswer>

declare module 'fastify' {
  interface FastifyInstance {
    /** Adds a grant type to the token endpoint and to the metadata. */
    addGrantType(name: GrantType, redeem: GrantHandler): void
    readonly grantTypes: ReadonlyMap<string, GrantHandler>
    /** Adds members to every token response; each declares its schema as `tokenMembers` of its feature. */
    addTokenMembers(make: TokenMembers): void
    /** Makes all of them. */
    makeTokenMembers: TokenMembers
  }
}

/**
 * The extension point of the token endpoint: what is not added here, as the password grant (RFC 9700 §2.4), is
 * `unsupported_grant_type`.
 */
export const grantTypes = fp(
  async (app) => {
    const handlers = new Map<string, GrantHandler>()
    app.decorate('grantTypes', handlers)
    const makers: TokenMembers[] = []
    app.decorate('addTokenMembers', (make: TokenMembers) => void makers.push(make))
    app.decorate('makeTokenMembers', async (issued: IssuedTokens) => {
      const members: Record<string, unknown> = {}
      for (const make of makers) Object.assign(members, await make(issued))
      return members
    })
    app.decorate('addGrantType', (name: GrantType, redeem: GrantHandler) => {
      handlers.set(name, redeem)
      app.advertise({ grant_types_supported: [name] })
    })
  },
  { name: 'grant-types', dependencies: ['metadata'] },
)

/**
 * RFC 6749 §3.2: the token endpoint. It owns what every grant type shares (form, client authentication, whether the
 * client may use the grant type); a grant type only does what is its own.
 */
export const token: FastifyPluginAsyncTypebox<
  Pick<AppDeps, 'config' | 'store' | 'keys' | 'tokenMembers'>
> = async (app, { config, store, keys, tokenMembers }) => {
  app.advertise({
    token_endpoint_auth_methods_supported: clientAuthenticationMethods,
  })
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
        body: TokenRequest,
        response: {
          200: Type.Object({ ...OwnMembers, ...tokenMembers }, tokenResponse),
          ...badBody,
          401: ErrorResponse,
          429: ErrorResponse,
          503: ErrorResponse,
        },
      },
      preValidation: assertForm,
      preHandler: requireClient(store, { alwaysUnauthorized: false }, clientOfRefreshToken({ store, keys })),
    },
    async (request) => {
      const client = clientOf(request)
      const redeem = grantHandler(app.grantTypes, request.body.grant_type, client)
      return redeem(client, request.body, addressPrefix(request.ip))
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
    client.grantTypes.some((name) => name === grantType),
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

/**
 * The public client a genuine refresh token was issued to, RFC 6749 §6: a refresh may leave out `client_id`, which RFC
 * 6749 §3.2.1 demands of the authorization_code request only. Spring Security 6 sends none.
 * @throws {OAuthError} `invalid_grant` for a genuine token whose grant is gone.
 */
function clientOfRefreshToken({ store, keys }: Pick<AppDeps, 'store' | 'keys'>) {
  return async (parameters: Parameters): Promise<string | undefined> => {
    const { grant_type: grantType, refresh_token: refreshToken } = parameters
    if (grantType !== 'refresh_token' || typeof refreshToken !== 'string') return undefined
    const handle = await keys.open(refreshToken, 'refresh')
    if (handle === undefined) return undefined
    const grant = await store.find('grant', handle.grantId)
    check(
      grant !== undefined && handleBelongsTo(handle, grant),
      'rfc6749-6-invalid-refresh',
      'invalid_grant',
      'the refresh token is unknown',
      { passed: 'the refresh token is genuine' },
    )
    const client = await store.find('client', grant.clientId)
    return client?.authenticationMethod === 'none' ? client.id : undefined
  }
}
