import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { ConfigError } from '../config/error.ts'
import { isHostOf } from '../http/host-names.ts'
import { httpFault, rejectMalformedHttp } from '../http/malformed-http.ts'

/** The response of the management listener at one path. */
export interface Page {
  readonly status: number
  readonly type: string
  readonly body: string
}

/** The address of the listener, and its host names besides IP addresses and loopback names. */
interface Place {
  readonly host: string
  readonly port: number
  readonly hosts?: readonly string[] | undefined
}

/**
 * Serves these pages on a separate port, for operators. Everyone who can reach the port may read them, but a Host that
 * is not listed is rejected: no web page reads them through its own name (DNS rebinding).
 * @throws {ConfigError} when it cannot listen there.
 */
export async function serveManagement(
  { host, port, hosts = [] }: Place,
  pages: Readonly<Record<string, () => Promise<Page>>>,
): Promise<{ close(): Promise<void> }> {
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    const fault = httpFault(request)
    const path = request.url?.split('?', 1)[0] ?? ''
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined
    request.resume()
    if (fault !== undefined) send(response, plain(fault.status, fault.description))
    else if (!isHostOf(request.headers.host, [host, ...hosts])) send(response, plain(403, unlisted))
    else if (request.method !== 'GET' && request.method !== 'HEAD')
      send(response, plain(405, 'only GET is served here'))
    else if (page === undefined) send(response, plain(404, `there is ${Object.keys(pages).join(', ')}`))
    else
      page().then(
        (ready) => send(response, ready),
        () => send(response, plain(500, 'the server failed')),
      )
  })
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('clientError', rejectMalformedHttp)
  // It serves a scraper and an orchestrator: few connections, and none of them slow.
  server.maxConnections = 100
  server.requestTimeout = 10_000
  server.listen({ host, port })
  try {
    await once(server, 'listening')
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? cause.code : cause
    throw new ConfigError(
      `management.port: cannot listen on ${host} port ${port} (${reason}); choose another`,
      { cause },
    )
  }
  return {
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const unlisted =
  'Host is not a name of this listener: list it in management.hosts (LYCHGATE_MANAGEMENT_HOSTS), or use an address'

function plain(status: number, text: string): Page {
  return { status, type: 'text/plain; charset=utf-8', body: `${text}\n` }
}

function send(response: ServerResponse, { status, type, body }: Page): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  response.end(body)
}
