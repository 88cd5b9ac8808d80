import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { cookieName } from '../../src/http/cookies.ts'
import { newFolder, run } from '../helpers/command.ts'
import { startProxied } from '../helpers/doctor.ts'
import type { Behaviour, Passing } from '../helpers/proxy.ts'

// One set-up, whose proxy has one fault at a time; the doctor uses it over TLS as clients do.
const setup = await startProxied(t)
const { issuer, server, faults } = setup
const discovery = `${issuer}/.well-known/openid-configuration`

/** A proxy that changes these headers of every response. */
const withHeaders = (change: (headers: Passing['headers']) => Passing['headers']): Behaviour => ({
  response: (passing) => ({ ...passing, headers: change(passing.headers) }),
})
/** A proxy that changes the text of JSON documents. */
const withText = (change: (text: string) => string): Behaviour => ({
  response: (passing) => {
    const isJson = String(passing.headers['content-type']).includes('json')
    return isJson ? { ...passing, body: Buffer.from(change(passing.body.toString())) } : passing
  },
})
/** A proxy that responds itself. */
const respondingWith = (status: number, headers: Passing['headers'], body = ''): Behaviour => ({
  responses: (_incoming, outgoing) => {
    outgoing.writeHead(status, headers).end(body)
    return true
  },
})
const without =
  (name: string) =>
  ({ [name]: _gone, ...headers }: Passing['headers']) =>
    headers

t.test('a healthy set-up behind a proxy has no finding', async (t) => {
  t.strictSame(await faults(), [])
  const harmless = { age: '0', 'strict-transport-security': 'max-age=63072000; includeSubDomains' }
  t.strictSame(await faults(withHeaders((headers) => ({ ...headers, ...harmless }))), [])
})

