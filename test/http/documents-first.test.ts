/** Documents are sent before a request is routed: a path with a query is routed, and nothing else may differ. */
import { connect } from 'node:net'
import t from 'tap'
import { routeEveryRequest } from '../../src/http/documents-first.ts'
import { startServer, type TestServer } from '../helpers/server.ts'

const routed: string[] = []
const server = await startServer(t, {
  observe: async (app) => {
    app.addHook('onRequest', async ({ method, url }) => void (method === 'GET' && routed.push(url)))
  },
})
const paths = [
  '/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
  '/.well-known/oauth-protected-resource',
  '/api/oauth/jwks',
  '/openapi.json',
]

/** Sends these bytes and returns what comes back until the server closes the connection. */
function exchange({ issuer }: TestServer, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(Number(new URL(issuer).port), '127.0.0.1', () => socket.write(bytes))
    socket.setEncoding('latin1')
    socket.on('data', (text) => {
      received += text
    })
    socket.on('error', reject)
    socket.on('close', () =>
      resolve(received.replace(/\r\nDate: [^\r]+/, '').replace(/"x-request-id[^,]+/, '')),
    )
  })
}

/** Returns the two responses and the two lines of the log, without what is different in every one. */
async function bothWays(at: TestServer, method: string, path: string, rest: string, version = '1.1') {
  const results: { response: string; line: object }[] = []
  for (const url of [path, `${path}?`]) {
    const from = at.log.length
    const response = await exchange(at, `${method} ${url} HTTP/${version}\r\n${rest}\r\n`)
    while (at.log.length === from) await new Promise((resolve) => setImmediate(resolve))
    const { time: _, reqId, ms: __, ...line } = JSON.parse(at.log[from] ?? '{}') as Record<string, unknown>
    t.match(reqId, /^[\da-f-]{36}$/)
    results.push({ response: response.replace(String(reqId), 'an-id'), line })
  }
  return results
}

const closing = 'Host: localhost\r\nConnection: close\r\n'

t.test(
  'every document is the same bytes and the same line of the log whether it was routed or not',
  async (t) => {
    for (const path of paths)
      for (const method of ['GET', 'HEAD']) {
        const [direct, asRouted] = await bothWays(server, method, path, closing)
        t.strictSame(direct, asRouted, `${method} ${path}`)
        t.match(direct?.response, /^HTTP\/1\.1 200 OK\r\n/)
        const etag = /\r\netag: ([^\r]+)/.exec(direct?.response ?? '')?.[1]
        for (const tag of [etag, `W/${etag}`, '*', `"another", ${etag}`, '"another"']) {
          const [known, knownRouted] = await bothWays(
            server,
            method,
            path,
            `${closing}If-None-Match: ${tag}\r\n`,
          )
          t.strictSame(known, knownRouted, `${method} ${path}, ${tag}`)
          t.equal(known?.response.startsWith('HTTP/1.1 304 '), tag !== '"another"', `${tag}`)
        }
      }
  },
)

t.test('only the requests with a query were routed', async (t) => {
  t.strictSame(new Set(routed), new Set(paths.map((path) => `${path}?`)))
})

t.test('a server whose requests are counted routes every request', async (t) => {
  const seen: string[] = []
  const counting = await startServer(t, {
    observe: async (app) => {
      routeEveryRequest(app)
      app.addHook('onRequest', async ({ url }) => void seen.push(url))
    },
  })
  for (const path of paths) t.equal((await fetch(counting.issuer + path)).status, 200)
  t.strictSame(seen, paths)
})

t.test('what is wrong with a request, or rare, has the same response', async (t) => {
  const path = '/.well-known/openid-configuration'
  for (const [method, rest, version] of [
    ['GET', 'Connection: close\r\n'],
    ['GET', 'Connection: close\r\n', '1.0'],
    ['GET', 'Host: a b\r\nConnection: close\r\n'],
    ['GET', `Host: other\r\n${closing}`],
    ['GET', `${closing}Expect: a-response\r\n`],
    ['GET', `${closing}Expect: 100-continue\r\n`],
    ['GET', `${closing}Origin: https://app.example\r\n`],
    ['POST', `${closing}Content-Length: 0\r\n`],
    ['OPTIONS', `${closing}Access-Control-Request-Method: GET\r\n`],
  ] as const) {
    const [direct, asRouted] = await bothWays(server, method, path, rest, version)
    t.strictSame(direct, asRouted, `${method} ${rest}`)
  }
})

t.test('two requests in one packet have their responses in order', async (t) => {
  const [first, second] = ['/.well-known/openid-configuration', '/api/oauth/jwks']
  const request = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
  const received = await exchange(
    server,
    request('/api/courses') + request(first) + request(second, 'Connection: close\r\n'),
  )
  const bodies = received.split(/HTTP\/1\.1 200 OK\r\n/).slice(1)
  t.match(bodies[0], '"caller":"anonymous"')
  t.match(bodies[1], '"token_endpoint"')
  t.match(bodies[2], '"keys"')
})

t.test('a server that stops closes the connection after a document', async (t) => {
  const stopping = await startServer(t, { drainSeconds: 0 })
  await stopping.app.drain()
  const [direct, asRouted] = await bothWays(stopping, 'GET', '/api/oauth/jwks', 'Host: localhost\r\n')
  t.strictSame(direct, asRouted)
  t.match(direct?.response, '\r\nConnection: close\r\n')
})
