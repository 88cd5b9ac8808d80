/** What a request for a protected host needs, by its path and method. */
import t from 'tap'
import { isNormalPath, needsOf, type ProtectedHost, readProtectedHost } from '../../src/forward-auth/rules.ts'

const staff = `group_${'A'.repeat(21)}A`
const admins = `group_${'B'.repeat(21)}A`
const host = 'app.example.com'
const protectedHost: ProtectedHost = {
  host,
  rules: [
    { path: '/health', access: 'public' },
    { path: '/public/*', methods: ['GET'], access: 'public' },
    { path: '/api/*', access: 'bearer' },
    { path: '/admin/*', groups: [staff], second_factor: true },
    { path: '/audit', methods: ['POST'], groups: [admins] },
  ],
}
const user = { access: 'user', groups: [], secondFactor: false }
const strictest = { access: 'user', groups: [[staff], [admins]], secondFactor: true }
const ofAdmin = { access: 'user', groups: [[staff]], secondFactor: true }
const open = { ...user, access: 'public' }

t.test('the first rule that matches decides; without one the user is signed in', async (t) => {
  const table: readonly (readonly [string, object])[] = [
    ['GET /health', open],
    ['GET /health?x=/../admin', open],
    ['GET /health/', user],
    ['GET /Health', user],
    ['GET /public/a.css', open],
    ['HEAD /public/a.css', open],
    ['POST /public/a.css', user],
    ['GET /publicity', user],
    ['GET /api/v1', { ...user, access: 'bearer' }],
    ['GET /admin', ofAdmin],
    ['GET /admin/', ofAdmin],
    ['GET /ADMIN/x', ofAdmin],
    ['DELETE /admin/x', ofAdmin],
    ['GET /administrators', user],
    ['GET /audit', user],
    ['POST /audit', { ...user, groups: [[admins]] }],
    ['POST /AUDIT/', { ...user, groups: [[admins]] }],
    ['POST /audit/x', user],
    ['GET /', user],
  ]
  for (const [asked, needs] of table) {
    const [method = '', uri = ''] = asked.split(' ')
    t.strictSame(needsOf(protectedHost, { method, uri }), needs, asked)
  }
})

t.test(
  '[rfc3986-6.2.2-host-normal-path] a path that servers may read in different ways needs the strictest',
  async (t) => {
    const odd = [
      '/public/../admin',
      '/public/..',
      '/public/./x',
      '/public//x',
      '//public/x',
      '/public/%2e%2e/admin',
      '/public/%2E%2E/admin',
      '/public%2fx',
      '/public/%2Fadmin',
      '/public/%5c..%5cadmin',
      '/public/%5C',
      '/public/\\..\\admin',
      '/public/x;y',
      '/public/x%3By',
      '/public/%00',
      '/public/%0a',
      '/public/%7F',
      '/public/%41',
      '/public/%252e%252e/admin',
      '/public/%c3%a5',
      '/public/%zz',
      '/public/%',
      '/public/#x',
      '/public/"x',
      '/public/[x]',
    ]
    for (const uri of odd) {
      t.notOk(isNormalPath(uri), uri)
      t.strictSame(needsOf(protectedHost, { method: 'GET', uri }), strictest, uri)
    }
    for (const path of [
      '/',
      '/a',
      '/a/',
      '/a.b/..c',
      '/a/.well-known/x',
      '/%C3%A5',
      '/a%20b',
      "/~u/(x)!,=:@&$+*'",
    ])
      t.ok(isNormalPath(path), path)
  },
)

t.test('what an operator says of a host is checked', async (t) => {
  const uris = [`https://${host}/.lychgate/callback`]
  const read = (value: unknown, redirect_uris: unknown = uris) =>
    readProtectedHost({ redirect_uris, forward_auth: value }, 'forward_auth')
  t.strictSame(read({ host }), { host, rules: [] })
  t.strictSame(read(protectedHost), protectedHost)
  t.equal(read(undefined), undefined)
  const wrong: readonly unknown[] = [
    'app.example.com',
    { host: 'App.example.com' },
    { host: 'app.example.com.' },
    { host: 'app.example.com:443' },
    { host: 'app.example.com/x' },
    { host: 'user@app.example.com' },
    { host: '10.0.0.1' },
    { host, other: 1 },
    { host, rules: {} },
    { host, rules: [{ path: 'x' }] },
    { host, rules: [{ path: '/x/../y' }] },
    { host, rules: [{ path: '/x', methods: ['get'] }] },
    { host, rules: [{ path: '/x', methods: [] }] },
    { host, rules: [{ path: '/x', access: 'open' }] },
    { host, rules: [{ path: '/x', groups: ['staff'] }] },
    { host, rules: [{ path: '/x', groups: [] }] },
    { host, rules: [{ path: '/x', access: 'public', groups: [staff] }] },
    { host, rules: [{ path: '/x', access: 'bearer', second_factor: true }] },
    { host, rules: [{ path: '/x', allow: 'public' }] },
  ]
  for (const value of wrong)
    t.throws(() => read(value), { code: 'invalid_client_metadata' }, JSON.stringify(value))
  t.throws(() => read({ host }, ['https://other.example.com/.lychgate/callback']))
  t.throws(() => read({ host }, [...uris, 'https://other.example.com/callback']))
})
