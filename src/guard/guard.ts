/**
 * What other Fastify applications import as `lychgate/guard`: the guard, two ways to verify a token, and the metadata
 * that its challenges name. Nothing here needs the authorization server in the same process.
 */
import type { FastifyReply, FastifyRequest, preHandlerAsyncHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import {
  bearerChallenge,
  bearerError,
  type GuardedScope,
  isUnderItsScheme,
  parseBearerField,
  readToken,
  type SentToken,
} from '../domain/bearer.ts'
import { recordCheck } from '../domain/check.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Scope } from '../domain/model.ts'
import { wellKnownUrl } from '../domain/well-known.ts'
import { sendError } from '../http/errors.ts'
import { countOfHeader } from '../http/malformed-http.ts'
import { assertKey, type TokenScheme } from '../http/token-scheme.ts'
import { systemClock } from '../system/system.ts'
import type { Access, VerifyToken } from './access.ts'
import { dpop } from './dpop.ts'
import { type AuthenticationDemand, assertAuthentication } from './step-up.ts'

export type { TokenScheme } from '../http/token-scheme.ts'
export type { Access, Authentication, Rejected, VerifyToken } from './access.ts'
export { type DpopOptions, dpop } from './dpop.ts'
export { type IntrospectionOptions, introspectedBy } from './introspected-by.ts'
export { protectedResourceMetadata, type ResourceMetadataOptions } from './resource-metadata.ts'
export { type SignatureOptions, signedBy } from './signed-by.ts'
export type { AuthenticationDemand } from './step-up.ts'

export interface GuardOptions extends GuardedScope {
  readonly verifyToken: VerifyToken
  /** The identifier of this API: a token whose audience lacks it is rejected, RFC 9700 §2.3. */
  readonly resource: string
  /** Where the metadata of this API is: every challenge points there, RFC 9728 §5.1. Absent: its well-known URL. */
  readonly resourceMetadata?: string
  /** The schemes for tokens that are bound to a key of their client. Absent: DPoP; []: bearer tokens only. */
  readonly schemes?: readonly TokenScheme[]
  /** Seconds since the epoch, for the age of a sign-in. Absent: those of the system. */
  readonly clock?: () => number
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined for an anonymous caller. */
    access: Access | undefined
  }
  interface FastifyInstance {
    /**
     * A preHandler: the caller's token must hold every one of these scopes; a caller without a token follows
     * `anonymous`.
     */
    requireScope(...scope: readonly string[]): preHandlerAsyncHookHandler
    /**
     * A preHandler after that of requireScope: the user must have signed in recently enough, and by one of these
     * classes. A caller without a token is rejected, and so is a client that acts for itself.
     */
    requireAuthentication(demand: AuthenticationDemand): preHandlerAsyncHookHandler
  }
}

/**
 * Guards an API with bearer tokens, RFC 6750. A bad token is rejected and never falls back to anonymous; another
 * authentication scheme, and a token in the query (OAuth 2.1 §5.1), do not count as a token. The guard itself sends
 * the response to a rejected request, with a challenge and `{ error, error_description }`, not the application's
 * error handler.
 */
export const guard = fp<GuardOptions>(
  async (app, options) => {
    const {
      resource,
      resourceMetadata = wellKnownUrl(resource, 'oauth-protected-resource'),
      schemes = [dpop()],
    } = options
    const checks = { ...options, resourceMetadata, schemes }
    const { clock = systemClock } = options
    app.decorateRequest('access', undefined)
    app.decorate('requireScope', (...scope: readonly string[]) =>
      responding((request, reply) => admit(request, reply, scope, checks)),
    )
    app.decorate('requireAuthentication', (demand) =>
      responding(async ({ access }) => {
        if (access === undefined) throw noToken(checks)
        const { confirmation = {} } = access
        const scheme = schemes.find(({ member }) => Object.hasOwn(confirmation, member))
        assertAuthentication(access, demand, clock(), { scheme, resourceMetadata })
      }),
    )
  },
  { name: 'guard', fastify: '5.x' },
)

/** Sends the response to a request that the check rejects. */
function responding(
  check: (request: FastifyRequest, reply: FastifyReply) => Promise<void>,
): preHandlerAsyncHookHandler {
  return async function requireAccess(request, reply) {
    try {
      await check(request, reply)
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error
      if (error.status >= 500) request.log.error({ err: error }, 'an access token could not be verified')
      return sendError(error, reply)
    }
  }
}

