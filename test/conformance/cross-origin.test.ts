import t from 'tap'
import { callApi } from '../helpers/flow.ts'
import { assertRejected, json, startFlow } from '../helpers/wire.ts'

const { server, client, tokens } = await startFlow(t)
const page = 'https://app.example'

/** The preflight that a browser sends before a call from another origin. */
function preflight(path: string, method: string): Promise<Response> {
  const headers = {
    origin: page,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization, content-type',
  }
  return fetch(server.issuer + path, { method: 'OPTIONS', headers })
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
      const answer = await fetch(server.issuer + path, { method, headers: { origin: page } })
      t.equal(answer.headers.get('access-control-allow-origin'), '*', `${method} ${path}, rejected or not`)
      t.match(answer.headers.get('access-control-expose-headers'), 'WWW-Authenticate', path)
    }
  },
)

t.test(
  '[rfc9700-2.6-no-cors-authorize] [oidc-disc-3-cors] no page of another origin may call the pages for users',
  async (t) => {
    for (const path of ['/oauth/authorize', '/login', '/consent', '/oauth/logout', '/', '/nothing']) {
      for (const method of ['GET', 'POST']) {
        const asked = await preflight(path, method)
        t.ok([404, 405].includes(asked.status), `${path} ${asked.status}`)
        const answer = await fetch(server.issuer + path, { method, headers: { origin: page } })
        for (const { headers } of [asked, answer]) {
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
  const refused = await callApi(server, '/api/courses', token, { headers: { origin: page } })
  t.equal(refused.status, 403)
  t.equal(refused.headers.get('access-control-allow-origin'), '*')
  t.match(refused.headers.get('access-control-expose-headers'), 'WWW-Authenticate')
  t.match(await json(refused), { error: 'insufficient_scope' })
})
