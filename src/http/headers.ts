import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import fp from 'fastify-plugin'
import helmet from 'helmet'
import type { Needs } from '../feature/deps.ts'

/** Sets the headers of every response. A response is not cached unless its endpoint changes that, RFC 6749 §5.1. */
export const securityHeaders = fp<Needs<'service'>>(
  async (app, { service: { https } }) => {
    const headers = { ...helmetHeaders(https), 'cache-control': 'no-store', pragma: 'no-cache' }
    app.addHook('onRequest', (_request, reply, done) => {
      reply.headers(headers)
      done()
    })
  },
  { name: 'security-headers' },
)

/** Returns the headers that helmet sets. They are the same for every response, so helmet is called once. */
function helmetHeaders(https: boolean): OutgoingHttpHeaders {
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
  return response.getHeaders()
}
