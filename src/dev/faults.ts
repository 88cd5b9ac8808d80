/** Faults on request: what a client meets on a bad network or at a busy server, as often as it was asked for. */
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { OAuthError } from '../domain/errors.ts'
import { every } from '../domain/parameters.ts'
import { parametersOf } from '../http/parameters.ts'
import { applyFault, FaultOrder } from './apply-fault.ts'
import { requireBody } from './json-body.ts'
import { basicClientId, type DevDeps, type DevPart, missing } from './part.ts'

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
export const faultRoutes: DevPart = async (app) => {
  const { faults } = app
  let last = 0
  app.get('/faults', async () => ({ faults }))
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
  const reject = (description: string) => {
    throw new OAuthError('invalid_request', description, { rule: 'lychgate-dev-fault' })
  }
  if (endpoint === undefined && clientId === undefined) reject('endpoint or client_id must be there')
  if (endpoint !== undefined && pathOf(endpoint, endpoints) === undefined) {
    reject(`endpoint must be ${[...endpoints.keys()].join(', ')} or a path that begins with a slash`)
  }
  if (ms !== undefined && fault !== 'delay') reject('ms belongs to the fault delay')
  if (retryAfter !== undefined && fault !== '503') reject('retry_after belongs to the fault 503')
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

/** What the log and the flow trace show of it. */
function describeFault({ id, fault, fired, requests }: Fault, { method, url }: FastifyRequest): string {
  const [path = ''] = url.split('?', 1)
  return `fault ${id} (${fault}) strikes ${method} ${path}, ${fired} of ${requests}`
}

/** The client that the request names, proven or not, or that of the token it presents. */
async function claimedClient(
  { headers: { authorization = '' }, query, body }: FastifyRequest,
  { keys, store }: Pick<DevDeps, 'keys' | 'store'>,
): Promise<string | undefined> {
  const basic = basicClientId(authorization)
  if (basic !== undefined) return basic
  const [, token] = /^bearer (\S+)/i.exec(authorization) ?? []
  if (token !== undefined) {
    const handle = await keys.open(token, 'access')
    return handle && (await store.find('grant', handle.grantId))?.clientId
  }
  return [query, body].flatMap((parsed) => every(readable(parsed), 'client_id'))[0]
}

/** A body that is no form or could not be read names no client. */
function readable(parsed: unknown) {
  try {
    return parametersOf(parsed)
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return {}
  }
}
