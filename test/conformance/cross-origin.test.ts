import t from 'tap'
import { callApi } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected, json, startFlow } from '../helpers/wire.ts'

const { server, client, tokens } = await startFlow(t)
const page = 'https://app.example'

/** The preflight that a browser sends before a call from another origin. */
function preflight(path: string, method: string, names = 'authorization, content-type'): Promise<Response> {
  const headers = {
    origin: page,
    'access-control-request-method': method,
    'access-control-request-headers': names,
  }
  return fetch(server.issuer + path, { method: 'OPTIONS', headers })
}

const corsOf = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))

const readable = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'WWW-Authenticate, Retry-After, X-Request-Id, ETag, Location, Idempotent-Replayed, DPoP-Nonce',
}

t.test(
  '[oidc-disc-3-cors] [oidc-reg-3-cors] [oidc-core-5.3-cors] [rfc7009-2.3-cors] pages of any origin may call the endpoints for clients, without cookies',
  async (t) => {
    const callable: [string, string][] = [
      ['GET', '/.well-known/oauth-authorization-server'],
      ['GET', '/.well-known/openid-configuration'],
      ['GET', '/.well-known/oauth-protected-resource'],
      ['GET', '/api/oauth/jwks'],
      ['GET', '/openapi.json'],
      ['POST', '/api/oauth/register'],
      ['PUT', `/api/oauth/register/${client.id}`],
      ['POST', '/api/oauth/token'],
      ['POST', '/api/oauth/revoke'],
      ['POST', '/api/oauth/introspect'],
      ['GET', '/api/oauth/userinfo'],
      ['POST', '/api/oauth/userinfo'],
      ['GET', '/api/courses'],
      ['DELETE', '/api/courses'],
    ]
    for (const [method, path] of callable) {
      const asked = await preflight(path, method)
      t.equal(asked.status, 204, `${method} ${path}`)
      t.equal(asked.headers.get('access-control-allow-origin'), '*', path)
      t.ok(asked.headers.get('access-control-allow-methods')?.split(', ').includes(method), path)
      t.match(asked.headers.get('access-control-allow-headers'), /authorization.*content-type/i, path)
      t.equal(asked.headers.get('access-control-allow-credentials'), null, path)
      const response = await fetch(server.issuer + path, { method, headers: { origin: page } })
      t.equal(response.headers.get('access-control-allow-origin'), '*', `${method} ${path}, rejected or not`)
      t.match(response.headers.get('access-control-expose-headers'), 'WWW-Authenticate', path)
    }
  },
)

t.test(
  '[rfc9700-2.6-no-cors-authorize] [oidc-disc-3-cors] no page of another origin may call the pages for users',
  async (t) => {
    const pages = ['/oauth/authorize', '/login', '/consent', '/oauth/logout', '/account', '/account/profile']
    for (const path of [
      ...pages,
      '/admin',
      '/admin/clients',
      '/device',
      '/device/confirm',
      '/',
      '/nothing',
    ]) {
      for (const method of ['GET', 'POST']) {
        const asked = await preflight(path, method)
        t.ok([404, 405].includes(asked.status), `${path} ${asked.status}`)
        t.equal((await preflight(path, 'PUT', 'mcp-protocol-version')).headers.get('vary'), null)
        const response = await fetch(server.issuer + path, { method, headers: { origin: page } })
        for (const { headers } of [asked, response]) {
          const names = [...headers.keys()].filter((name) => name.startsWith('access-control-'))
          t.strictSame(names, [], `${method} ${path}`)
        }
      }
    }
  },
)

t.test('every path declares its methods', async (t) => {
  const table: [string, string, string][] = [
    ['PUT', '/api/oauth/token', 'OPTIONS, POST'],
    ['GET', '/api/oauth/register', 'OPTIONS, POST'],
    ['GET', '/api/oauth/revoke', 'OPTIONS, POST'],
    ['GET', '/api/oauth/introspect', 'OPTIONS, POST'],
    ['DELETE', '/api/oauth/userinfo', 'GET, HEAD, OPTIONS, POST'],
    ['POST', '/api/oauth/jwks', 'GET, HEAD, OPTIONS'],
    ['POST', '/openapi.json', 'GET, HEAD, OPTIONS'],
    ['POST', '/api/analytics', 'GET, HEAD, OPTIONS'],
    ['GET', '/api/storage', 'DELETE, OPTIONS, PATCH, POST, PUT'],
    ['PUT', '/oauth/authorize', 'GET, HEAD, POST'],
    ['OPTIONS', '/oauth/authorize', 'GET, HEAD, POST'],
  ]
  for (const [method, path, allow] of table) {
    const response = await fetch(server.issuer + path, { method })
    t.equal(response.headers.get('allow'), allow, `${method} ${path}`)
    await assertRejected(t, response, 'invalid_request', 405, `${method} ${path}`)
  }
  await assertRejected(t, await fetch(`${server.issuer}/api/nothing`), 'invalid_request', 404)
})

