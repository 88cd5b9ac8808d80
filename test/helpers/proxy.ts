import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as requestHttp,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Credentials } from './certificates.ts'

/** A response on its way to the client. */
export interface Passing {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: Buffer
}

/** What a proxy changes; nothing at first. */
export interface Behaviour {
  /** Responds itself; false forwards the request. */
  responses?: (incoming: IncomingMessage, outgoing: ServerResponse) => boolean
  /** The headers that are forwarded. */
  request?: (headers: OutgoingHttpHeaders) => OutgoingHttpHeaders
  /** The response that is returned. */
  response?: (response: Passing, path: string) => Passing
}

export interface TestProxy {
  readonly port: number
  /** May be changed at any time. */
  behaviour: Behaviour
  /** Forwards a request that `responses` kept. */
  forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void>
}

interface Test {
  teardown(end: () => unknown): unknown
}

/**
 * A proxy on a free port of localhost, with TLS if it has credentials; like a correct proxy it forwards the client's
 * address.
 */
export async function startProxy(
  t: Test,
  upstream: () => number,
  credentials?: Credentials,
): Promise<TestProxy> {
  const listener = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (!proxy.behaviour.responses?.(incoming, outgoing)) await forward(incoming, outgoing)
  }
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const response = await passOn(incoming, upstream(), proxy.behaviour)
    const { 'transfer-encoding': _encoding, ...headers } = response.headers
    outgoing
      .writeHead(response.status, { ...headers, 'content-length': response.body.length })
      .end(response.body)
  }
  const server = credentials ? createTlsServer({ ...credentials }, listener) : createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  // `as`: the address of a listening server.
  const proxy: TestProxy = { port: (server.address() as AddressInfo).port, behaviour: {}, forward }
  return proxy
}

async function passOn(
  incoming: IncomingMessage,
  port: number,
  { request = (headers) => headers, response = (passing) => passing }: Behaviour,
): Promise<Passing> {
  const { method, url: path = '/', socket } = incoming
  const before = incoming.headers['x-forwarded-for']
  const forwarded = [before ?? [], socket.remoteAddress ?? ''].flat().join(', ')
  const headers = request({ ...incoming.headers, 'x-forwarded-for': forwarded })
  const body = await buffer(incoming)
  const passing = await new Promise<Passing>((resolve) => {
    const fail = () => resolve({ status: 502, headers: { 'content-type': 'text/html' }, body: badGateway })
    const onward = requestHttp(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (received) => {
        const { statusCode: status = 0, headers: own } = received
        buffer(received).then((content) => resolve({ status, headers: own, body: content }), fail)
      },
    )
    onward.on('error', fail)
    onward.end(body)
  })
  return response(passing, path)
}

const badGateway = Buffer.from('<html><head><title>502 Bad Gateway</title></head></html>')
