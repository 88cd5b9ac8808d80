import type { FastifyInstance, FastifyReply } from 'fastify'
import type { ErrorDetail, OAuthError } from '../domain/errors.ts'
import { recordRejection, toOAuthError } from '../http/errors.ts'
import { msg } from './i18n/catalogue.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Where a development server shows what it did with a request; no other has it. */
    readonly traceUrl?: (requestId: string) => string
  }
}

/**
 * Makes every rejection in this scope a page for the user, RFC 6749 §4.1.2.1 and RFC 6749 §3.1.2.4: never a redirect.
 */
export function showErrorsAsPages(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => errorPage(toOAuthError(error, request), reply))
}

/** The error page of a rejection, left for the log line too. */
export function errorPage(rejection: OAuthError, reply: FastifyReply): FastifyReply {
  recordRejection(rejection, reply)
  const { status, detail } = rejection
  const { title, advice, link } = detail.page ?? generalWords(status)
  const { server, id } = reply.request
  const traceUrl = server.traceUrl?.(id)
  const retryAfter = Number(rejection.headers['retry-after'])
  reply.headers(rejection.headers)
  const model = {
    status,
    title,
    advice,
    code: rejection.code,
    description: rejection.message,
    requestId: id,
    ...(traceUrl !== undefined && { traceUrl }),
    ...(link && { link }),
    ...(retryAfter > 0 && { retryAfterSeconds: retryAfter }),
  }
  return reply.page('error', model, { status })
}

function generalWords(status: number): NonNullable<ErrorDetail['page']> {
  if (status === 429) return { title: msg('error.tooMany'), advice: msg('error.tooMany.advice') }
  if (status === 404) return { title: msg('error.notFound'), advice: msg('error.notFound.advice') }
  if (status >= 500) return { title: msg('error.ours'), advice: msg('error.ours.advice') }
  return { title: msg('error.request.title'), advice: msg('error.request.advice') }
}
