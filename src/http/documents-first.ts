import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Needs } from '../feature/deps.ts'
import { hasTag, type WrittenDocument } from './document.ts'
import { tenths } from './log.ts'
import { httpFault } from './malformed-http.ts'
import { type DefaultHeaders, defaultHeaders, Response } from './response.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Absent: every request is routed. */
    readonly sharedDocuments?: {
      add(path: string, cacheControl: string, write: () => WrittenDocument): void
    }
  }
}

const routing = new WeakSet<object>()

/** For hooks that watch every request: nothing is sent before it was routed. */
export function routeEveryRequest({ server }: FastifyInstance): void {
  routing.add(server)
}

/** The heads of both responses, with every header except the ones Node adds. */
interface Sent extends WrittenDocument {
  readonly found: DefaultHeaders
  readonly notModified: DefaultHeaders
  readonly length: number
}

/**
 * Sends the documents that clients poll before Fastify routes the request, which takes longer than to send them. Only
 * a GET of the exact path: every other request is routed, and so are all from the moment the server stops. The
 * response, its line in the log and what it says about the proxy are the same either way.
 */
export const documentsFirst = fp<Needs<'definitions'>>(
  async (app, { definitions }) => {
    const documents = new Map<string, (request: IncomingMessage, response: Response) => boolean>()
    app.decorate('sharedDocuments', {
      add: (path, cacheControl, write) => {
        let sent: Sent | undefined
        const headOf = (more: Readonly<Record<string, string>>) => {
          const { pragma: _, 'cache-control': __, ...headers } = app.securityHeaders
          const shared = app.anyOrigin?.headers
          return defaultHeaders({ ...headers, ...shared, 'cache-control': cacheControl, ...more })
        }
        const current = () => {
          const written = writtenBy(write)
          if (written === undefined) return undefined
          const { body, etag } = written
          if (sent?.etag === etag) return sent
          const found = headOf({ etag, 'content-type': 'application/json; charset=utf-8' })
          sent = { ...written, found, notModified: headOf({ etag }), length: Buffer.byteLength(body) }
          return sent
        }
        documents.set(path, (request, response) => {
          const document = current()
          // Its route says what is wrong.
          if (document === undefined) return false
          const { body, etag, found, notModified, length } = document
          const began = performance.now()
          response.on('finish', () => {
            app.logResponse({
              method: 'GET',
              path,
              status: response.statusCode,
              ms: tenths(performance.now() - began),
            })
          })
          const isCurrent = hasTag(request.headers['if-none-match'], etag)
          response.defaults = isCurrent ? notModified : found
          if (isCurrent) response.writeHead(304).end()
          else response.writeHead(200, { 'content-length': length }).end(body)
          return true
        })
      },
    })
    let isOpen = true
    app.addHook('preClose', async () => {
      isOpen = false
    })
    if (routing.has(app.server)) return
    const [route, ...others] = app.server.listeners('request')
    if (route === undefined || others.length > 0) throw new Error('documents: another one handles requests')
    app.server.removeAllListeners('request')
    app.server.on('request', (request, response) => {
      // What operators stored is read before a document is sent: that takes a turn.
      const isFixed = definitions.revision() === 0
      const isReady = isFixed && isOpen && !app.isDraining()
      const send = isReady ? documents.get(request.url ?? '') : undefined
      const isSent =
        send !== undefined &&
        request.method === 'GET' &&
        response instanceof Response &&
        httpFault(request) === undefined &&
        send(request, response)
      if (isSent) app.noteForwarding(request)
      else route.call(app.server, request, response)
    })
  },
  { name: 'documents-first', dependencies: ['security-headers', 'any-origin', 'forwarding', 'request-log'] },
)

function writtenBy(write: () => WrittenDocument): WrittenDocument | undefined {
  try {
    return write()
  } catch {
    return undefined
  }
}
