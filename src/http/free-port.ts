import { createServer } from 'node:net'

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
