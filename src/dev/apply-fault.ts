import type { ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { OAuthError } from '../domain/errors.ts'
import type { Fault } from './faults.ts'

/**
 * Lets a fault happen to this request. What is dropped, delayed or cut off is the reply: everything before it is done
 * and committed.
 * @throws {OAuthError} `temporarily_unavailable`, for the fault that is one.
 */
export function applyFault(
  { fault, ms = 1000, retry_after: retryAfter = 1 }: Fault,
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

/** What the log and the flow trace say of it. */
export function describeFault(
  { id, fault, fired, requests }: Fault,
  { method, url }: FastifyRequest,
): string {
  const [path = ''] = url.split('?', 1)
  return `fault ${id} (${fault}) strikes ${method} ${path}, ${fired + 1} of ${requests}`
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
