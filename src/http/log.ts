import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { RefusalDetail } from '../domain/errors.ts'

/** One line a request: what was asked, what came of it, and why it was refused. Never a query, a body or a header. */
export const requestLog = fp(
  async (app) => {
    app.addHook('onResponse', async (request, reply) => {
      const line = describe(request, reply)
      // A failure of ours may have been told to a client by redirect.
      const failed = reply.statusCode >= 500 || (request.refusal?.status ?? 0) >= 500
      if (failed) request.log.error({ ...line, cause: causeOf(request) }, 'failed')
      else request.log.info(line, request.refusal ? 'refused' : 'answered')
    })
  },
  { name: 'request-log', dependencies: ['error-mapper', 'client-authentication'] },
)

function describe(request: FastifyRequest, reply: FastifyReply) {
  const { refusal } = request
  return {
    method: request.method,
    path: withoutSecrets(request.url).replace(/\?…$/, ''),
    status: reply.statusCode,
    ms: Math.round(reply.elapsedTime * 10) / 10,
    ...(request.client && { client: request.client.id }),
    ...(refusal && {
      error: refusal.code,
      why: refusal.message,
      rule: refusal.detail.rule,
      stored: redacted(refusal.detail.stored),
      received: redacted(refusal.detail.received),
    }),
  }
}

function causeOf(request: FastifyRequest) {
  const cause = request.refusal?.detail.cause
  return cause instanceof Error
    ? { message: cause.message, stack: cause.stack, from: String(cause.cause ?? '') }
    : cause
}

function redacted(value: RefusalDetail['stored']): unknown {
  if (typeof value === 'string') return withoutSecrets(value)
  return Array.isArray(value) ? value.map(withoutSecrets) : value
}

/** A secret keeps its prefix, which says what it was, a JWT the one they all have; of a query only its presence is told. */
function withoutSecrets(text: string): string {
  return text.replace(/\?.*$/s, '?…').replaceAll(/(lyc_[a-z]+_|\beyJ)[\w.-]+/g, '$1…')
}
