import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Needs } from '../feature/deps.ts'
import { nothingHere } from './errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Handles a request of the management listener if it is for the admin API. @returns false if it is not.
     * Absent if the main listener serves the admin API.
     */
    readonly handleManaged?: (request: IncomingMessage, response: ServerResponse) => boolean
  }
}

/** Where the admin API is, below the issuer. */
export const adminApiRoot = '/api/admin/v1'

/** Hides the admin API from the main listener if `admin.listener` is `management`. */
export const adminListener = fp<Needs<'config' | 'service'>>(
  async (app: FastifyInstance, { config, service }) => {
    if (config.admin.listener !== 'management') return
    const below = `${service.prefix}${adminApiRoot}/`
    const managed = new WeakSet<IncomingMessage>()
    app.decorate('handleManaged', (request: IncomingMessage, response: ServerResponse) => {
      if (request.url?.startsWith(below) !== true) return false
      managed.add(request)
      app.routing(request, response)
      return true
    })
    // By the pattern of the route: a path may be written in several ways. Without a route it is 405, which tells of one.
    app.addHook('onRequest', function assertListener(request, _reply, done) {
      const isAdmin = (request.routeOptions.url ?? request.url).startsWith(below)
      done(isAdmin && !managed.has(request.raw) ? nothingHere() : undefined)
    })
  },
  { name: 'admin-listener' },
)