/**
 * RFC 6750 §3.1: a request without a token gets a challenge without an error code, and RFC 9449 §7.2: one for each
 * scheme. Bearer comes first, as some clients read only the first one.
 */
function noToken({ resourceMetadata, schemes }: Pick<Checks, 'resourceMetadata' | 'schemes'>): OAuthError {
  const challenges = [
    bearerChallenge({ resourceMetadata }),
    ...schemes.map((scheme) => bearerChallenge({ scheme })),
  ]
  return new OAuthError('invalid_token', 'this needs an access token', {
    rule: 'rfc6750-3.1-no-error-without-credentials',
    headers: { 'www-authenticate': challenges.join(', ') },
  })
}

type Checks = GuardOptions & { readonly resourceMetadata: string; readonly schemes: readonly TokenScheme[] }

/** Sets the access of a request, or rejects it. */
async function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  needed: Scope,
  options: Checks,
): Promise<void> {
  const { verifyToken, resource, resourceMetadata, anonymous } = options
  const { scheme, credentials } = credentialsOf(request, options)
  if (credentials.kind === 'absent') {
    if (anonymous === 'allow') {
      recordCheck('service-5-no-token-anonymous', 'no token: served as anonymous')
      return
    }
    throw noToken(options)
  }
  const access = credentials.kind === 'token' ? await verifyToken(credentials.token) : undefined
  if (access === undefined || !('audience' in access)) {
    throw invalidToken(options, { scheme, rule: 'rfc6750-3.1-invalid-token-401', stored: access?.rejected })
  }
  if (!access.audience.includes(resource)) {
    const rule = 'rfc9700-2.3-rs-checks-audience'
    throw invalidToken(options, { scheme, rule, stored: access.audience, received: resource })
  }
  const { confirmation } = access
  if (credentials.kind !== 'token' || !isUnderItsScheme(scheme, confirmation))
    throw wrongScheme(scheme, confirmation, options)
  if (scheme !== undefined && confirmation !== undefined) {
    const { token } = credentials
    await assertKey(scheme, { request, reply, token, confirmation, resource }, resourceMetadata)
  }
  recordCheck(
    'rfc9700-2.3-rs-checks-audience',
    'the token is valid and meant for this API',
    access.audience,
    resource,
  )
  if (needed.every((name) => access.scope.includes(name))) {
    recordCheck(
      'rfc6750-3.1-insufficient-scope-403',
      'the token has the required scope',
      access.scope,
      needed,
    )
    request.access = access
    return
  }
  throw bearerError('insufficient_scope', 'the access token lacks a scope this needs', resourceMetadata, {
    rule: 'rfc6750-3.1-insufficient-scope-403',
    scheme,
    scope: needed,
    stored: access.scope,
  })
}

/** Makes the same error for every invalid token, RFC 6750 §3.1; the detail is logged. */
function invalidToken({ resourceMetadata }: Checks, detail: Parameters<typeof bearerError>[3]): OAuthError {
  const description = 'the access token is malformed, expired, revoked or not for this API'
  return bearerError('invalid_token', description, resourceMetadata, detail)
}

/** Makes the error for a token that is not used under the scheme that it was issued for, RFC 9449 §7.2. */
function wrongScheme(
  scheme: TokenScheme | undefined,
  confirmation: Access['confirmation'],
  options: Checks,
): OAuthError {
  const needed = confirmation && options.schemes.find(({ member }) => Object.hasOwn(confirmation, member))
  return invalidToken(options, {
    scheme: needed ?? scheme,
    rule: 'rfc9449-7.2-no-downgrade',
    stored: confirmation === undefined ? 'a bearer token' : `bound by ${Object.keys(confirmation)}`,
    received: scheme?.name ?? 'Bearer',
  })
}

/** RFC 6750 §2: one token, by one method. */
function credentialsOf(request: FastifyRequest, options: Checks): SentToken<TokenScheme> {
  const headers = countOfHeader(request.raw.rawHeaders, 'authorization')
  const field = options.formToken ? formField(request) : undefined
  if (headers > 1 || (headers === 1 && field !== undefined)) {
    throw bearerError('invalid_request', 'send one access token, by one method', options.resourceMetadata, {
      rule: 'rfc6750-2-one-method',
    })
  }
  if (field !== undefined) return { scheme: undefined, credentials: parseBearerField(field) }
  return readToken(request.headers.authorization, options.schemes)
}

function formField({ body }: FastifyRequest): string | undefined {
  if (typeof body !== 'object' || body === null || !('access_token' in body)) return undefined
  return typeof body.access_token === 'string' ? body.access_token : undefined
}
