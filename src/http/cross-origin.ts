import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Needs } from '../feature/deps.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Absent in applications that only use the guard. */
    readonly anyOrigin?: AnyOrigin
  }
}

/** What pages of any origin may call and read, never with credentials (Fetch §3.3). */
interface AnyOrigin {
  readonly headers: Readonly<Record<string, string>>
  /** Sets the headers that let a page read this response, if the path is one that pages may call, whether there is a route or not. */
  shareError(reply: FastifyReply): void
  /** Whether the request is the preflight of a call to such a path, Fetch §4.8. */
  isPreflight(request: FastifyRequest): boolean
  preflight(request: FastifyRequest, reply: FastifyReply): FastifyReply
  /** Adds the path of an endpoint. */
  add(path: string): void
}

/** Longer lists of header names are not returned: clients with every tracing header send about 500 characters. */
const longestNames = 2000

/** Decorates `app.anyOrigin`. Without it an endpoint is for pages of its own origin only. */
export const anyOrigin = fp<Needs<'declared' | 'service'>>(
  async (app, { declared, service: { prefix } }) => {
    const bindings = Object.values(declared.tokenBindings)
    const headers = {
      'access-control-allow-origin': '*',
      'access-control-expose-headers': [
        'WWW-Authenticate',
        'Retry-After',
        'X-Request-Id',
        ...declared.exposedHeaders,
        ...bindings.map(({ responseHeader }) => responseHeader),
      ].join(', '),
    }
    // Clients look for metadata at paths that may not exist, and have to read that they do not.
    const trees = ['/.well-known/', `${prefix}/.well-known/`, `${prefix}/api/`]
    const paths = new Set<string>()
    const isOpen = ({ url }: FastifyRequest) => {
      const [path = ''] = url.split('?', 1)
      return trees.some((tree) => path.startsWith(tree)) || paths.has(path)
    }
    app.decorate('anyOrigin', {
      headers,
      shareError: (reply) => {
        if (isOpen(reply.request)) reply.headers(headers)
      },
      isPreflight: (request) =>
        request.method === 'OPTIONS' &&
        request.headers['access-control-request-method'] !== undefined &&
        isOpen(request),
      preflight: (request, reply) =>
        reply
          .code(204)
          .headers(headers)
          .header('access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE')
          .header('access-control-allow-headers', allowedHeaders(request))
          .header('access-control-max-age', '600')
          .header('vary', 'Access-Control-Request-Headers')
          .send(),
      add: (path) => void paths.add(path),
    })
  },
  { name: 'any-origin', dependencies: ['security-headers'] },
)

/**
 * Opens the routes of this scope to pages of any origin. Not for the authorization endpoint, RFC 9700 §2.6.
 */
export const openToAnyOrigin: FastifyPluginCallback = fp((app, _options, done) => {
  const preflights = new Set<string>()
  app.addHook('onRoute', ({ url, method }) => {
    if (method === 'OPTIONS' || preflights.has(url)) return
    preflights.add(url)
    app.anyOrigin?.add(url)
    app.options(url, { schema: { hide: true } }, (request, reply) => app.anyOrigin?.preflight(request, reply))
  })
  if (app.anyOrigin !== undefined) app.decorate('setHeaders', app.headersWith(app.anyOrigin.headers))
  done()
})

/**
 * Returns the names that a preflight asks for: `*` would not cover `Authorization` (Fetch §4.8), and without
 * credentials no header can do harm.
 */
function allowedHeaders({ headers }: FastifyRequest): string {
  const field = headers['access-control-request-headers'] ?? ''
  const names = field.length > longestNames ? [''] : field.split(',').map((name) => name.trim())
  // RFC 9110 §5.6.2
  const areTokens = names.every((name) => /^[\w!#$%&'*+.^`|~-]+$/.test(name))
  return areTokens ? names.join(', ') : 'Authorization, Content-Type'
}
