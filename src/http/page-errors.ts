import type { FastifyInstance, FastifyReply } from 'fastify'
import type { OAuthError } from '../domain/errors.ts'
import { noteRefusal, toOAuthError } from './errors.ts'

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
  const retryAfter = Number(refusal.headers['retry-after'])
  reply.headers(refusal.headers)
  const model = {
    status,
    title,
    advice,
    code: refusal.code,
    description: refusal.message,
    requestId: reply.request.id,
    ...(link && { link }),
    ...(retryAfter > 0 && { retryAfterSeconds: retryAfter }),
  }
  return reply.page('error', model, { status })
}

function generalWords(status: number): {
  title: string
  advice: string
  link?: { url: string; label: string }
} {
  if (status === 429) return { title: 'Too many attempts', advice: 'Wait a little, then try again.' }
  if (status === 404)
    return {
      title: 'There is no such page',
      advice: 'Check the address, or go back to the app you came from.',
    }
  if (status >= 500)
    return { title: 'Something went wrong here', advice: 'Nothing was changed. Try again in a moment.' }
  return {
    title: 'This request cannot be continued',
    advice:
      'Go back to the app you came from and start again. If it happens again, tell its developer what stands below.',
  }
}
