import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the ports that systems give to outgoing connections, and above the last that browsers do not open, 10080. */
const range = [11_000, 32_000] as const

/**
 * A port that is free now, on both addresses of this computer. No connection takes it before a server listens there,
 * and another test rarely does: it is a random one.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(...range)
    if ((await isFree(port, '127.0.0.1')) && (await isFree(port, '::1'))) return port
  }
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    // A computer without IPv6 has no such address: nothing listens there either.
    server.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT'),
    )
    server.listen({ port, host }, () => server.close(() => resolve(true)))
  })
}
