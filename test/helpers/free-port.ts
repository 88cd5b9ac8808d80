import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the ports that systems give to outgoing connections, and above the last that browsers do not open, 10080. */
const range = [11_000, 32_000] as const

/**
 * A port that is free now. No connection takes it before a server listens there, and another test rarely does: it is
 * a random one.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(...range)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1' }, () => server.close(() => resolve(true)))
  })
}
