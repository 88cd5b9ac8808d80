/**
 * An Express API that verifies JWT access tokens with jose, without the guard, to show every step that the guard does
 * for Fastify. README.md describes how to start it.
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

/** Reads the URL of the keys from the metadata, RFC 8414 §3, and checks that it belongs to this issuer, §3.3. */
async function discoverKeys(): Promise<string> {
  const response = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => undefined)
  // `as`: the members are checked below.
  const found = response?.ok ? ((await response.json()) as { issuer?: string; jwks_uri?: string }) : {}
  if (found.issuer === issuer && found.jwks_uri !== undefined) return found.jwks_uri
  process.stderr.write(`no authorization server responds at ${issuer}: start it first\n`)
  process.exit(1)
}

/** The caller. */
interface Caller {
  readonly sub: string
  readonly scope: readonly string[]
}

/** Rejects a request, RFC 6750 §3. The header tells clients where to get a token. */
function reject(response: Response, status: number, error?: string, scope: readonly string[] = []): void {
  const parameters = [
    ...(error ? [`error="${error}"`] : []),
    ...(scope.length > 0 ? [`scope="${scope.join(' ')}"`] : []),
    // RFC 9728 §5.1: clients find the authorization server from here.
    `resource_metadata="${resource}${metadataPath}"`,
  ]
  response
    .status(status)
    .set('www-authenticate', `Bearer ${parameters.join(', ')}`)
    .json(error ? { error } : {})
}

/** Accepts callers with a token that has all these scopes, and with `anonymous` also callers without a token. */
function requireScope(needed: readonly string[], { anonymous = false } = {}) {
  return async (request: Request, response: Response, next: NextFunction) => {
    const [scheme = '', token, ...rest] = (request.get('authorization') ?? '').split(' ')
    if (scheme.toLowerCase() !== 'bearer') {
      // A caller without a token gets a challenge without an error code, RFC 6750 §3.1.
      return anonymous ? next() : reject(response, 401)
    }
    // A bad token is rejected and never treated as none: otherwise the client would not notice that it must refresh.
    const caller = token && rest.length === 0 ? await verify(token) : undefined
    if (caller === undefined) return reject(response, 401, 'invalid_token')
    if (!needed.every((name) => caller.scope.includes(name))) {
      return reject(response, 403, 'insufficient_scope', needed)
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
      // An ID Token has the same keys and issuer, but is not an access token.
      typ: 'at+jwt',
      requiredClaims: ['exp', 'sub', 'client_id'],
    })
    const { sub = '', scope } = payload
    return { sub, scope: typeof scope === 'string' ? scope.split(' ') : [] }
  } catch (error) {
    const code = error instanceof errors.JOSEError ? error.code : undefined
    // If the keys cannot be fetched, the token may be valid: respond with 503 below.
    if (code === undefined || noKeys.includes(code)) throw error
    return undefined
  }
}

const books = [{ title: 'A first reader', addedBy: 'the librarian' }]

const app = express().disable('x-powered-by').use(express.json())

// RFC 9728 §3: readable from any origin, because browser apps need it too.
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

// Express recognises an error handler by its four parameters.
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
