import t from 'tap'
import { obtainTokens, register } from '../helpers/flow.ts'
import {
  assertAllRejected,
  contentsOfDatabase,
  faultOfPage,
  faultOfRejection,
  type RawRequest,
  send,
} from '../helpers/raw.ts'
import { startServer } from '../helpers/server.ts'

const file = `${t.testdir()}/lychgate.db`
const server = await startServer(t, { store: `sqlite:${file}` })
const client = await register(server)
const tokens = await obtainTokens(server, client)
const bearer = ['Authorization', `Bearer ${tokens.access_token}`] as const
const before = contentsOfDatabase(file)
t.afterEach(() => {
  if (contentsOfDatabase(file) !== before) throw new Error('something was written')
})

const documents = [
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-protected-resource',
  '/api/oauth/jwks',
  '/openapi.json',
]
const pages = ['/oauth/authorize', '/login', '/consent', '/oauth/logout']
const apis = ['/api/courses', '/api/account', '/api/oauth/userinfo']
const form = ['Content-Type', 'application/x-www-form-urlencoded'] as const

const queries: Readonly<Record<string, string>> = {
  'a broken percent-encoding': 'x=%zz',
  'bytes that are no UTF-8': 'x=%FF',
  NUL: 'x=%00',
  'a name with NUL': '%00=x',
  '101 parameters': Array.from({ length: 101 }, (_, n) => `p${n}=1`).join('&'),
  'a value over 8 KiB': `x=${'a'.repeat(8193)}`,
  'a repeated parameter': 'client_id=a&client_id=b&interaction=a&interaction=b&state=a&state=b',
  'names of Object.prototype': '__proto__=1&__proto__=2&interaction=x&client_id=x&state=1&state=2',
}

t.test('a query that is malformed or too large shows an error page wherever users read one', async (t) => {
  for (const path of pages) {
    const requests = Object.entries(queries).map(([about, query]): [string, RawRequest] => [
      `${path} with ${about}`,
      { path: `${path}?${query}` },
    ])
    await assertAllRejected(t, server, Object.fromEntries(requests), 'page', 400)
  }
})

t.test('documents, the API and form endpoints ignore the query', async (t) => {
  for (const query of Object.values(queries)) {
    for (const path of documents)
      t.equal((await send(server, { path: `${path}?${query}` })).status, 200, path)
    for (const path of apis) {
      t.equal(
        (await send(server, { path: `${path}?${query}`, headers: [bearer] })).status,
        path.endsWith('userinfo') ? 200 : 403,
        path,
      )
    }
    for (const path of ['/api/oauth/token', '/api/oauth/revoke', '/api/oauth/introspect']) {
      const response = await send(server, {
        method: 'POST',
        path: `${path}?${query}`,
        headers: [form],
        body: 'x=1',
      })
      t.equal(faultOfRejection(response), undefined, path)
    }
  }
})

t.test('an unknown path is 404, as JSON, or as a page for a browser', async (t) => {
  for (const path of [
    '/nowhere',
    '/api',
    '/api/',
    '/api/nothing',
    '/api/oauth',
    '/api/oauth/token/',
    '/api/oauth/token/x',
    '/api/courses/1',
    '/OAuth/Authorize',
    '/.well-known/oauth-authorization-server/x',
    '/.well-known/',
    '//oauth/authorize',
    '/oauth//authorize',
    '/oauth/authorize/..;/x',
    '/%2e%2e/etc/passwd',
    '/../../etc/passwd',
    '/assets/../../package.json',
    '/assets/%2e%2e%2fpackage.json',
    '/assets/style.css/',
    '/__proto__',
    '/constructor',
    '/api/__proto__',
    '/api/constructor',
    '/*',
    '/%F0%9F%98%80',
    '/a;b=c',
    `/${'a'.repeat(10_000)}`,
    `/${'a/'.repeat(5000)}`,
  ]) {
    const json = await send(server, { path })
    t.equal(faultOfRejection(json), undefined, path.slice(0, 60))
    t.equal(json.status, 404, path.slice(0, 60))
    const page = await send(server, { path, headers: [['Accept', 'text/html']] })
    t.equal(faultOfPage(page), undefined, path.slice(0, 60))
    t.equal(page.status, 404, path.slice(0, 60))
  }
})

t.test('a path that cannot be decoded is rejected', async (t) => {
  for (const path of [
    '/%',
    '/%zz',
    '/%FF',
    '/%C0%AF',
    '/api/oauth/%zz',
    '/api/oauth/register/%FF',
    '/caf\xe9',
    '/\x7f',
  ]) {
    const response = await send(server, { path })
    t.equal(faultOfRejection(response), undefined, JSON.stringify(path))
    t.ok([400, 404].includes(response.status), JSON.stringify(path))
  }
})

