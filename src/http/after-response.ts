import { tracingChannel } from 'node:diagnostics_channel'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { OAuthError } from '../domain/errors.ts'
import { finishAtClose } from './drain.ts'

/** Traces work that runs after a response, for code that waits for its end. */
const channel = tracingChannel('lychgate:after-response')

/** Runs work that no response waits for. */
export function tracedWork<T>(work: () => Promise<T>): Promise<T> {
  return channel.tracePromise(work, {})
}

/**
 * Runs work after a response was sent, so that its time does not show what the work found. Closing the server waits for
 * it. An OAuthError is expected here and was logged where it was thrown; anything else is logged as `failed`.
 */
export function afterResponse(app: FastifyInstance, failed: string) {
  const underWay = new Set<Promise<void>>()
  finishAtClose(app, () => underWay)
  return (reply: FastifyReply, work: () => Promise<void>): void => {
    reply.raw.once('finish', () => {
      const running = channel
        .tracePromise(work, {})
        .catch((error: unknown) => {
          if (!(error instanceof OAuthError)) reply.request.log.error({ err: error }, failed)
        })
        .finally(() => underWay.delete(running))
      underWay.add(running)
    })
  }
}
