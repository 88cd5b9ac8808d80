import type { IncomingMessage, ServerResponse } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { isHostOf } from '../http/host-names.ts'
import { httpFault, rejectMalformedHttp } from '../http/malformed-http.ts'
import { Response } from '../http/response.ts'

/**
 * Creates the management listener without its routes. Everyone who can reach its port may read them, but a Host that is
 * not listed is rejected: no web page reads them through its own name (DNS rebinding).
 * @param handleElsewhere Handles a request that other routes than these are for, and returns whether it did.
 */
export function createListener(
  { host, hosts = [] }: Config['management'],
  handleElsewhere: (request: IncomingMessage, response: ServerResponse) => boolean,
): FastifyInstance {
  const listener = Fastify({
    http: { requireHostHeader: false, ServerResponse: Response },
    requestTimeout: 10_000,
    forceCloseConnections: true,
    clientErrorHandler: rejectMalformedHttp,
    frameworkErrors: (_error, _request, reply) => void sendText(reply, 400, 'the path is not valid'),
  })
  // It serves a scraper and an orchestrator: few connections, and none of them slow.
  listener.server.maxConnections = 100
  listener.server.on('checkExpectation', (request, response) =>
    listener.server.emit('request', request, response),
  )
  listener.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    const fault = httpFault(request.raw)
    if (fault !== undefined) return sendText(reply, fault.status, fault.description)
    if (!isHostOf(request.headers.host, [host, ...hosts])) return sendText(reply, 403, unlisted)
    if (handleElsewhere(request.raw, reply.raw)) return reply.hijack()
    if (!['GET', 'HEAD'].includes(request.method)) return sendText(reply, 405, 'only GET is served here')
  })
  listener.setErrorHandler((_error, _request, reply) => sendText(reply, 500, 'the server failed'))
  return listener
}

/**
 * Opens the listener.
 * @throws {ConfigError} when it cannot listen there.
 */
export async function listen(listener: FastifyInstance, host: string, port: number): Promise<void> {
  try {
    await listener.listen({ host, port })
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? cause.code : cause
    throw new ConfigError(
      `management.port: cannot listen on ${host} port ${port} (${reason}); choose another`,
      { cause },
    )
  }
}

const unlisted =
  'Host is not a name of this listener: list it in management.hosts (LYCHGATE_MANAGEMENT_HOSTS), or use an address'

/** Sends one line of text. */
export function sendText(reply: FastifyReply, status: number, text: string): FastifyReply {
  return reply.code(status).type('text/plain; charset=utf-8').send(`${text}\n`)
}
