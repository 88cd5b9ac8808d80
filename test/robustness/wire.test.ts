import t from 'tap'
import { authorizationUrl, register } from '../helpers/flow.ts'
import {
  bytesOfRequest,
  contentsOfDatabase,
  faultOfPage,
  faultOfRejection,
  send,
  sendBytes,
} from '../helpers/raw.ts'
import { startServer } from '../helpers/server.ts'

const file = `${t.testdir()}/lychgate.db`
const server = await startServer(t, { store: `sqlite:${file}` })
const client = await register(server)
const before = contentsOfDatabase(file)
t.afterEach(() => {
  if (contentsOfDatabase(file) !== before) throw new Error('something was written')
})

const head = 'Host: localhost\r\nConnection: close\r\n'
const form = 'Content-Type: application/x-www-form-urlencoded\r\n'
const token = `POST /api/oauth/token HTTP/1.1\r\n${head}`

t.test('headers over the limit are 431, whichever part is too long', async (t) => {
  const long = 'a'.repeat(20_000)
  for (const [about, request] of Object.entries({
    'one header': { path: '/livez', headers: [['X-Long', long]] as const },
    'many headers': {
      path: '/livez',
      headers: Array.from({ length: 500 }, (_, n) => [`X-${n}`, 'a'.repeat(40)] as const),
    },
    'the path': { path: `/${long}` },
    'the query': { path: `/oauth/authorize?client_id=${long}` },
    'a cookie': { path: '/login', headers: [['Cookie', `a=${long}`]] as const },
    'the token': { path: '/api/courses', headers: [['Authorization', `Bearer ${long}`]] as const },
  })) {
    const response = await send(server, request)
    t.equal(faultOfRejection(response), undefined, about)
    t.equal(response.status, 431, about)
  }
})

