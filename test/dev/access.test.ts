import { request } from 'node:http'
import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { onlyKnownHosts } from '../../src/dev/only-local.ts'
import { startServer, type TestServer } from '../helpers/server.ts'

const dev = { hosts: ['lychgate', 'app.test'], peers: ['172.17.0.1', '10.1.0.0/16'] }
const [development, production, onPath, listed] = await Promise.all([
  startServer(t, { mode: 'dev' }),
  startServer(t),
  startServer(t, { mode: 'dev', issuerPath: '/t' }),
  startServer(t, { mode: 'dev', dev }),
])

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Uses node:http, as fetch does not let a caller set `Host`. */
function send(server: TestServer, path: string, { method = 'GET', headers = {}, body }: Sent = {}) {
  return new Promise<{ status: number | undefined; body: Record<string, unknown>; text: string }>(
    (resolve, reject) => {
      const asked = request(server.origin + path, { method, headers }, async (response) => {
        const text = Buffer.concat(await response.toArray()).toString()
        resolve({ status: response.statusCode, body: text.startsWith('{') ? JSON.parse(text) : {}, text })
      })
      asked.on('error', reject)
      asked.end(body)
    },
  )
}

const { port } = new URL(development.issuer)

t.test('a production server has no development route', async (t) => {
  const other = await send(production, '/_dev/no-such-thing')
  for (const sent of [{}, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }]) {
    const { status, body } = await send(production, '/_dev/clock', sent)
    t.equal(status, 404)
    t.strictSame(body, other.body)
  }
})

t.test('development routes are below the path of the issuer', async (t) => {
  t.equal((await send(onPath, '/t/_dev/clock')).status, 200)
  t.equal((await send(onPath, '/_dev/clock')).status, 404)
})

