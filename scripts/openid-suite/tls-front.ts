import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { TLSSocket } from 'node:tls'

export interface Credentials {
  readonly cert: string
  readonly key: string
}

/** TLS 1.3, and the ciphers that FAPI 2.0 (§5.2.1, BCP 195) leaves of TLS 1.2: a module looks for others. */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES128-GCM-SHA256',
].join(':')

/** Terminates TLS on loopback for a server that listens there. @returns what stops it. */
export async function startTlsFront(
  credentials: Credentials,
  port: number,
  target: number,
): Promise<() => void> {
  const agent = new Agent({ keepAlive: true })
  const options = { ...credentials, ciphers, minVersion: 'TLSv1.2', maxHeaderSize: 65_536 } as const
  const server = createServer(options, (incoming, outgoing) => forward(incoming, outgoing, target, agent))
  // A module may wait for a response as long as it wants.
  server.requestTimeout = 0
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return () => {
    agent.destroy()
    server.closeAllConnections()
    server.close()
  }
}

function forward(incoming: IncomingMessage, outgoing: ServerResponse, target: number, agent: Agent): void {
  const { method, url: path, rawHeaders, headers: parsed, socket } = incoming
  // Headers pass as they came: a request with two DPoP proofs keeps both.
  const isOurs = (name: string) => /^(?:x-forwarded-.*|x-ssl-.*|forwarded)$/i.test(name)
  const headers = rawHeaders.filter((_, index) => !isOurs(rawHeaders[index - (index % 2)] ?? ''))
  headers.push('x-forwarded-for', socket.remoteAddress ?? '', 'x-forwarded-proto', 'https')
  headers.push('x-forwarded-host', parsed.host ?? '')
  // The suite checks by these how its callers, such as the sender of a logout token, connect.
  const tls = socket as TLSSocket // of a server with TLS
  headers.push('x-ssl-protocol', tls.getProtocol() ?? '', 'x-ssl-cipher', tls.getCipher().name)
  const onward = request({ host: '127.0.0.1', port: target, method, path, headers, agent }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders)
    response.pipe(outgoing)
  })
  onward.on('error', (error) => {
    if (outgoing.headersSent) outgoing.destroy()
    else outgoing.writeHead(502, { 'content-type': 'text/plain' }).end(`${error.message}\n`)
  })
  outgoing.on('close', () => {
    if (!outgoing.writableEnded) onward.destroy()
  })
  incoming.pipe(onward)
}
