import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'
import t from 'tap'
import type { FetchFailed, FetchFault } from '../../src/outbound/exchange.ts'
import {
  createGuardedFetch,
  type GuardedFetchOptions,
  type OwnRequest,
} from '../../src/outbound/guarded-fetch.ts'
import { type Counted, countChannel } from '../../src/system/count.ts'
import { makeCertificates } from '../helpers/certificates.ts'
import { testClock } from '../helpers/clock.ts'
import { newFolder } from '../helpers/command.ts'

const limits = {
  timeoutSeconds: 1,
  responseBytes: 1000,
  perOriginPerMinute: 100,
  perNetworkPerMinute: 100,
  privateNetworks: [],
}
const certificates = makeCertificates(newFolder(t))
const ok = (body: string, headers = '') =>
  `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${headers}\r\n${body}`

const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
const hint = 'HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n'
const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'

/** What our server does with a request, by its path. */
const behaviours: Readonly<Record<string, (socket: Socket) => void>> = {
  '/ok': (socket) => socket.write(ok('{"keys":[]}', 'cache-control: max-age=60\r\n')),
  '/redirect': (socket) =>
    socket.write('HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n'),
  '/not-found': (socket) => socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'),
  '/no-content': (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'),
  '/silent': () => {},
  '/drip': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n')
    drip(socket, 'x')
  },
  '/drip-head': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    drip(socket, 'x-more: 1\r\n')
  },
  '/hint': (socket) => socket.write(hint),
  '/hints': (socket) => flood(socket, hint),
  '/continue': (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n'),
  '/processing': (socket) => socket.write(`HTTP/1.1 102 Processing\r\n\r\n${hint}${ok('{}')}`),
  '/upgrade': (socket) => socket.write(upgrade),
  '/upgrade-open': (socket) => socket.write(`${upgrade}frames`),
  '/upgrade-end': (socket) => socket.end(upgrade),
  '/upgrade-plain': (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  '/close': (socket) => socket.destroy(),
  '/half-close': (socket) => socket.end(),
  '/half-close-hint': (socket) => socket.end(hint),
  '/half-close-head': (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n'),
  '/until-close': (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n{}'),
  '/trailers': (socket) => socket.write(`${chunked}2\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n`),
  '/endless-trailers': (socket) => {
    socket.write(`${chunked}2\r\n{}\r\n0\r\n`)
    drip(socket, 'x-more: 1\r\n')
  },
  '/drip-bytes': (socket) => drip(socket, ...ok('{}', `x-more: ${'x'.repeat(2000)}\r\n`)),
  '/drip-chunk-size': (socket) => {
    socket.write(chunked)
    drip(socket, '0')
  },
  '/flood': (socket) => {
    socket.write(chunked)
    flood(socket, `1000\r\n${'x'.repeat(4096)}\r\n`)
  },
  '/flood-head': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    flood(socket, `x-more: ${'x'.repeat(4096)}\r\n`)
  },
  '/large': (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n'),
  '/more-than-said': (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}and more'),
  '/less-than-said': (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{}'),
  '/two-lengths': (socket) =>
    socket.write(
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    ),
  '/early-end': (socket) => socket.end(`${chunked}2\r\n{}\r\n`),
  // Only TCP has resets.
  '/reset': (socket) => (socket instanceof TLSSocket ? socket.destroy() : socket.resetAndDestroy()),
  '/not-http': (socket) => socket.write('SSH-2.0-nothing\r\n'),
  '/compressed': (socket) => socket.write(ok('{}', 'content-encoding: gzip\r\n')),
}

/** Writes one text after the other, with pauses, and begins again after the last. */
function drip(socket: Socket, ...texts: readonly string[]): void {
  let next = 0
  const timer = setInterval(() => socket.write(texts[next++ % texts.length] ?? ''), 50)
  socket.on('close', () => clearInterval(timer))
}

function flood(socket: Socket, text: string): void {
  while (!socket.destroyed && socket.write(text));
  socket.once('drain', () => flood(socket, text))
}

/** A server of ours, on every address of this computer, that keeps what it was sent. */
async function start(make: (serve: (socket: Socket) => void) => Server) {
  const requests: string[] = []
  let [connections, open] = [0, 0]
  const server = make((socket) => {
    socket.on('error', () => {})
    socket.once('data', (data) => {
      const text = data.toString()
      requests.push(text)
      behaviours[/^(?:GET|POST) ([^\s?]+)\S* /.exec(text)?.[1] ?? '']?.(socket)
    })
  })
  server.on('connection', (socket: Socket) => {
    connections += 1
    open += 1
    socket.on('close', () => {
      open -= 1
      server.emit('left')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await once(server, 'left')
  }
  return { port, requests, connections: () => connections, open: () => open, until }
}

const plain = await start((serve) => createServer(serve))
const secure = await start((serve) => createTlsServer(certificates.localhost, serve))
const wrongName = await start((serve) => createTlsServer(certificates.otherName, serve))
const http = (path: string, host = '127.0.0.1') => `http://${host}:${plain.port}${path}`
const https = (path: string, host = 'localhost') => `https://${host}:${secure.port}${path}`

function fetcher(options: Partial<Omit<GuardedFetchOptions, 'limits'>> & { limits?: object } = {}) {
  const fetchUrl = createGuardedFetch({
    isDevelopment: true,
    clock: testClock(),
    authorities: [certificates.authority],
    ...options,
    limits: { ...limits, ...options.limits },
  })
  return (url: string, post?: OwnRequest) =>
    fetchUrl(url, post === undefined ? { purpose: 'operator' } : { purpose: 'form' }, post)
}

/** A resolver that returns these, one after the other. */
function responses(...addresses: readonly string[]) {
  const left = [...addresses]
  return async () => [{ address: left.shift() ?? '127.0.0.1', family: 4 }]
}

t.test('a document is fetched without credentials and uncompressed', async (t) => {
  const { headers, body } = await fetcher()(`${http('/ok')}#fragment`)
  t.equal(body.toString(), '{"keys":[]}')
  t.equal(headers['cache-control'], 'max-age=60')
  const [head = ''] = plain.requests.splice(0)
  t.match(head, /^GET \/ok HTTP\/1.1\r\n/)
  t.match(head, /accept-encoding: identity/)
  t.notMatch(head, /cookie|authorization/i)
})

/** How a fetch of each path ends; undefined for one that succeeds. */
const faults: Readonly<Record<string, FetchFault | undefined>> = {
  '/ok': undefined,
  '/redirect': 'redirect',
  '/not-found': 'status',
  '/no-content': 'status',
  '/silent': 'time',
  '/drip': 'time',
  '/drip-head': 'time',
  '/drip-bytes': 'time',
  '/drip-chunk-size': 'time',
  '/hint': 'time',
  '/hints': 'size',
  '/continue': 'time',
  '/processing': undefined,
  '/upgrade': 'status',
  '/upgrade-open': 'status',
  '/upgrade-end': 'status',
  '/upgrade-plain': 'status',
  '/close': 'connection',
  '/half-close': 'connection',
  '/half-close-hint': 'connection',
  '/half-close-head': 'connection',
  '/until-close': 'time',
  '/trailers': undefined,
  '/endless-trailers': 'time',
  '/flood': 'size',
  '/flood-head': 'connection',
  '/large': 'size',
  '/more-than-said': undefined,
  '/less-than-said': 'connection',
  '/two-lengths': 'connection',
  '/early-end': 'connection',
  '/reset': 'connection',
  '/not-http': 'connection',
  '/compressed': 'encoding',
}

t.test('each way to respond has its end by the deadline', async (t) => {
  let inFlight = 0
  let most = 0
  const onCount = (message: unknown) => {
    const { name, change = 0 } = message as Counted // what the channel has
    if (name === 'fetches_in_flight') inFlight += change
    most = Math.max(most, inFlight)
  }
  subscribe(countChannel.name, onCount)
  t.teardown(() => unsubscribe(countChannel.name, onCount))
  t.strictSame(Object.keys(faults).sort(), Object.keys(behaviours).sort(), 'none is left out')
  const fetchUrl = fetcher({ limits: { perOriginPerMinute: 10_000, timeoutSeconds: 60 } })
  const hurried = fetcher({ limits: { perOriginPerMinute: 10_000, timeoutSeconds: 1 } })
  const perOriginPerMinute = 10_000
  const endOf = (isPost: boolean, url: string, fault: FetchFault | undefined) => {
    // Only what never ends has a short deadline: a machine may stand still for seconds.
    const timeoutSeconds = fault === 'time' ? 1 : 60
    const form = new URLSearchParams('a=b')
    if (isPost) return fetchUrl(url, { form, timeoutSeconds, perOriginPerMinute })
    return fault === 'time' ? hurried(url) : fetchUrl(url)
  }
  for (const [isPost, url] of [false, true].flatMap((isPost) =>
    [http, https].map((url) => [isPost, url] as const),
  ))
    await Promise.all(
      Object.entries(faults).map(async ([path, fault]) => {
        const ended = await endOf(isPost, url(path), fault).catch((error) => error)
        const title = `${isPost ? 'POST' : 'GET'} ${url(path)}`
        if (isPost && path === '/no-content') t.equal(ended.status, 204, title)
        else if (fault === undefined) t.equal(ended.status, 200, title)
        else t.match(ended, { name: 'FetchFailed', fault }, title)
      }),
    )
  const requests = plain.requests.splice(0)
  t.notOk(
    requests.some((head) => head.includes('/elsewhere')),
    'no redirect was followed',
  )
  await plain.until(() => plain.open() === 0)
  t.ok(most > 10, `${most} at once`)
  t.equal(inFlight, 0, 'none is counted any more')
  t.equal(plain.open(), 0, 'no connection is left')
  // As many at once as there are places: none of them was left in use.
  for (const fetchAgain of [fetchUrl, hurried]) {
    const post = () => ({ form: new URLSearchParams(), timeoutSeconds: 1, perOriginPerMinute })
    const silent = Array.from({ length: 64 }, () =>
      fetchAgain(http('/silent'), post()).catch((error) => error),
    )
    const ends = (await Promise.all(silent)).map(({ fault }) => fault)
    t.strictSame([...new Set(ends)], ['time'], 'no place is left in use')
  }
})

t.test('what comes after a response is never part of it', async (t) => {
  const { body } = await fetcher()(http('/more-than-said'))
  t.equal(body.toString(), '{}')
  await t.rejects(
    fetcher()('http://127.0.0.1:1/'),
    { name: 'FetchFailed', fault: 'connection' },
    'no server listens',
  )
})

t.test('only https URLs without a user name are fetched', async (t) => {
  const fetchUrl = fetcher({ isDevelopment: false, limits: { privateNetworks: ['127.0.0.0/8'] } })
  const urls = ['', '/ok', 'file:///etc/passwd', 'ftp://a.example/', 'data:,x', http('/ok')]
  for (const url of [
    ...urls,
    'https://user@a.example/',
    'https://:p@a.example/',
    `https://a.example/${'x'.repeat(2048)}`,
  ])
    await t.rejects(fetchUrl(url), { name: 'FetchFailed', fault: 'url' }, url.slice(0, 40))
})

t.test('a certificate must be trusted, and must be for the host', async (t) => {
  const options = { isDevelopment: false, limits: { privateNetworks: ['127.0.0.1', '::1'] } }
  const resolve = responses('127.0.0.1', '127.0.0.1', '127.0.0.1')
  t.equal((await fetcher({ ...options, resolve })(https('/ok'))).body.toString(), '{"keys":[]}')
  const other = `https://localhost:${wrongName.port}/ok`
  await t.rejects(fetcher({ ...options, resolve })(other), { name: 'FetchFailed', fault: 'connection' })
  t.equal(wrongName.requests.length, 0, 'nothing was sent')
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.teardown(() => delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'])
  const { authorities: _, ...strangers } = { authorities: [], ...options }
  const unknown = createGuardedFetch({
    ...strangers,
    limits: { ...limits, ...options.limits },
    clock: testClock(),
    resolve,
  })
  await t.rejects(
    unknown(https('/ok'), { purpose: 'operator' }),
    { name: 'FetchFailed', fault: 'connection' },
    'also when the environment says otherwise',
  )
})

t.test('private addresses are not connected to, however they are written', async (t) => {
  const before = plain.connections() + secure.connections()
  const fetchUrl = fetcher({ isDevelopment: false })
  const hosts = [
    '127.0.0.1',
    '127.1',
    '0x7f000001',
    '2130706433',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '0.0.0.0',
    'localhost',
  ]
  for (const host of hosts)
    await t.rejects(fetchUrl(https('/ok', host)), { name: 'FetchFailed', fault: 'address' }, host)
  await t.rejects(
    fetcher()(http('/ok', '0.0.0.0')),
    { name: 'FetchFailed', fault: 'address' },
    'http stays on loopback',
  )
  t.equal(plain.connections() + secure.connections(), before)
})

t.test('a name that leads elsewhere the second time (DNS rebinding) gains nothing', async (t) => {
  const options = { isDevelopment: false, limits: { privateNetworks: ['127.0.0.1'] } }
  const before = secure.connections()
  // 127.0.0.1 is allowed here, and 127.0.0.2 stands for an address of the network behind.
  const fetchUrl = fetcher({ ...options, resolve: responses('127.0.0.1', '127.0.0.2', '127.0.0.1') })
  await fetchUrl(https('/ok'))
  await t.rejects(fetchUrl(https('/ok')), { name: 'FetchFailed', fault: 'address' })
  await fetchUrl(https('/ok'))
  t.equal(secure.connections(), before + 2, 'each fetch resolves once, and connects to what it checked')
})

t.test('of several addresses only the allowed ones are used', async (t) => {
  const resolve = async () =>
    ['10.0.0.1', '127.0.0.1', '169.254.169.254'].map((address) => ({ address, family: 4 }))
  const fetchUrl = fetcher({ isDevelopment: false, resolve, limits: { privateNetworks: ['127.0.0.0/8'] } })
  t.equal((await fetchUrl(https('/ok'))).body.toString(), '{"keys":[]}')
})

t.test('a resolver that never responds runs into the deadline', async (t) => {
  await t.rejects(fetcher({ resolve: () => new Promise(() => {}) })('https://a.example/'), {
    name: 'FetchFailed',
    fault: 'time',
  })
  const broken = fetcher({ resolve: () => Promise.reject(new Error('SERVFAIL')) })
  await t.rejects(broken('https://a.example/'), { name: 'FetchFailed', fault: 'connection' })
})

t.test('proxies of the environment are not used', async (t) => {
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'NODE_USE_ENV_PROXY']
  for (const name of names) process.env[name] = 'http://127.0.0.1:1'
  t.teardown(() => {
    for (const name of names) delete process.env[name]
  })
  t.equal((await fetcher()(http('/ok'))).body.toString(), '{"keys":[]}')
})

t.test('a URL is fetched once for all who want it, and again afterwards', async (t) => {
  plain.requests.splice(0)
  const fetchUrl = fetcher()
  const all = await Promise.all(Array.from({ length: 20 }, () => fetchUrl(http('/ok'))))
  t.ok(all.every((one) => one === all[0]))
  t.equal(plain.requests.length, 1)
  await fetchUrl(http('/ok'))
  t.equal(plain.requests.length, 2)
})

t.test('an origin has a budget for each minute, and the server one for all at once', async (t) => {
  const clock = testClock()
  const fetchUrl = fetcher({ clock, limits: { perOriginPerMinute: 2 } })
  await fetchUrl(http('/ok'))
  await fetchUrl(http('/ok'))
  await t.rejects(fetchUrl(http('/ok')), { name: 'FetchFailed', fault: 'budget' })
  await fetchUrl(http('/ok', 'localhost'))
  clock.advance(60)
  await fetchUrl(http('/ok'))

  const busy = fetcher({ resolve: () => new Promise(() => {}) })
  const running = Array.from({ length: 65 }, (_, index) =>
    busy(`https://a.example/${index}`).catch((error) => error),
  )
  const errors: FetchFailed[] = await Promise.all(running)
  t.strictSame([...new Set(errors.map(({ fault }) => fault))], ['time', 'budget'])
})

t.test('a form is posted with the same guards and its own limits', async (t) => {
  const form = () => new URLSearchParams({ logout_token: 'a.b+c' })
  const post = () => ({ form: form(), timeoutSeconds: 1, perOriginPerMinute: 3 })
  const fetchUrl = fetcher({ limits: { perOriginPerMinute: 1 } })
  plain.requests.splice(0)
  const [one, two] = await Promise.all([fetchUrl(http('/ok'), post()), fetchUrl(http('/ok'), post())])
  t.equal(one.body.toString(), '{"keys":[]}')
  t.not(one, two, 'each form is sent')
  const [text = ''] = plain.requests
  t.match(text, /^POST \/ok HTTP\/1.1\r\n/)
  t.match(text, /content-type: application\/x-www-form-urlencoded\r\n/)
  t.match(text, /content-length: 20\r\n/)
  t.match(text, /\r\n\r\nlogout_token=a\.b%2Bc$/)
  t.notMatch(text, /cookie|authorization/i)
  await t.rejects(fetchUrl(http('/redirect'), post()), { name: 'FetchFailed', fault: 'redirect' })
  await t.rejects(
    fetchUrl(http('/ok'), post()),
    { name: 'FetchFailed', fault: 'budget' },
    'a budget of its own',
  )
  await t.resolves(fetchUrl(http('/ok')), 'which leaves that of documents alone')
  const other = fetcher()
  t.equal((await other(http('/no-content'), post())).body.length, 0, '204 has no content')
  await t.rejects(other(http('/no-content')), { name: 'FetchFailed', fault: 'status' }, 'and is no document')
  await t.rejects(other(http('/not-found'), post()), { name: 'FetchFailed', fault: 'status', status: 404 })
  await t.rejects(other(http('/silent'), post()), { name: 'FetchFailed', fault: 'time' })
  await t.rejects(other('http://localhost.example/ok', post()), { name: 'FetchFailed' })
  await t.rejects(fetcher({ isDevelopment: false })(https('/ok'), post()), {
    name: 'FetchFailed',
    fault: 'address',
  })
})