t.test('an unsupported method is 405 and names the supported ones', async (t) => {
  const [called, shown] = ['OPTIONS, POST', 'GET, HEAD, POST']
  const served: Readonly<Record<string, string>> = {
    '/api/oauth/token': called,
    '/api/oauth/revoke': called,
    '/api/oauth/introspect': called,
    '/api/oauth/register': called,
    '/api/oauth/userinfo': 'GET, HEAD, OPTIONS, POST',
    '/oauth/authorize': shown,
    '/login': shown,
    '/consent': shown,
    '/oauth/logout': shown,
    '/api/oauth/jwks': 'GET, HEAD, OPTIONS',
    '/livez': 'GET, HEAD',
    [`/api/oauth/register/${client.id}`]: 'DELETE, GET, HEAD, OPTIONS, PUT',
  }
  for (const [path, allow] of Object.entries(served)) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'LINK']) {
      if (allow.split(', ').includes(method)) continue
      const response = await send(server, { method, path })
      const about = `${method} ${path}`
      t.equal(faultOfRejection(response), undefined, about)
      t.equal(response.status, 405, about)
      t.equal(response.headers['allow'], allow, about)
    }
  }
})

t.test('any malformed token of a call is 401 or 400', async (t) => {
  const credentials = [
    'Bearer',
    'Bearer ',
    'Bearer x',
    'bearer \xff\xfe',
    'Bearer é',
    `Bearer ${'a'.repeat(9000)}`,
    `Bearer ${tokens.access_token}x`,
    `Bearer ${tokens.access_token.slice(0, -1)}`,
    `Bearer ${tokens.access_token.toUpperCase()}`,
    `Bearer ${tokens.refresh_token}`,
    `Bearer ${tokens.id_token}`,
    'Bearer lyc_access_',
    `Bearer lyc_access_${'A'.repeat(200)}`,
    'Bearer eyJ',
    'Bearer eyJ.eyJ.',
    'Bearer eyJhbGciOiJub25lIn0.e30.',
    `Bearer ${tokens.access_token}, Bearer x`,
    'Bearer a b',
    'Bearer "x"',
  ]
  for (const path of apis) {
    for (const value of credentials) {
      const response = await send(server, { path, headers: [['Authorization', value]] })
      const about = `${path} ${JSON.stringify(value.slice(0, 40))}`
      t.equal(faultOfRejection(response), undefined, about)
      t.equal(response.status, 401, about)
      t.match(response.headers['www-authenticate'], /^Bearer error="invalid_token"/, about)
    }
    const twice = await send(server, { path, headers: [bearer, bearer] })
    t.equal(faultOfRejection(twice), undefined)
    t.equal(twice.status, 400)
  }
})

t.test('a call to the API succeeds whatever body it has', async (t) => {
  const bodies: [string | undefined, string][] = [
    ['application/json', '{'],
    ['application/json', '{"__proto__":1}'],
    ['application/json', ''],
    ['text/plain', 'x'],
    ['application/xml', '<a/>'],
    [undefined, 'x'],
    ['application/x-www-form-urlencoded', 'a=%zz'],
    ['application/x-www-form-urlencoded', `access_token=${tokens.access_token}`],
    ['application/json', 'a'.repeat(100_000)],
  ]
  for (const [type, body] of bodies) {
    const headers = type === undefined ? [] : [['Content-Type', type] as const]
    const response = await send(server, { method: 'POST', path: '/api/courses', headers, body })
    const about = `${type} ${body.slice(0, 20)}`
    if (response.status === 200) t.match(response.body, '"caller":"anonymous"', about)
    else t.equal(faultOfRejection(response), undefined, about)
  }
})

t.test('malformed cookies are ignored', async (t) => {
  for (const cookie of [
    'lychgate_session=x',
    'lychgate_session=%zz; lychgate_browser=%FF',
    'lychgate_session="',
    `lychgate_session=lyc_session_${'A'.repeat(43)}; lychgate_browser=lyc_browser_${'A'.repeat(43)}`,
    'lychgate_device=a.b.c',
    `lychgate_device=x.${'A'.repeat(22)}.${'A'.repeat(43)}`,
    '__proto__=x; constructor=y',
    '=; ;;; a=b=c',
    '\xff\xfe=\xe9',
    `a=${'b'.repeat(8000)}`,
    'lychgate_session=lyc_session_x; lychgate_session=lyc_session_y',
  ]) {
    for (const path of ['/login?interaction=x', '/consent?interaction=x']) {
      const response = await send(server, { path, headers: [['Cookie', cookie]] })
      t.equal(faultOfPage(response), undefined, `${path} ${JSON.stringify(cookie.slice(0, 40))}`)
    }
  }
})
