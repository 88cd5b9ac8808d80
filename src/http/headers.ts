import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import cors from '@fastify/cors'
import fp from 'fastify-plugin'
import helmet from 'helmet'
import type { AppDeps } from '../deps.ts'
import { notFound } from './errors.ts'

/** Sets the headers of every response. A response is not cached unless its endpoint changes that, RFC 6749 §5.1. */
export const securityHeaders = fp<Pick<AppDeps, 'service'>>(
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

/**
 * Lets pages of any origin call these endpoints, never with cookies. Not for the authorization endpoint, RFC 9700
 * §2.6.
 */
export const anyOrigin = fp<Pick<AppDeps, 'declared'>>(
  async (app, { declared }) => {
    const bindings = Object.values(declared.tokenBindings)
    const headersOf = (of: 'request' | 'response') =>
      Object.keys(declared.headers).filter((name) => declared.headers[name] === of)
    const preflights = new Set<string>()
    app.addHook('onRoute', ({ url, method }) => {
      if (method === 'OPTIONS' || preflights.has(url)) return
      preflights.add(url)
      app.options(url, { schema: { hide: true } }, async (_request, reply) => reply.code(204).send())
    })
    // The route that cors adds for every path would also serve the pages, which no other origin may call. The method
    // first: Fastify builds the options of a route each time they are read.
    app.addHook('onRequest', (request, _reply, done) => {
      const isAnyPath = request.method === 'OPTIONS' && request.routeOptions.url === '*'
      done(isAnyPath ? notFound(app, request) : undefined)
    })
    await app.register(cors, {
      origin: '*',
      methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      allowedHeaders: [
        'Authorization',
        'Content-Type',
        ...headersOf('request'),
        ...bindings.map(({ requestHeader }) => requestHeader),
      ],
      exposedHeaders: [
        'WWW-Authenticate',
        'Retry-After',
        'X-Request-Id',
        ...headersOf('response'),
        ...bindings.map(({ responseHeader }) => responseHeader),
      ].join(', '),
      maxAge: 600,
      strictPreflight: false,
    })
  },
  { name: 'any-origin' },
)
