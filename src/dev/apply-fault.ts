import type { ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { type Static, Type } from '@sinclair/typebox'
import type { FastifyReply } from 'fastify'
import { OAuthError } from '../domain/errors.ts'

/** A fault to apply to the next requests of an endpoint or a client. */
export const FaultOrder = Type.Object(
  {
    /** The name of an endpoint, or a path below the issuer. */
    endpoint: Type.Optional(Type.String({ minLength: 1 })),
    client_id: Type.Optional(Type.String({ minLength: 1 })),
    /** How many requests it affects; absent: one. */
    requests: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    fault: Type.Union([
      Type.Literal('drop-after-commit'),
      Type.Literal('truncate'),
      Type.Literal('reset-before'),
      Type.Literal('delay'),
      Type.Literal('503'),
    ]),
    /** delay: for how long the reply is held back. */
    ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 600_000 })),
    /** 503: the value of `Retry-After`, in seconds. */
    retry_after: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
  },
  { additionalProperties: false },
)
export type FaultOrder = Static<typeof FaultOrder>

/**
 * Applies a fault to this request. Only the reply is dropped, delayed or cut off: what the request does before is done
 * and committed.
 * @throws {OAuthError} `temporarily_unavailable`, for the fault `503`.
 */
export function applyFault(
  { fault, ms = 1000, retry_after: retryAfter = 1 }: FaultOrder,
  reply: FastifyReply,
): void {
  switch (fault) {
    case 'reset-before':
      reply.hijack()
      reply.request.raw.socket.resetAndDestroy()
      return
    case '503':
      throw new OAuthError(
        'temporarily_unavailable',
        'this development server was told to refuse this request',
        {
          rule: 'lychgate-dev-fault',
          headers: { 'retry-after': String(retryAfter) },
        },
      )
    case 'drop-after-commit':
      insteadOfEnd(reply.raw, async () => void reply.raw.destroy())
      return
    case 'delay':
      insteadOfEnd(reply.raw, async (body, end) => {
        await wait(ms)
        end(body)
      })
      return
    case 'truncate':
      insteadOfEnd(reply.raw, async (body) => {
        reply.raw.flushHeaders()
        const half = body.subarray(0, Math.floor(body.length / 2))
        await new Promise((resolve) => reply.raw.write(half, resolve))
        reply.raw.destroy()
      })
      return
    default:
      throw new TypeError(`no such fault: ${fault satisfies never}`)
  }
}

type End = (body: Buffer) => void

/** Everything is written in one piece at the end, after every hook: until then nothing has left. */
function insteadOfEnd(raw: ServerResponse, finish: (body: Buffer, end: End) => Promise<void>): void {
  const end = raw.end.bind(raw)
  const replacement = (body?: unknown) => {
    const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body) : Buffer.alloc(0)
    // The client may have disconnected in the meantime.
    finish(bytes, (whole) => void end(whole)).catch(() => raw.destroy())
    return raw
  }
  // `as`: Fastify calls it in one of its forms, which is the one that is replaced.
  raw.end = replacement as ServerResponse['end']
}
