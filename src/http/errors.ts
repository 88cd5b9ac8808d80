import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import { OAuthError } from '../domain/errors.ts'
import { StoreUnavailable } from '../storage/store.ts'
import { malformed } from './strict-schema.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Why this request was rejected, for its log line. */
    rejection: OAuthError | undefined
  }
  interface FastifyContextConfig {
    /** The error code of a body this endpoint cannot read; `invalid_request` unless its RFC says otherwise. */
    unreadableBody?: 'invalid_client_metadata'
    /** The setting behind the body limit of this route, to name in the error; absent: `limits.tokenBodyBytes`. */
    bodyLimitSetting?: `limits.${keyof Config['limits']}`
  }
}

/**
 * The one mapper from any error to the wire form of RFC 6749 §5.2. Pages put their own presentation on top with
 * `toOAuthError`.
 */
export const errorMapper = fp(
  async (app) => {
    app.decorateRequest('rejection', undefined)
    app.setErrorHandler((error, request, reply) => sendError(toOAuthError(error, request), reply))
  },
  { name: 'error-mapper' },
)

/** Returns what the client gets of an error. An unexpected one becomes `server_error`, and its cause is only logged. */
export function toOAuthError(error: unknown, request: FastifyRequest): OAuthError {
  if (error instanceof OAuthError) return error
  if (error instanceof StoreUnavailable) {
    return new OAuthError(
      'temporarily_unavailable',
      'the server cannot reach its storage now; try again shortly',
      {
        rule: 'lychgate-storage-available',
        headers: { 'retry-after': '1' },
        cause: error,
      },
    )
  }
  const { code, statusCode, validation, validationContext } = error as Partial<FastifyError>
  const unreadable = request.routeOptions.config?.unreadableBody ?? 'invalid_request'
  if (validation)
    return new OAuthError(unreadable, malformed(validation, validationContext), {
      rule: 'lychgate-request-well-formed',
      cause: error,
    })
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new OAuthError(unreadable, tooLarge(request), {
        rule: 'lychgate-limits-body-bytes',
        status: 413,
      })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_EMPTY_TYPE':
      return new OAuthError(unreadable, acceptedHere(request), {
        rule: 'lychgate-content-type',
        status: 415,
        received: contentTypeOf(request),
      })
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return new OAuthError(unreadable, 'the body is not valid JSON', { rule: 'rfc7591-3-post-json' })
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new OAuthError(unreadable, 'the request is malformed', {
      rule: 'lychgate-request-well-formed',
      status: statusCode,
      cause: error,
    })
  }
  return new OAuthError('server_error', 'the server failed; its log has the cause under this x-request-id', {
    rule: 'rfc6749-4.1.2.1-server-error',
    cause: error,
  })
}

function tooLarge({ routeOptions }: FastifyRequest): string {
  const setting = routeOptions.config?.bodyLimitSetting ?? 'limits.tokenBodyBytes'
  return `the body has more than ${routeOptions.bodyLimit} bytes (${setting})`
}

/** Keeps a rejection for the log line and for `lychgate explain`, under the request id in its response. */
export function recordRejection(rejection: OAuthError, reply: FastifyReply): void {
  reply.request.rejection = rejection
  reply.header('x-request-id', reply.request.id)
}

/** Sends a rejection as JSON, and keeps it for the log line. */
export function sendError(rejection: OAuthError, reply: FastifyReply): FastifyReply {
  recordRejection(rejection, reply)
  reply.server.anyOrigin?.shareError(reply)
  return reply
    .code(rejection.status)
    .headers(rejection.headers)
    .header('content-type', 'application/json; charset=utf-8')
    .header('cache-control', 'no-store')
    .serializer(JSON.stringify)
    .send({ error: rejection.code, error_description: rejection.message })
}

/** Returns the error for a path or a method that is not served: 404, or 405 with `Allow`. */
export function notFound(app: FastifyInstance, request: FastifyRequest): OAuthError {
  const path = request.url.split('?', 1)[0] ?? ''
  const allowed = app.methodsOf(path)
  if (allowed.length === 0) return nothingHere()
  return new OAuthError('invalid_request', 'this method is not allowed here', {
    rule: 'lychgate-method',
    status: 405,
    headers: { allow: allowed.join(', ') },
  })
}

/** Whether an error says only that nothing is there (404, 405): `lychgate explain` has no record of such a request. */
export function isUnserved({ status, detail }: OAuthError): boolean {
  return (status === 404 || status === 405) && detail.page === undefined
}

/** Returns the error for a path that no route has. */
export function nothingHere(): OAuthError {
  return new OAuthError('invalid_request', 'there is nothing at this path', {
    rule: 'lychgate-path',
    status: 404,
  })
}

/** Clients often send JSON to a form endpoint; names the accepted content types. */
function acceptedHere({ server }: FastifyRequest): string {
  const types = ['application/x-www-form-urlencoded', 'application/json']
  const accepted = types.filter((type) => server.hasContentTypeParser(type))
  return accepted.length > 0
    ? `the Content-Type must be ${accepted.join(' or ')}`
    : 'the Content-Type is not accepted here'
}

function contentTypeOf({ headers }: FastifyRequest): string | undefined {
  return headers['content-type']?.slice(0, 100)
}
