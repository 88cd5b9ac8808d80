import { createServer, type Server } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/schema.ts'

/**
 * Listens at the configured address. Browsers and Node resolve `localhost` to IPv4 or IPv6, so its issuer is served on
 * both, and so is the host of this name. Fastify can do that too, but resolves the name twice at every start, and gives
 * the second address a server of its own, which has nothing of what hangs on the first: load shedding, the documents
 * before routing, and the count of connections.
 */
export async function listen(
  app: FastifyInstance,
  { host, port, issuer }: Pick<Config, 'host' | 'port' | 'issuer'>,
): Promise<void> {
  const isBoth = host === 'localhost' || (host === '127.0.0.1' && new URL(issuer).hostname === 'localhost')
  if (!isBoth) {
    await app.listen({ host, port })
    return
  }
  // As Node's own HTTP server makes its sockets.
  const second = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    app.server.emit('connection', socket),
  )
  app.addHook('onClose', async () => {
    const end = closed(second)
    // Idle connections of the second would keep it open; those with a request close after its response.
    app.server.closeIdleConnections()
    await end
  })
  await Promise.all([app.listen({ host: '127.0.0.1', port }), listening(second, port)])
}

/** A machine without IPv6 has no such address. */
function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT') resolve()
      else reject(error)
    })
    server.listen({ host: '::1', port }, resolve)
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (server.listening) server.close(() => resolve())
    else resolve()
  })
}

/** A port that is free on every address `localhost` stands for. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = await tryPort('127.0.0.1', 0)
    if (port !== undefined && (await tryPort('::1', port)) !== undefined) return port
  }
}

/** The port if it could be bound; undefined if it is taken. A missing address counts as free. */
function tryPort(host: string, port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else if (error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT') resolve(port)
      else reject(error)
    })
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address()
      const bound = typeof address === 'object' && address ? address.port : port
      server.close(() => resolve(bound))
    })
  })
}
