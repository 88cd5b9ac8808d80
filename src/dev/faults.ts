/** Faults on request: what a client meets on a bad network or at a busy server, for a given number of requests. */
import type { ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { type Static, Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { check } from '../domain/check.ts'
import { OAuthError } from '../domain/errors.ts'
import { every } from '../domain/parameters.ts'
import { parametersOf } from '../http/parameters.ts'
import { requireBody } from './json-body.ts'
import { listFor } from './list-page.ts'
import { basicClientId, type DevDeps, type DevPart, missing } from './part.ts'

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

/** A requested fault, and how many requests it has affected. */
export interface Fault extends FaultOrder {
  readonly id: string
  readonly requests: number
  fired: number
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The faults of this development server, in the order they were requested. */
    readonly faults: Fault[]
  }
}

/** Decorates `app.faults`, and applies them to every route except those below /_dev. */
export const faultHooks = fp<DevDeps>(
  async (app, deps) => {
    const { prefix } = deps.service
    const faults: Fault[] = []
    app.decorate('faults', faults)
    const concerning = (path: string) =>
      faults.filter(
        ({ endpoint, fired, requests }) =>
          fired < requests && (endpoint === undefined || pathOf(endpoint, app.endpoints) === path),
      )
    app.addHook('preValidation', async (request, reply) => {
      const path = pathBelow(prefix, request.url)
      if (path === undefined || concerning(path).length === 0) return
      const client = await claimedClient(request, deps)
      const fault = concerning(path).find(({ client_id: id }) => id === undefined || id === client)
      if (fault === undefined) return
      fault.fired += 1
      const description = describeFault(fault, request)
      request.log.warn({ fault: fault.fault, client }, description)
      if (app.hasDecorator('recorder')) app.recorder.note(request, description)
      applyFault(fault, reply)
    })
  },
  { name: 'faults' },
)

/** Faults on request: POST adds one, GET lists them, DELETE removes them. */
export const faultRoutes: DevPart = async (app, { service: { issuer } }) => {
  const { faults } = app
  let last = 0
  app.get('/faults', async (_request, reply) =>
    listFor(reply, { faults }, () => ({
      title: 'Faults',
      lead: 'What a client meets on a bad network or at a busy server: drop-after-commit, truncate, reset-before, delay and 503, for a number of requests of an endpoint or a client.',
      items: faults.map(({ id, fault, endpoint, client_id: clientId, fired, requests }) => ({
        name: `${fault} at ${[endpoint, clientId].filter(Boolean).join(' for ')}`,
        text: `${fired} of ${requests} ${requests === 1 ? 'request' : 'requests'} so far`,
        note: `Fault ${id}`,
      })),
      empty: 'No fault was requested.',
      example: `curl -s ${issuer}/_dev/faults -H 'content-type: application/json' \\\n  -d '{"endpoint":"token","fault":"delay","ms":3000,"requests":2}'`,
    })),
  )
  app.post('/faults', async (request, reply) => {
    const order = requireBody(FaultOrder, request.body)
    assertApplicable(order, app.endpoints)
    last += 1
    const fault = { ...order, id: String(last), requests: order.requests ?? 1, fired: 0 }
    faults.push(fault)
    return reply.code(201).send(fault)
  })
  app.delete('/faults', async (_request, reply) => {
    faults.length = 0
    return reply.code(204).send()
  })
  app.delete<{ Params: { id: string } }>('/faults/:id', async ({ params }, reply) => {
    const at = faults.findIndex(({ id }) => id === params.id)
    if (at < 0) throw missing('lychgate-dev-fault', 'there is no such fault')
    faults.splice(at, 1)
    return reply.code(204).send()
  })
}

function assertApplicable(
  { endpoint, client_id: clientId, fault, ms, retry_after: retryAfter }: FaultOrder,
  endpoints: ReadonlyMap<string, string>,
): void {
  const assert = (ok: boolean, description: string) =>
    check(ok, 'lychgate-dev-fault', 'invalid_request', description)
  assert(endpoint !== undefined || clientId !== undefined, 'endpoint or client_id must be there')
  const names = [...endpoints.keys()].join(', ')
  const isKnown = endpoint === undefined || pathOf(endpoint, endpoints) !== undefined
  assert(isKnown, `endpoint must be ${names} or a path that begins with a slash`)
  assert(ms === undefined || fault === 'delay', 'ms belongs to the fault delay')
  assert(retryAfter === undefined || fault === '503', 'retry_after belongs to the fault 503')
}

/** The path of an endpoint that is given by its name or its path. */
function pathOf(endpoint: string, endpoints: ReadonlyMap<string, string>): string | undefined {
  return endpoint.startsWith('/') ? endpoint : endpoints.get(endpoint)
}

function pathBelow(prefix: string, url: string): string | undefined {
  const [path = ''] = url.split('?', 1)
  if (path.startsWith(`${prefix}/_dev/`)) return undefined
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path
}

/** Describes a fault that affects a request, for the log and the flow trace. */
function describeFault({ id, fault, fired, requests }: Fault, { method, url }: FastifyRequest): string {
  const [path = ''] = url.split('?', 1)
  return `fault ${id} (${fault}) strikes ${method} ${path}, ${fired} of ${requests}`
}

/** The client that the request names, authenticated or not, or the client of its access token. */
async function claimedClient(
  { headers: { authorization = '' }, query, body }: FastifyRequest,
  { keys, store }: Pick<DevDeps, 'keys' | 'store'>,
): Promise<string | undefined> {
  const basic = basicClientId(authorization)
  if (basic !== undefined) return basic
  const [, token] = /^\w+ +(\S+)/.exec(authorization) ?? []
  if (token !== undefined) {
    const handle = await keys.open(token, 'access')
    return handle && (await store.find('grant', handle.grantId))?.clientId
  }
  return [query, body].flatMap((parsed) => every(readable(parsed), 'client_id'))[0]
}

/** The parameters of a form; none for any other body. */
function readable(parsed: unknown) {
  try {
    return parametersOf(parsed)
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return {}
  }
}

/**
 * Applies a fault to this request. Except for `reset-before` and `503`, the request is handled and committed, and only
 * its response is dropped, delayed or cut off.
 * @throws {OAuthError} `temporarily_unavailable`, for the fault `503`.
 */
function applyFault(
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
        'a fault of this development server rejects this request',
        { rule: 'lychgate-dev-fault', headers: { 'retry-after': String(retryAfter) } },
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

/** Calls `finish` in place of the one `end` with which Fastify sends a whole response after every hook. */
function insteadOfEnd(
  raw: ServerResponse,
  finish: (body: Buffer, end: (body: Buffer) => void) => Promise<void>,
): void {
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
