/**
 * An Express API that verifies JWT access tokens with jose, by hand, so that every step is seen: what the guard of
 * Lychgate does for Fastify. README.md says how to start it.
 */
import express, { type NextFunction, type Request, type Response } from 'express'
import { createRemoteJWKSet, errors, jwtVerify } from 'jose'

const {
  ISSUER: issuer = 'http://localhost:9400',
  // The identifier of this API; ../lychgate.yaml has the same one.
  RESOURCE: resource = 'http://127.0.0.1:9501',
} = process.env
const metadataPath = '/.well-known/oauth-protected-resource'

const keys = createRemoteJWKSet(new URL(await discoverKeys()))

/** RFC 8414 §3: where the keys are is the server's to say, and the document has to be its own, §3.3. */
async function discoverKeys(): Promise<string> {
  const response = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => undefined)
  // `as`: what is used of it is checked below.
  const found = response?.ok ? ((await response.json()) as { issuer?: string; jwks_uri?: string }) : {}
  if (found.issuer === issuer && found.jwks_uri !== undefined) return found.jwks_uri
  process.stderr.write(`no authorization server answers at ${issuer}: start it first\n`)
  process.exit(1)
}

/** Who calls. */
interface Caller {
  readonly sub: string
  readonly scope: readonly string[]
}

/** A refusal in the form of RFC 6750 §3: the header is for clients, and says where to get a better token. */
function refuse(response: Response, status: number, error?: string, scope: readonly string[] = []): void {
  const parameters = [
    ...(error ? [`error="${error}"`] : []),
    ...(scope.length > 0 ? [`scope="${scope.join(' ')}"`] : []),
    // RFC 9728 §5.1: from here a client finds the authorization server by itself.
    `resource_metadata="${resource}${metadataPath}"`,
  ]
  response
    .status(status)
    .set('www-authenticate', `Bearer ${parameters.join(', ')}`)
    .json(error ? { error } : {})
}

/** Lets callers through whose token holds all these scopes; with `anonymous`, callers without a token, too. */
function requireScope(needed: readonly string[], { anonymous = false } = {}) {
  return async (request: Request, response: Response, next: NextFunction) => {
    const [scheme = '', token, ...rest] = (request.get('authorization') ?? '').split(' ')
    if (scheme.toLowerCase() !== 'bearer') {
      // Who sent no token is told where to go, without an error code, RFC 6750 §3.1.
      return anonymous ? next() : refuse(response, 401)
    }
    // A bad token is refused, never taken for none: the client would not notice that it has to refresh.
    const caller = token && rest.length === 0 ? await verify(token) : undefined
    if (caller === undefined) return refuse(response, 401, 'invalid_token')
    if (!needed.every((name) => caller.scope.includes(name))) {
      return refuse(response, 403, 'insufficient_scope', needed)
    }
    response.locals['caller'] = caller
    next()
  }
}

const noKeys = ['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID']

/** RFC 9068 §4: signature, `typ`, `iss`, `exp`, and that the token is for this API and no other. */
async function verify(token: string): Promise<Caller | undefined> {
  try {
    const { payload } = await jwtVerify(token, keys, {
      issuer,
      audience: resource,
      // An ID Token has the same keys and issuer, and is no access token.
      typ: 'at+jwt',
      requiredClaims: ['exp', 'sub', 'client_id'],
    })
    const { sub = '', scope } = payload
    return { sub, scope: typeof scope === 'string' ? scope.split(' ') : [] }
  } catch (error) {
    const code = error instanceof errors.JOSEError ? error.code : undefined
    // Keys that cannot be fetched are not the caller's fault: 503 below.
    if (code === undefined || noKeys.includes(code)) throw error
    return undefined
  }
}

const books = [{ title: 'A first reader', addedBy: 'the librarian' }]

const app = express().disable('x-powered-by').use(express.json())

// RFC 9728 §3: readable from pages of any origin, as browser apps look for it, too.
app.get(metadataPath, (_request, response) => {
  response.set('access-control-allow-origin', '*').json({
    resource,
    authorization_servers: [issuer],
    scopes_supported: ['courses:read', 'courses:write'],
    bearer_methods_supported: ['header'],
    resource_name: 'Library',
  })
})

app.get('/books/count', requireScope(['courses:read'], { anonymous: true }), (_request, response) => {
  const caller: Caller | undefined = response.locals['caller']
  response.json({ books: books.length, caller: caller?.sub ?? 'anonymous' })
})

app.get('/books', requireScope(['courses:read']), (_request, response) => {
  response.json(books)
})

app.post('/books', requireScope(['courses:write']), ({ body }, response) => {
  const caller: Caller = response.locals['caller']
  if (typeof body?.title !== 'string') return void response.status(400).json({ error: 'invalid_request' })
  const book = { title: body.title, addedBy: caller.sub }
  books.push(book)
  response.status(201).json(book)
})

// Express tells an error handler by its four parameters.
app.use((error: Error & { status?: number }, _request: Request, response: Response, _next: NextFunction) => {
  const { status = 503, message } = error
  if (status >= 500) process.stderr.write(`${message}\n`)
  response.status(status).json({ error: status >= 500 ? 'temporarily_unavailable' : 'invalid_request' })
})

const { hostname, port } = new URL(resource)
const server = app.listen(Number(port), hostname, () => {
  process.stdout.write(`Library is ready at ${resource}\n`)
})
process.once('SIGTERM', () => server.close())
