import { request } from 'node:http'
import t from 'tap'
import { startServer, type TestServer } from '../helpers/server.ts'

const [development, production, onPath] = await Promise.all([
  startServer(t, { mode: 'dev' }),
  startServer(t),
  startServer(t, { mode: 'dev', issuerPath: '/t' }),
])

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Over node:http: fetch does not let a caller say `Host`. */
function send(server: TestServer, path: string, { method = 'GET', headers = {}, body }: Sent = {}) {
  return new Promise<{ status: number | undefined; body: Record<string, unknown> }>((resolve, reject) => {
    const asked = request(server.origin + path, { method, headers }, async (response) => {
      const chunks = await response.toArray()
      resolve({ status: response.statusCode, body: JSON.parse(Buffer.concat(chunks).toString()) })
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

const { port } = new URL(development.issuer)

t.test('a production server has nothing at a development path', async (t) => {
  const other = await send(production, '/_dev/no-such-thing')
  for (const sent of [{}, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }]) {
    const { status, body } = await send(production, '/_dev/clock', sent)
    t.equal(status, 404)
    t.strictSame(body, other.body)
  }
})

t.test('development routes stand below the path of the issuer', async (t) => {
  t.equal((await send(onPath, '/t/_dev/clock')).status, 200)
  t.equal((await send(onPath, '/_dev/clock')).status, 404)
})

t.test('a development route answers the issuer and every loopback name with this port', async (t) => {
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`]) {
    t.equal((await send(development, '/_dev/clock', { headers: { host } })).status, 200, host)
  }
})

t.test('a development route refuses a Host that leads here from elsewhere', async (t) => {
  for (const host of ['evil.example', `evil.example:${port}`, 'localhost:1', `localhost.:${port}`]) {
    const { status, body } = await send(development, '/_dev/clock', { headers: { host } })
    t.equal(status, 403, host)
    t.equal(body['error_description'], 'Host must name this development server')
  }
})

t.test('a development route refuses a foreign Origin, and changes nothing', async (t) => {
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

t.test('a development route takes JSON only', async (t) => {
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