t.test('a page can read the challenge of a rejected call', async (t) => {
  const { access_token: token } = await tokens()
  const rejected = await callApi(server, '/api/courses', token, { headers: { origin: page } })
  t.equal(rejected.status, 403)
  t.equal(rejected.headers.get('access-control-allow-origin'), '*')
  t.match(rejected.headers.get('access-control-expose-headers'), 'WWW-Authenticate')
  t.match(await json(rejected), { error: 'insufficient_scope' })
})

t.test(
  '[oidc-disc-3-cors] a preflight returns the header names that it asks for, and no credentials',
  async (t) => {
    const tracing = 'authorization,baggage,content-type,dpop,mcp-protocol-version,sentry-trace,traceparent'
    for (const path of ['/.well-known/oauth-protected-resource', '/api/oauth/register', '/api/oauth/token']) {
      const asked = await preflight(path, 'POST', tracing)
      t.equal(asked.status, 204, path)
      t.equal(asked.headers.get('vary'), 'Access-Control-Request-Headers')
      t.strictSame(corsOf(asked), {
        ...readable,
        'access-control-allow-headers': tracing.replaceAll(',', ', '),
        'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
        'access-control-max-age': '600',
      })
    }
    for (const names of ['a b', 'x:y', 'x,,y', 'x"', `x, ${'y'.repeat(2000)}`, '']) {
      const { headers } = await preflight('/api/oauth/token', 'POST', names)
      t.equal(headers.get('access-control-allow-headers'), 'Authorization, Content-Type', names.slice(0, 20))
    }
  },
)

t.test('a page can read every error of an endpoint, and that there is none', async (t) => {
  const limited = await startServer(t, { rateLimits: 'on', requestsPerMinute: { token: 1 } })
  const broken = await startServer(t)
  broken.deps.store.find = () => Promise.reject(new Error('the disk is full'))
  const below = await startServer(t, { issuerPath: '/t' })
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const large = { method: 'POST', headers: form, body: `grant_type=${'x'.repeat(1_000_000)}` }
  const [sent, text] = [
    { method: 'POST', headers: form, body: 'grant_type=x&client_id=x' },
    { 'content-type': 'text/plain' },
  ]
  await fetch(`${limited.issuer}/api/oauth/token`, sent)
  const cases: [number, string, RequestInit?][] = [
    [404, `${server.issuer}/.well-known/oauth-protected-resource/mcp`],
    [404, `${server.issuer}/.well-known/oauth-authorization-server/mcp`],
    [404, `${server.issuer}/.well-known/nothing?x=/login`],
    [404, `${server.issuer}/.well-known/nothing`, { headers: { accept: 'text/html' } }],
    [404, `${server.issuer}/api/nothing`],
    [404, `${server.issuer}/api/oauth/token/`],
    [405, `${server.issuer}/api/oauth/token`],
    [405, `${server.issuer}/oauth/device_authorization`],
    [405, `${server.issuer}/openapi.json`, { method: 'POST' }],
    [400, `${server.issuer}/api/oauth/token%zz`],
    [414, `${server.issuer}/api/oauth/register/${'x'.repeat(7000)}`],
    [413, `${server.issuer}/api/oauth/token`, large],
    [415, `${server.issuer}/api/oauth/register`, { method: 'POST', headers: text, body: 'x' }],
    [429, `${limited.issuer}/api/oauth/token`, sent],
    [500, `${broken.issuer}/api/oauth/token`, sent],
    [404, `${below.issuer}/.well-known/nothing`],
    [404, `${below.origin}/.well-known/oauth-protected-resource/t/mcp`],
    [404, `${below.issuer}/api/nothing`],
    [405, `${below.issuer}/api/oauth/jwks`, { method: 'POST' }],
    [405, `${below.issuer}/oauth/device_authorization`],
  ]
  for (const [status, url, init] of cases) {
    const response = await fetch(url, { ...init, headers: { ...init?.headers, origin: page } })
    const about = url.slice(0, 100)
    t.equal(response.status, status, about)
    t.strictSame(corsOf(response), readable, about)
    await response.arrayBuffer()
    const headers = { origin: page, 'access-control-request-method': 'GET' }
    if (status >= 414 || /%zz/.test(url)) continue
    t.equal((await fetch(url, { method: 'OPTIONS', headers })).status, 204, `preflight of ${about}`)
  }
  for (const path of [
    '/t/login',
    '/t/oauth/authorize',
    '/t/account',
    '/t/nothing',
    '/api/oauth/token',
    '/api/x',
  ])
    for (const method of ['GET', 'PUT'])
      t.strictSame(corsOf(await fetch(below.origin + path, { method, redirect: 'manual' })), {}, path)
})
