import type { FastifyInstance, FastifyReply } from 'fastify'
import type { ErrorDetail, OAuthError } from '../domain/errors.ts'
import type { Seconds } from '../domain/model.ts'
import { isUnserved, recordRejection, toOAuthError } from '../http/errors.ts'
import { msg } from './i18n/i18n.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Returns where a development server shows what it did with a request; absent on other servers. */
    readonly traceUrl?: (requestId: string) => string
  }
}

declare module './pages.ts' {
  interface Pages {
    error: NonNullable<ErrorDetail['page']> & {
      readonly status: number
      /** For the developer of the client, where it is to blame: OAuth error code and description. */
      readonly forDeveloper?: { readonly code: string; readonly description: string }
      /** By which `lychgate explain` finds the request; absent if there is nothing to explain. */
      readonly requestId?: string
      readonly traceUrl?: string
      /** When to try again. */
      readonly retryAfterSeconds?: Seconds
    }
  }
}

/** Shows every error in this scope as a page for the user, RFC 6749 §4.1.2.1 and §3.1.2.4, and never a redirect. */
export function showErrorsAsPages(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => errorPage(toOAuthError(error, request), reply))
}

/** Sends the page of an error, and leaves the error for the log line. */
export function errorPage(rejection: OAuthError, reply: FastifyReply): FastifyReply {
  recordRejection(rejection, reply)
  reply.request.leadsToClient = false
  const { code, message, status, detail, headers } = rejection
  const { server, id } = reply.request
  const forDeveloper = isOfDeveloper(rejection, reply) && { code, description: message }
  const traceUrl = server.traceUrl?.(id)
  const retryAfter = Number(headers['retry-after'])
  const model = {
    ...(detail.page ?? generalWords(status, forDeveloper !== false)),
    status,
    ...(forDeveloper && { forDeveloper }),
    ...(!isUnserved(rejection) && { requestId: id, ...(traceUrl !== undefined && { traceUrl }) }),
    ...(retryAfter > 0 && { retryAfterSeconds: retryAfter }),
  }
  return reply.headers(headers).page('error', model, { status })
}

/**
 * Whether the developer of a client can do something about an error. Clients send browsers to protocol endpoints; all
 * other pages are between the user and this server.
 */
function isOfDeveloper({ status, detail }: OAuthError, { request }: FastifyReply): boolean {
  if (detail.isForDeveloper) return true
  const isOfClient = request.server.endpointAt(request.routeOptions.url ?? '') !== undefined
  return isOfClient && status < 500 && status !== 429
}

function generalWords(status: number, forDeveloper: boolean): NonNullable<ErrorDetail['page']> {
  if (status === 429) return { title: msg('error.tooMany'), advice: msg('error.tooMany.advice') }
  if (status === 404) return { title: msg('error.notFound'), advice: msg('error.notFound.advice') }
  if (status >= 500) return { title: msg('error.ours'), advice: msg('error.ours.advice') }
  const advice = msg(forDeveloper ? 'error.request.advice' : 'error.request.again')
  return { title: msg('error.request.title'), advice }
}