t.test('a development route accepts the issuer and every loopback name with this port as Host', async (t) => {
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`]) {
    t.equal((await send(development, '/_dev/clock', { headers: { host } })).status, 200, host)
  }
})

t.test('a development route rejects a Host of another port or address', async (t) => {
  for (const host of ['localhost:1', `10.9.9.9:${port}`]) {
    const { status, body } = await send(development, '/_dev/clock', { headers: { host } })
    t.equal(status, 403, host)
    t.equal(body['error_description'], 'Host must name this development server')
  }
})

const unknownName = 'Host is not a name of this development server: list it in dev.hosts (LYCHGATE_DEV_HOSTS)'

t.test(
  'a development server rejects, on every path, a name that resolves to it from elsewhere',
  async (t) => {
    const registration = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: ['http://127.0.0.1/callback'] }),
    }
    const before = (await development.deps.store.list('client')).length
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      `localhost.:${port}`,
      'localhost.evil.example',
    ]) {
      for (const [path, sent] of [
        ['/_dev/clock', {}],
        ['/api/oauth/register', registration],
        ['/oauth/authorize?client_id=x', {}],
        ['/login', {}],
        ['/consent', {}],
        ['/api/oauth/token', { method: 'POST' }],
        ['/no-such-path', {}],
        ['/_dev/issuers/reference/.well-known/openid-configuration', {}],
      ] as const) {
        const headers = { ...('headers' in sent ? sent.headers : {}), host }
        const { status, text } = await send(development, path, { ...sent, headers })
        t.equal(status, 403, `${host} ${path}`)
        t.match(text, unknownName, path)
      }
    }
    t.equal((await development.deps.store.list('client')).length, before)
  },
)

t.test(
  'a development server accepts IP addresses, names below localhost and the names in dev.hosts',
  async (t) => {
    const path = '/.well-known/openid-configuration'
    for (const host of [
      'app.localhost',
      `a.b.localhost:${port}`,
      '10.9.9.9',
      `192.0.2.1:${port}`,
      `[fd00::1]:${port}`,
    ])
      t.equal((await send(development, path, { headers: { host } })).status, 200, host)
    for (const at of [path, '/_dev/clock']) {
      t.equal((await send(listed, at, { headers: { host: 'lychgate:9400' } })).status, 200, at)
      t.equal((await send(listed, at, { headers: { host: 'lychgate.evil.example' } })).status, 403, at)
    }
    t.equal(
      (await send(production, path, { headers: { host: 'any.example' } })).status,
      200,
      'production has none',
    )
  },
)

t.test('development routes respond to this computer and the addresses in dev.peers', async (t) => {
  const statusFor = async (server: TestServer, remoteAddress: string, url = '/_dev/clock') =>
    (await server.app.inject({ url, remoteAddress, headers: { host: new URL(server.issuer).host } }))
      .statusCode
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
    t.equal(await statusFor(development, address), 200, address)
  for (const address of ['192.168.0.7', '::ffff:192.168.0.7', 'fe80::1%eth0', '172.17.0.1', 'nonsense']) {
    t.equal(await statusFor(development, address), 403, address)
    t.equal(await statusFor(development, address, '/_dev/flows'), 403, 'a page')
    t.equal(await statusFor(development, address, '/livez'), 200, 'the server itself')
  }
  for (const address of ['172.17.0.1', '::ffff:172.17.0.1', '10.1.2.3'])
    t.equal(await statusFor(listed, address), 200, address)
  for (const address of ['172.17.0.2', '10.2.0.1']) t.equal(await statusFor(listed, address), 403, address)
})

t.test('a page of another site cannot start a misbehaving issuer in the background', async (t) => {
  const path = '/_dev/issuers/reference/.well-known/openid-configuration'
  const background = {
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': 'no-cors',
    'sec-fetch-dest': 'image',
  }
  const foreign = [
    background,
    { ...background, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    { ...background, 'sec-fetch-mode': 'cors', origin: 'https://evil.example' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ]
  for (const headers of foreign) {
    const { status, body } = await send(listed, path, { headers })
    t.equal(status, 403, JSON.stringify(headers))
    t.match(body['error_description'], 'LYCHGATE_DEV_HOSTS')
  }
  const own = [
    {},
    { ...background, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    { ...background, 'sec-fetch-mode': 'cors', origin: 'https://app.test' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors', origin: 'http://localhost:5173' },
    { origin: 'http://localhost:5173' },
  ]
  for (const headers of own)
    t.equal((await send(listed, path, { headers })).status, 200, JSON.stringify(headers))
})

t.test('a development route rejects a foreign Origin, and changes nothing', async (t) => {
  const sent = (origin: string) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json', origin },
    body: '{"advance":"1d"}',
  })
  const foreign = ['http://evil.example', 'null', 'http://localhost:1', `http://localhost:${port}/`, '']
  for (const origin of foreign) {
    const { status, body } = await send(development, '/_dev/clock', sent(origin))
    t.equal(status, 403, origin)
    t.equal(body['error_description'], 'Origin must name this development server')
  }
  t.equal((await send(development, '/_dev/clock')).body['offset_seconds'], 0)
  t.equal((await send(development, '/_dev/clock', sent(`http://127.0.0.1:${port}`))).status, 200)
  await send(development, '/_dev/clock', {
    ...sent(development.origin),
    body: '{"reset":true}',
  })
})

t.test('a development route accepts only JSON', async (t) => {
  for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x']) {
    const headers = { 'content-type': type }
    const { status } = await send(development, '/_dev/clock', { method: 'POST', headers, body: '{}' })
    t.equal(status, 415, type)
  }
  const headers = { 'content-type': 'application/json' }
  for (const body of ['{', '[]', '"advance"', '{"advanc":"1d"}', '{"advance":true}', '{"advance":"a day"}']) {
    t.equal((await send(development, '/_dev/clock', { method: 'POST', headers, body })).status, 400, body)
  }
})

t.test('a request by another name of this computer is explained once', async (t) => {
  const said: string[] = []
  const check = onlyKnownHosts({
    issuer: 'http://localhost:9400',
    dev: { loginHintSignsIn: 'off', autoConsent: 'off' },
  })
  const ask = (host: string | undefined) =>
    // `as`: it reads no more of a request.
    check({
      headers: { host },
      log: { warn: (line: string) => said.push(line) },
    } as unknown as FastifyRequest)
  for (const host of ['localhost:9400', undefined, '127.0.0.1:9999', '10.0.0.1:9400']) await ask(host)
  t.strictSame(said, [])
  await ask('127.0.0.1:9400')
  await ask('[::1]:9400')
  t.strictSame(said, [
    'a request came to http://127.0.0.1:9400, and the issuer is http://localhost:9400: cookies and clients tell them apart; use http://localhost:9400, or start the server with --issuer http://127.0.0.1:9400',
  ])
})