t.test('a proxy that alters the documents is found, with the setting to change', async (t) => {
  const cases: [string, Behaviour, object][] = [
    [
      'a trailing slash',
      withText((text) => text.replace(`"issuer":"${issuer}"`, `"issuer":"${issuer}/"`)),
      { said: `${discovery} has the issuer with a trailing slash`, expected: issuer, found: `${issuer}/` },
    ],
    [
      'http for https',
      withText((text) => text.replaceAll('https://', 'http://')),
      {
        said: `${discovery} has the issuer with http`,
        found: issuer.replace('https', 'http'),
        change: [/^sub_filter_types none;/, `LYCHGATE_ISSUER=${issuer}`, `issuer: ${issuer}   (in the file)`],
      },
    ],
    [
      'another endpoint',
      withText((text) => text.replace('/oauth/authorize"', '/authorize"')),
      { said: `${discovery} differs in authorization_endpoint`, found: /\/authorize"/ },
    ],
    [
      'another content type',
      withHeaders((headers) => ({ ...headers, 'content-type': 'text/plain' })),
      { level: 'warning', said: `${discovery} has the wrong content type`, found: 'text/plain' },
    ],
  ]
  for (const [about, behaviour, finding] of cases) {
    t.match((await faults(behaviour))[0], { check: 'issuer', level: 'problem', ...finding }, about)
  }
})

t.test('a proxy or another server that responds instead of this one is found', async (t) => {
  const html = { 'content-type': 'text/html' }
  const port = server.deps.config.port
  const toThisServer = new RegExp(`proxy_pass http://127.0.0.1:${port};`)
  const foreign = JSON.stringify({ issuer: 'https://other.example', jwks_uri: 'https://other.example/jwks' })
  const cases: [string, Behaviour, object][] = [
    [
      '502',
      respondingWith(502, html, '<title>502 Bad\n Gateway</title>'),
      { said: `${discovery} has status 502`, found: '502: 502 Bad Gateway', change: [toThisServer] },
    ],
    [
      'a page for everything',
      respondingWith(200, html, '<h1>It works!</h1>'),
      { said: `${discovery} comes from another server`, found: 'text/html: <h1>It works!</h1>' },
    ],
    [
      'a redirect',
      respondingWith(301, { location: `${discovery}/` }),
      { said: `${discovery} is a redirect`, found: `301, to ${discovery}/` },
    ],
    [
      'another server',
      respondingWith(200, { 'content-type': 'application/json' }, foreign),
      {
        said: `${discovery} has another issuer`,
        found: 'https://other.example',
        change: [toThisServer, 'LYCHGATE_ISSUER=https://other.example'],
      },
    ],
  ]
  for (const [about, behaviour, finding] of cases) {
    const found = await faults(behaviour)
    t.equal(found.length, 1, about)
    t.match(found[0], { check: 'issuer', level: 'problem', ...finding }, about)
  }
})

t.test('a copy of this server with other keys is found', async (t) => {
  const jwks = JSON.stringify({ keys: [{ kid: 'theirs', kty: 'OKP' }] })
  const [finding, ...more] = await faults({
    response: (passing, path) => (path.endsWith('/jwks') ? { ...passing, body: Buffer.from(jwks) } : passing),
  })
  t.match(finding, { check: 'published keys', level: 'problem', found: 'theirs', change: [/proxy_pass/] })
  t.strictSame(more, [])
})

t.test('headers, cookies and credentials that a proxy drops are found', async (t) => {
  const cases: [string, Behaviour, object][] = [
    [
      'the policy is lost',
      withHeaders(without('content-security-policy')),
      {
        check: 'headers',
        said: 'content-security-policy is lost on the way',
        expected: /frame-ancestors 'none'/,
        change: [/proxy_hide_header Content-Security-Policy;$/],
      },
    ],
    [
      'a header is added',
      withHeaders((headers) => ({ ...headers, 'x-frame-options': 'DENY, SAMEORIGIN' })),
      { check: 'headers', level: 'warning', said: 'x-frame-options is sent twice' },
    ],
    [
      'a header is replaced',
      withHeaders((headers) => ({ ...headers, 'cache-control': 'public' })),
      { check: 'headers', said: 'cache-control is replaced', expected: 'no-store', found: 'public' },
    ],
    [
      'https is for minutes only',
      withHeaders((headers) => ({ ...headers, 'strict-transport-security': 'max-age=300' })),
      { check: 'headers', said: 'strict-transport-security is replaced', found: 'max-age=300' },
    ],
    [
      'cookies are lost',
      withHeaders(without('set-cookie')),
      {
        check: 'cookies',
        said: 'are lost on the way: users cannot sign in',
        expected: `${cookieName(issuer, 'session')}=…; HttpOnly; Path=/; SameSite=Lax; Secure`,
        change: [/proxy_hide_header Set-Cookie/],
      },
    ],
    [
      'cookies are changed',
      withHeaders((headers) => ({
        ...headers,
        ...(headers['set-cookie'] && {
          'set-cookie': [headers['set-cookie']].flat().map((one) => String(one).replace('; Secure', '')),
        }),
      })),
      { check: 'cookies', said: 'are changed on the way', change: [/proxy_cookie_flags/] },
    ],
    [
      'Authorization does not get through',
      { request: without('authorization') },
      { check: 'request headers', said: 'Authorization does not reach the server' },
    ],
  ]
  for (const [about, behaviour, finding] of cases) {
    const found = await faults(behaviour)
    const one = found.find(({ check }) => check !== 'issuer')
    t.match(one, { level: 'problem', ...finding }, about)
  }
})

t.test('a proxy that caches, compresses, truncates or redates responses is found', async (t) => {
  const kept = new Map<string, Passing>()
  const keeping: Behaviour = {
    response: (passing, path) => {
      const old = kept.get(path) ?? passing
      kept.set(path, old)
      return old
    },
  }
  const limiting: Behaviour = {
    responses: (incoming, outgoing) => {
      if (Number(incoming.headers['content-length'] ?? 0) <= 8192) return false
      outgoing.writeHead(413, { connection: 'close' }).end('<title>413 Request Entity Too Large</title>')
      return true
    },
  }
  const cases: [string, Behaviour, object][] = [
    [
      'it caches',
      keeping,
      { check: 'caching', found: 'the same response twice', change: [/^proxy_cache off;/] },
    ],
    [
      'it says how old its copy is',
      withHeaders((headers) => ({ ...headers, age: '7' })),
      { check: 'caching', found: 'age: 7' },
    ],
    [
      'it compresses pages',
      withHeaders((headers) =>
        String(headers['content-type']).includes('html')
          ? { ...headers, 'content-encoding': 'gzip' }
          : headers,
      ),
      { check: 'compression', level: 'warning', found: 'gzip', change: [/^gzip off;/] },
    ],
    [
      'it limits forms',
      limiting,
      {
        check: 'body size',
        expected: /16384 bytes/,
        found: '413: 413 Request Entity Too Large',
        change: [/^client_max_body_size 64k;/],
      },
    ],
    [
      'its clock is wrong',
      withHeaders((headers) => ({ ...headers, date: new Date(Date.now() - 60_000).toUTCString() })),
      {
        check: 'clock',
        said: /^of the issuer is (59|60|61) seconds behind this one$/,
        change: [/set-ntp true/],
      },
    ],
  ]
  for (const [about, behaviour, finding] of cases) {
    const found = await faults(behaviour)
    t.match(found, [{ level: 'problem', ...finding }], about)
    t.equal(found.length, 1, about)
  }
})

t.test('a proxy that sends no X-Forwarded-For, or not from where trustProxy says, is found', async (t) => {
  const silent: Behaviour = { request: ({ 'x-forwarded-for': _gone, ...headers }) => headers }
  const [lost, ...more] = await faults(silent)
  t.strictSame(more, [])
  t.match(lost, {
    check: 'forwarded address',
    level: 'problem',
    said: /^the proxy at (?:::ffff:)?127\.0\.0\.1 sends no X-Forwarded-For: /,
    found: 'no such header in the request of this command',
    change: [/^let the proxy send it, in nginx: proxy_set_header X-Forwarded-For/],
  })
  const authority = join(newFolder(t), 'ca.pem')
  writeFileSync(authority, setup.certificates.authority)
  const environment = { ...setup.environment, NODE_EXTRA_CA_CERTS: authority }
  const { code, stdout } = await run(['doctor'], { environment })
  t.equal(code, 1, 'the command itself prints it')
  t.match(
    stdout,
    /problem +forwarded address: the proxy at 127\.0\.0\.1 sends no X-Forwarded-For: .*\n +expected .*\n +found .*\n +change +let the proxy send it/,
  )
})

t.test('a proxy that passes on what a client says of its own address is found', async (t) => {
  const own = (header: unknown) => String(header).split(', ').slice(0, -1)
  const passing: Behaviour = {
    request: ({ 'x-forwarded-for': header, ...headers }) => ({
      ...headers,
      'x-forwarded-for': own(header).length > 0 ? own(header).join(', ') : header,
    }),
  }
  const [passed, ...more] = await faults(passing)
  t.strictSame(more, [])
  t.match(passed, {
    check: 'forwarded address',
    level: 'problem',
    said: /^the proxy at (?:::ffff:)?127\.0\.0\.1 passes on the X-Forwarded-For of clients: /,
    found: 'only 192.0.2.1, which this command sent',
    change: [/^let the proxy set it, in nginx: proxy_set_header X-Forwarded-For/],
  })
})

t.test('with another secret than the server has, how a request arrived is not known', async (t) => {
  const found = await faults({}, { LYCHGATE_SECRET: 'another secret that is long enough as well' })
  t.match(
    found.find(({ check }) => check === 'forwarded address'),
    { level: 'not checked' },
  )
})
