import { setTimeout as wait } from 'node:timers/promises'
import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyInstance {
    /** Readiness turns false and every answer tells its connection to close; resolves when clients had time to leave. */
    drain(): Promise<void>
    readonly isDraining: () => boolean
    /** Open connections, and the requests answered since draining began. */
    load(): { readonly connections: number; readonly answered: number }
  }
}

/** A quiet end: closing a listener drops idle kept-alive connections at once, and with them a request on the wire. */
export const drain = fp<{ seconds: number }>(
  async (app, { seconds }) => {
    let draining = false
    let [connections, answered] = [0, 0]
    app.decorate('isDraining', () => draining)
    app.decorate('load', () => ({ connections, answered }))
    app.server.on('connection', (socket) => {
      connections += 1
      socket.once('close', () => {
        connections -= 1
      })
    })
    app.addHook('onResponse', (_request, _reply, done) => {
      if (draining) answered += 1
      done()
    })
    app.decorate('drain', async () => {
      draining = true
      await wait(seconds * 1000)
    })
    app.addHook('onSend', (_request, reply, _payload, done) => {
      if (draining) reply.header('connection', 'close')
      done()
    })
  },
  { name: 'drain' },
)
