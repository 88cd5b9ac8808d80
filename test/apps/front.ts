/** HTTPS in front of an app, as its users have it: recipes are for https addresses alone. */
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { createServer } from 'node:https'
import { connect } from 'node:net'
import type { Credentials } from '../helpers/certificates.ts'

interface Test {
  teardown(end: () => unknown): unknown
}

/** Serves `https://localhost:PORT` by an app that listens on another port, WebSockets included. */
export async function startFront(
  t: Test,
  credentials: Credentials,
  port: number,
  appPort: number,
): Promise<void> {
  const forwarded = ({ headers, socket }: IncomingMessage) => ({
    ...headers,
    'x-forwarded-for': socket.remoteAddress ?? '',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': headers.host ?? '',
  })
  const server = createServer({ ...credentials }, (incoming, outgoing) => {
    const { method, url: path } = incoming
    const headers = forwarded(incoming)
    const onward = requestHttp({ host: '127.0.0.1', port: appPort, method, path, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders)
      response.pipe(outgoing)
    })
    onward.on('error', () => outgoing.headersSent || outgoing.writeHead(502).end())
    incoming.pipe(onward)
  })
  server.on('upgrade', (request: IncomingMessage, socket, head) => {
    const onward = connect(appPort, '127.0.0.1', () => {
      const lines = Object.entries(forwarded(request)).map(([name, value]) => `${name}: ${value}`)
      onward.write(`${request.method} ${request.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
      onward.write(head)
      socket.pipe(onward).pipe(socket)
    })
    for (const end of [onward, socket]) end.on('error', () => [onward, socket].map((each) => each.destroy()))
  })
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
}
