import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import helmet from 'helmet'
import type { Needs } from '../feature/deps.ts'
import { defaultHeaders, Response } from './response.ts'

type SetHeaders = (reply: FastifyReply) => void

declare module 'fastify' {
  interface FastifyInstance {
    /** The headers of every response, unless its endpoint sets its own. */
    readonly securityHeaders: Readonly<Record<string, string>>
    /** Returns what gives a response those headers and these. */
    headersWith(more: Readonly<Record<string, string>>): SetHeaders
    /** Sets the headers of each response of a scope. */
    readonly setHeaders: SetHeaders
  }
}

/** Sets the headers of every response. A response is not cached unless its endpoint changes that, RFC 6749 §5.1. */
export const securityHeaders = fp<Needs<'service' | 'config'>>(
  async (app, { service: { https }, config: { mode } }) => {
    const headers = { ...helmetHeaders(https), 'cache-control': 'no-store', pragma: 'no-cache' }
    const { stopState } = app
    app.decorate('securityHeaders', headers)
    app.decorate('headersWith', (more) => {
      const all = { ...headers, ...more }
      const defaults = defaultHeaders(all)
      return (reply) => {
        const { raw } = reply
        const sendsDefaults = raw instanceof Response
        if (sendsDefaults) raw.stop = stopState
        // The development server shows and changes each header.
        if (sendsDefaults && mode !== 'dev') raw.defaults = defaults
        else reply.headers(all)
      }
    })
    app.decorate('setHeaders', app.headersWith({}))
    app.addHook('onRequest', function setSecurityHeaders(_request, reply, done) {
      reply.server.setHeaders(reply)
      done()
    })
  },
  { name: 'security-headers', dependencies: ['drain'] },
)

/** Returns the headers that helmet sets. They are the same for every response, so helmet is called once. */
function helmetHeaders(https: boolean): Record<string, string> {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const setHeaders = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    frameguard: { action: 'deny' },
    hsts: https ? { maxAge: 31_536_000, includeSubDomains: false } : false,
    // The protocol is called from pages of other origins, and its responses depend on no cookie.
    crossOriginResourcePolicy: false,
    originAgentCluster: false,
    dnsPrefetchControl: false,
    ieNoOpen: false,
    xssFilter: false,
    permittedCrossDomainPolicies: false,
  })
  setHeaders(response.req, response, () => undefined)
  return Object.fromEntries(
    Object.entries(response.getHeaders()).map(([name, value]) => [name, String(value)]),
  )
}
