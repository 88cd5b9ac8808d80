import type { FastifyInstance, FastifyReply } from 'fastify'
import type { OAuthError, RefusalDetail } from '../domain/errors.ts'
import { says } from '../texts/catalogue.ts'
import { noteRefusal, toOAuthError } from './errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Where a development server shows what it did with a request; no other has it. */
    readonly traceUrl?: (requestId: string) => string
  }
}

/**
 * Makes every refusal in this scope a page for the person, RFC 6749 §4.1.2.1 and RFC 6749 §3.1.2.4: never a redirect.
 */
export function showErrorsAsPages(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => errorPage(toOAuthError(error, request), reply))
}

/** The error page of a refusal, left for the log line too. */
export function errorPage(refusal: OAuthError, reply: FastifyReply): FastifyReply {
  noteRefusal(refusal, reply)
  const { status, detail } = refusal
  const { title, advice, link } = detail.page ?? generalWords(status)
  const { server, id } = reply.request
  const traceUrl = server.traceUrl?.(id)
  const retryAfter = Number(refusal.headers['retry-after'])
  reply.headers(refusal.headers)
  const model = {
    status,
    title,
    advice,
    code: refusal.code,
    description: refusal.message,
    requestId: id,
    ...(traceUrl !== undefined && { traceUrl }),
    ...(link && { link }),
    ...(retryAfter > 0 && { retryAfterSeconds: retryAfter }),
  }
  return reply.page('error', model, { status })
}

function generalWords(status: number): NonNullable<RefusalDetail['page']> {
  if (status === 429) return { title: says('error.tooMany'), advice: says('error.tooMany.advice') }
  if (status === 404) return { title: says('error.notFound'), advice: says('error.notFound.advice') }
  if (status >= 500) return { title: says('error.ours'), advice: says('error.ours.advice') }
  return { title: says('error.request.title'), advice: says('error.request.advice') }
}
