import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import fp from 'fastify-plugin'
import { OAuthError } from '../domain/errors.ts'

/** Why a request is not valid HTTP, and the status of its rejection. */
export interface HttpFault {
  readonly status: 400 | 417
  readonly description: string
  /** The rule that rejects it, an id of the requirement ledger or `lychgate-…`. */
  readonly rule: string
}

/**
 * Checks what Node would reject with an empty response, or not at all: the Host header, RFC 9112 §3.2, and an
 * expectation that the server does not know, RFC 9110 §10.1.1. A Node server needs `requireHostHeader: false` and
 * `checkExpectation` for it.
 */
export function httpFault({ rawHeaders, headers, httpVersion }: IncomingMessage): HttpFault | undefined {
  const { host, expect } = headers
  if (host === undefined && httpVersion === '1.1') return wrongHost('the Host header is missing')
  if (host !== undefined && !hostForm.test(host)) return wrongHost('the Host header is malformed')
  // Node keeps the first of several; a proxy in front may have kept the last.
  if (countOfHeader(rawHeaders, 'host') > 1) return wrongHost('the Host header is repeated')
  if (expect === undefined || /^100-continue$/i.test(expect)) return undefined
  return {
    status: 417,
    description: 'the Expect header must be 100-continue',
    rule: 'lychgate-expectation',
  }
}

// RFC 3986 §3.2.2 and §3.2.3, without userinfo; it may be empty.
const hostForm = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i

function wrongHost(description: string): HttpFault {
  return { status: 400, description, rule: 'lychgate-one-host' }
}

/** Returns how many times a request has a header, by its name in lower case. Node keeps only one value of some. */
export function countOfHeader(rawHeaders: readonly string[], header: string): number {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === header.length && name.toLowerCase() === header) count += 1
  }
  return count
}

/** Headers of a response that comes too early for the hooks of headers.ts. */
export const earlyHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
} as const

/** How long a client may take to read the response before its connection is closed. */
const lingerMilliseconds = 1000

/**
 * Rejects HTTP that Node cannot parse, or that took too long, in the form of RFC 6749 §5.2, and closes the
 * connection.
 */
export function rejectMalformedHttp(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { status, description } = malformedHttp[error.code ?? ''] ?? {
    status: '400 Bad Request',
    description: 'the request is not valid HTTP',
  }
  const body = JSON.stringify({ error: 'invalid_request', error_description: description })
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...earlyHeaders,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  // What still arrives is read, because closing with unread bytes could cost the client the response, and discarded.
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`)
  // `end` closes one direction only: a client that keeps the other open would keep the connection.
  const cut = setTimeout(() => socket.destroy(), lingerMilliseconds)
  socket.once('close', () => clearTimeout(cut))
}

const malformedHttp: Readonly<Record<string, { readonly status: string; readonly description: string }>> = {
  HPE_HEADER_OVERFLOW: {
    status: '431 Request Header Fields Too Large',
    description: 'the request line and headers are too large',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: '408 Request Timeout',
    description: 'the request took too long to arrive',
  },
}

/** Rejects a request with a wrong Host header, RFC 9112 §3.2, or a foreign expectation, in the form of every error. */
export const wellFormedHttp = fp(
  async (app) => {
    // Without a listener Node sends 417 itself, with an empty body.
    app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
    app.addHook('onRequest', function assertWellFormedHttp(request, _reply, done) {
      const fault = httpFault(request.raw)
      if (fault === undefined) return done()
      const { status, description, rule } = fault
      done(new OAuthError('invalid_request', description, { rule, status }))
    })
  },
  { name: 'well-formed-http', dependencies: ['error-mapper'] },
)
