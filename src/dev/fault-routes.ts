import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { OAuthError } from '../domain/errors.ts'
import { every } from '../domain/parameters.ts'
import { parametersOf } from '../http/parameters.ts'
import { applyFault, describeFault } from './apply-fault.ts'
import { type FaultBook, FaultOrder, openFaultBook, pathOf } from './faults.ts'
import { requireBody } from './json-body.ts'
import type { DevDeps, DevPart } from './plugin.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** What is to go wrong on this development server. */
    readonly faults: FaultBook
  }
}

/** Lets the faults that were asked for happen, to every route but those below /_dev. */
export const faultHooks = fp<DevDeps>(
  async (app, deps) => {
    const book = openFaultBook(app.endpoints)
    const { prefix } = deps.service
    app.decorate('faults', book)
    app.addHook('preValidation', async (request, reply) => {
      const path = pathBelow(prefix, request.url)
      if (path === undefined || !book.concerns(path)) return
      const clientId = await claimedClient(request, deps)
      const fault = book.claim({ path, clientId })
      if (fault === undefined) return
      const description = describeFault(fault, request)
      request.log.warn({ fault: fault.fault, client: clientId }, description)
      if (app.hasDecorator('recorder')) app.recorder.note(request, description)
      applyFault(fault, reply)
    })
  },
  { name: 'faults' },
)

/** Faults on request: POST adds one, GET lists them, DELETE forgets them. */
export const faultRoutes: DevPart = async (app) => {
  app.get('/faults', async () => ({ faults: app.faults.list() }))
  app.post('/faults', async (request, reply) => {
    const order = requireBody(FaultOrder, request.body)
    requireTarget(order, app.endpoints)
    return reply.code(201).send(app.faults.add(order))
  })
  app.delete('/faults', async (_request, reply) => {
    app.faults.remove()
    return reply.code(204).send()
  })
  app.delete<{ Params: { id: string } }>('/faults/:id', async ({ params }, reply) => {
    if (app.faults.remove(params.id)) return reply.code(204).send()
    throw new OAuthError('invalid_request', 'there is no such fault', {
      rule: 'lychgate-dev-fault',
      status: 404,
    })
  })
}

function requireTarget(
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

function pathBelow(prefix: string, url: string): string | undefined {
  const [path = ''] = url.split('?', 1)
  if (path.startsWith(`${prefix}/_dev/`)) return undefined
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path
}

/** Who says to be asking, proven or not: the client of the request, or that of the token it comes with. */
async function claimedClient(
  request: FastifyRequest,
  { keys, store }: Pick<DevDeps, 'keys' | 'store'>,
): Promise<string | undefined> {
  const [scheme = '', credentials = ''] = request.headers.authorization?.split(' ', 2) ?? []
  if (/^basic$/i.test(scheme)) {
    const [id = ''] = Buffer.from(credentials, 'base64').toString().split(':', 1)
    return formDecoded(id)
  }
  if (/^bearer$/i.test(scheme)) {
    const handle = await keys.open(credentials, 'access')
    return handle && (await store.find('grant', handle.grantId))?.clientId
  }
  return [request.query, request.body].flatMap((parsed) => every(readable(parsed), 'client_id'))[0]
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

function formDecoded(text: string): string {
  return new URLSearchParams(`id=${text}`).get('id') ?? text
}