t.test('a request that is not HTTP is 400 with the usual error body', async (t) => {
  for (const [about, text] of Object.entries({
    'nothing of it': 'hello\r\n\r\n',
    'a method in small letters': `get /livez HTTP/1.1\r\n${head}\r\n`,
    'an unknown method': `FOO /livez HTTP/1.1\r\n${head}\r\n`,
    'HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'a TLS hello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'NUL in a header': `GET /livez HTTP/1.1\r\n${head}X: a\0b\r\n\r\n`,
    'a space in a header name': `GET /livez HTTP/1.1\r\n${head}X Y: a\r\n\r\n`,
    'a folded header': `GET /livez HTTP/1.1\r\n X: a\r\n${head}\r\n`,
    'raw bytes in the query': `GET /oauth/authorize?x=\xff HTTP/1.1\r\n${head}\r\n`,
    'a path without its slash': `GET ? HTTP/1.1\r\n${head}\r\n`,
    'two lengths': `${token}${form}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    'a negative length': `${token}${form}Content-Length: -1\r\n\r\n`,
    'a length in hexadecimals': `${token}${form}Content-Length: 0x1\r\n\r\na`,
    'a length and chunks': `${token}${form}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'an unknown coding': `${token}${form}Transfer-Encoding: nonsense\r\n\r\n0\r\n\r\n`,
    'chunked, and then more': `${token}${form}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    identity: `${token}${form}Transfer-Encoding: identity\r\n\r\na=1`,
    'a broken chunk': `${token}${form}Transfer-Encoding: chunked\r\n\r\nzz\r\na=1\r\n0\r\n\r\n`,
    'a chunk shorter than it says': `${token}${form}Transfer-Encoding: chunked\r\n\r\n9\r\na=1\r\n0\r\n\r\nx`,
  })) {
    const response = await sendBytes(server, text)
    t.equal(faultOfRejection(response), undefined, about)
    t.equal(response.status, 400, about)
  }
})

t.test('a missing, repeated or malformed Host is 400, at every kind of path', async (t) => {
  for (const path of ['/livez', '/api/oauth/jwks', '/nothing']) {
    for (const hosts of [
      [],
      ['localhost', 'localhost'],
      ['localhost', 'evil.example'],
      ['a b'],
      ['user@localhost'],
      ['localhost/path'],
      ['localhost:port'],
      ['a,b:x'],
      ['[::1'],
    ]) {
      const lines = hosts.map((host, n) => `${n === 0 ? 'Host' : 'hOsT'}: ${host}\r\n`).join('')
      const response = await sendBytes(server, `GET ${path} HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`)
      t.equal(faultOfRejection(response), undefined, `${path} ${hosts}`)
      t.match(response, { status: 400, body: /the Host header is (missing|repeated|malformed)/ }, `${hosts}`)
    }
  }
  const page = await sendBytes(
    server,
    'GET /login HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n',
  )
  t.equal(faultOfPage(page), undefined)
  for (const host of [
    'localhost',
    'localhost:9400',
    '[::1]:9400',
    '127.0.0.1',
    'a_b.example',
    '',
    'xn--a.example:',
  ])
    t.equal((await send(server, { path: '/livez', headers: [['Host', host]] })).status, 200, host)
})

t.test('an unknown expectation is 417 with the usual error body', async (t) => {
  const expecting = `${token}${form}Expect: nonsense\r\nContent-Length: 1\r\n\r\na`
  const response = await sendBytes(server, expecting)
  t.equal(faultOfRejection(response), undefined)
  t.match(response, { status: 417, body: /the Expect header must be 100-continue/ })
  const usual = `${token}${form}Expect: 100-continue\r\nContent-Length: 1\r\n\r\na`
  t.match((await sendBytes(server, usual)).text, /^HTTP\/1\.1 100 .*HTTP\/1\.1 400 .*client_id is missing/s)
})

t.test('HTTP/1.0 requests get a response', async (t) => {
  t.match(await sendBytes(server, 'GET /livez HTTP/1.0\r\n\r\n'), { status: 200, body: '{"status":"live"}' })
  const rejected = await sendBytes(
    server,
    `POST /api/oauth/token HTTP/1.0\r\n${form}Content-Length: 3\r\n\r\na=1`,
  )
  t.equal(faultOfRejection(rejected), undefined)
})

t.test('a chunked form is one form, and the limit applies to the whole', async (t) => {
  const start = `${token}${form}Transfer-Encoding: chunked\r\n\r\n`
  const whole = await sendBytes(
    server,
    start,
    '9\r\ngrant_typ\r\n',
    '8\r\ne=a&code\r\n',
    '1\r\n=\r\n',
    '0\r\n\r\n',
  )
  t.match(whole, { status: 400, body: /client_id is missing/ })
  const chunk = `1000\r\n${'a'.repeat(4096)}\r\n`
  const large = await sendBytes(server, start, chunk, chunk, chunk, chunk, chunk, '0\r\n\r\n')
  t.equal(faultOfRejection(large), undefined)
  t.equal(large.status, 413)
})

t.test('a wrong Content-Length is rejected, and does not affect the next request', async (t) => {
  const lying = `${token.replace('Connection: close\r\n', '')}${form}Content-Length: 3\r\n\r\na=1GET /livez HTTP/1.1\r\n${head}\r\n`
  const { text } = await sendBytes(server, lying)
  t.match(text, /HTTP\/1\.1 400 .*client_id is missing.*HTTP\/1\.1 200 .*"live"/s)
})

t.test('a body that never ends is not awaited after it was rejected', async (t) => {
  const endless = `${token}Content-Type: text/plain\r\nContent-Length: 1000000\r\n\r\nabc`
  const response = await sendBytes(server, endless)
  t.equal(faultOfRejection(response), undefined)
  t.equal(response.status, 415)
})

t.test('an Upgrade to another protocol is ignored', async (t) => {
  for (const protocol of ['websocket', 'h2c', 'TLS/1.3']) {
    const upgrade = `GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: ${protocol}\r\n\r\n`
    t.match(await sendBytes(server, upgrade), { status: 200 }, protocol)
  }
  t.equal(
    (await sendBytes(server, `CONNECT evil.example:443 HTTP/1.1\r\n${head}\r\n`)).status,
    0,
    'no tunnel',
  )
})

t.test('[rfc9700-4.13-proxy-headers] no header changes the issuer the server publishes', async (t) => {
  const path = '/.well-known/openid-configuration'
  const plain = (await send(server, { path })).body
  const { pathname, search } = new URL(authorizationUrl(server, client, { prompt: 'none' }))
  // The reference is of each rejected request.
  const redirectOf = async (headers: readonly (readonly [string, string])[] = []) => {
    const { location = '' } = (await send(server, { path: pathname + search, headers })).headers
    return location.replace(/reference\+[\da-f]{8}/, '')
  }
  const redirect = await redirectOf()
  t.match(redirect, `iss=${encodeURIComponent(server.issuer)}`)
  for (const headers of [
    [['Host', 'evil.example']],
    [
      ['X-Forwarded-Host', 'evil.example'],
      ['X-Forwarded-Proto', 'https'],
    ],
    [['Forwarded', 'host=evil.example;proto=https']],
  ] as const) {
    t.equal((await send(server, { path, headers })).body, plain)
    t.equal(await redirectOf(headers), redirect)
    t.equal((await send(server, { path: `http://evil.example${path}`, headers })).body, plain)
  }
  const away = await send(server, {
    path: '/nowhere',
    headers: [
      ['Host', 'evil.example'],
      ['Accept', 'text/html'],
    ],
  })
  t.notMatch(away.text, 'evil.example')
})

t.test('50 pipelined requests on one connection get their responses in order', async (t) => {
  const pipelined = Array.from(
    { length: 50 },
    (_, n) => `GET /p${n} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  ).join('')
  const { text } = await sendBytes(server, pipelined, bytesOfRequest({ path: '/livez' }))
  t.equal(text.match(/HTTP\/1\.1 404 /g)?.length, 50)
  t.match(text, /"status":"live"/)
})
