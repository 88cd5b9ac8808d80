import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

/** Headers of responses, unless an endpoint sets its own. */
export interface DefaultHeaders {
  readonly headers: Readonly<Record<string, string>>
  /** The same, as they are sent. */
  readonly text: string
  /** The same without `pragma: no-cache`, where that is different. */
  readonly cacheable?: DefaultHeaders
}

export function defaultHeaders(headers: Readonly<Record<string, string>>): DefaultHeaders {
  const { pragma, ...others } = headers
  return {
    headers,
    text: textOf(headers),
    ...(pragma !== undefined && { cacheable: defaultHeaders(others) }),
  }
}

function textOf(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
}

/** Whether the server is stopping; then each response closes its connection, and `sent` learns of it. */
export interface Stop {
  sent?: (response: ServerResponse) => void
}

// Not declared by the types of Node. It adds what each response needs: Date, Connection, Transfer-Encoding.
const { _storeHeader: storeHead } = ServerResponse.prototype as unknown as {
  _storeHeader(this: ServerResponse, head: string, headers?: OutgoingHttpHeaders): void
}

/**
 * A response that sends its default headers as one text. Node and Fastify check and copy each header of each response,
 * which takes longer than all hooks together (docs/performance.md).
 */
export class Response<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  defaults: DefaultHeaders | undefined
  stop: Stop | undefined

  /** Node calls it with the status line, before anything is sent. */
  _storeHeader(statusLine: string, headers: OutgoingHttpHeaders = {}): void {
    const { defaults, stop } = this
    if (stop?.sent !== undefined) {
      this.shouldKeepAlive = false
      stop.sent(this)
    }
    storeHead.call(this, statusLine + (defaults === undefined ? '' : without(headers, defaults)), headers)
  }
}

function without(own: OutgoingHttpHeaders, { headers, text }: DefaultHeaders): string {
  for (const name in own)
    if (name in headers)
      return textOf(Object.fromEntries(Object.entries(headers).filter(([key]) => !(key in own))))
  return text
}

/**
 * Checks that this Node.js calls what is overridden here, which its documentation does not promise: a server does not
 * start rather than send a response without its security headers.
 * @throws {Error}
 */
export function assertDefaultsAreSent(
  response: Response = new Response(new IncomingMessage(new Socket())),
): void {
  response.defaults = defaultHeaders({ 'x-default': 'sent' })
  response.writeHead(200, { 'x-own': 'sent' })
  // Not declared by the types of Node, either: what it will send first.
  const { _header: head } = response as unknown as { readonly _header: string | null }
  if (head?.includes('\r\nx-default: sent\r\n') && head.includes('\r\nx-own: sent\r\n')) return
  throw new Error(`Node.js ${process.versions.node} makes responses in another way than this version knows`)
}

/** Lets a response be cached: `Pragma: no-cache` would contradict it. */
export function allowCaching(reply: FastifyReply, cacheControl: string): FastifyReply {
  const { raw } = reply
  if (raw instanceof Response) raw.defaults = raw.defaults?.cacheable ?? raw.defaults
  return reply.header('cache-control', cacheControl).removeHeader('pragma')
}
