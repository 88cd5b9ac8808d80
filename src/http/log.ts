import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { ErrorDetail, OAuthError } from '../domain/errors.ts'
import { boundedList, boundedText } from './bounded.ts'

type Told = NonNullable<ErrorDetail['stored']>

/**
 * One line a request: what was asked, what came of it, and why it was rejected. Never a query, a body or a header,
 * RFC 9700 §4.9.2.
 */
export const requestLog = fp(
  async (app) => {
    app.addHook('onResponse', (request, reply, done) => {
      const line = describe(request, reply)
      // A failure of ours may have been told to a client by redirect.
      const failed = reply.statusCode >= 500 || (request.rejection?.status ?? 0) >= 500
      if (failed) request.log.error({ ...line, cause: causeOf(request) }, 'failed')
      else request.log.info(line, request.rejection ? 'refused' : 'answered')
      done()
    })
  },
  { name: 'request-log', dependencies: ['error-mapper', 'client-authentication'] },
)

function describe(request: FastifyRequest, reply: FastifyReply) {
  return {
    ...exchangeOf(request, reply),
    ms: Math.round(reply.elapsedTime * 10) / 10,
    ...(request.rejection && reasonOf(request.rejection)),
  }
}

/** A request and the status of its response, as the log shows them: a few hundred bytes, whatever was sent. */
export function exchangeOf(request: FastifyRequest, reply: FastifyReply) {
  return {
    method: request.method,
    path: boundedText(withoutSecrets(request.url.split('?', 1)[0] ?? '')),
    status: reply.statusCode,
    ...(request.client && { client: boundedText(request.client.id) }),
  }
}

/** Why a request was rejected, as the log shows it: without secrets, and bounded in bytes. */
export function reasonOf({ code, message, detail }: OAuthError) {
  const { rule, stored, received } = detail
  return {
    error: code,
    why: boundedText(message),
    rule,
    ...(stored !== undefined && { stored: redacted(stored) }),
    ...(received !== undefined && { received: redacted(received) }),
  }
}

function causeOf(request: FastifyRequest) {
  const cause = request.rejection?.detail.cause
  if (!(cause instanceof Error)) return cause === undefined ? undefined : boundedText(String(cause))
  // A driver or a mail server may repeat what a client sent.
  const { message, stack = '', cause: from = '' } = cause
  return {
    message: boundedText(message),
    stack: boundedText(stack, longestStack),
    from: boundedText(String(from)),
  }
}

const longestStack = 4096

function redacted(value: Told): Told {
  if (typeof value === 'string') return boundedText(withoutSecrets(value))
  return typeof value === 'number' ? value : boundedList(value, withoutSecrets)
}

/** A secret keeps its prefix, which says what it was, a JWT the one they all have; of a query only its presence is told. */
function withoutSecrets(text: string): string {
  if (!/\?|lyc_|eyJ/.test(text)) return text
  return text.replace(/\?.*$/s, '?…').replaceAll(/(lyc_[a-z]+_|\beyJ)[\w.-]+/g, '$1…')
}
