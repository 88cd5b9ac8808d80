/** An app behind each proxy of docs/forward-auth.md, with the configurations it shows: what reaches the app. */
import { createServer } from 'node:http'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { examineProbes } from '../../src/cli/doctor/probes.ts'
import { keepCookies } from '../helpers/cookie-jar.ts'
import { startBehind } from '../helpers/doctor.ts'
import { signInAndApprove } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { protect } from '../helpers/protected-host.ts'
import { UserAgent } from '../helpers/user-agent.ts'

/** What the configuration of a proxy needs. */
export interface Ports {
  /** Of the issuer, of the protected host, of this server and of the app. */
  readonly issuer: number
  readonly host: number
  readonly upstream: number
  readonly app: number
}

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** Every spelling of the headers that an app or a gateway in front of it may take for the same. */
const forged = Object.fromEntries(
  ['Remote-User', 'Remote-Email', 'Remote-Name', 'Remote-Groups', 'X-Lychgate-Assertion'].flatMap((name) =>
    [name, name.replaceAll('-', '_'), name.toLowerCase(), name.replace(/-(?!.*-)/, '_')].map((each) => [
      each,
      'admin',
    ]),
  ),
)
const page = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }

/**
 * @param start Starts the proxy, and resolves when it serves.
 * @param isShortened Whether the proxy shortens paths before it asks.
 */
export async function protectsApp(
  t: Test,
  start: (ports: Ports) => Promise<void>,
  isShortened: boolean,
): Promise<void> {
  const [issuerPort, host, upstream] = [await freePort(), await freePort(), await freePort()]
  const app = await startApp(t)
  const { issuer, server } = await startBehind(t, issuerPort, { port: upstream })
  const name = `localhost:${host}`
  const clientId = await protect(server, name, [{ path: '/public/*', access: 'public' }])
  // Anyone may open all of another app.
  await protect(server, 'open.example', [{ path: '/*', access: 'public' }])
  await start({ issuer: issuerPort, host, upstream, app })
  const cookies = new Map<string, string>()
  const send = async (path: string, headers: Readonly<Record<string, string>> = page, method = 'GET') => {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    const reply = await ask(host, path, { ...(cookie && { cookie }), ...headers }, method)
    keepCookies(cookies, [reply.headers['set-cookie'] ?? []].flat())
    return reply
  }
  /** The headers that reached the app, by their names as they were sent. */
  const seen = ({ body }: Reply) => JSON.parse(body) as Record<string, string>
  const rights = (reply: Reply) =>
    Object.entries(seen(reply)).filter(
      ([name, value]) => /^(?:remote|x.lychgate)/i.test(name) && value !== '',
    )

  // Caddy responds 200 for a host that it does not serve, and asks nothing.
  const isOfApp = ({ body }: Reply) => body.includes('x-path')

  await t.test('a public path reaches the app without any of the headers', async (t) => {
    const reply = await send('/public/x', { ...page, ...forged })
    t.equal(reply.status, 200)
    t.strictSame(rights(reply), [])
  })
  await t.test('the rest signs in, and comes back to the exact URL', async (t) => {
    t.equal((await send('/api', { accept: 'application/json' })).status, 401)
    t.equal((await send('/form', page, 'POST')).status, 401)
    const path = `${isShortened ? '/a/b' : '/a//b/%2e'}/x;y?q=%C3%A5&next=https://evil.example/`
    const begun = await send(path)
    t.equal(begun.status, 302)
    const start = new URL(String(begun.headers['location']))
    t.equal(start.host, name)
    const signIn = await send(start.pathname + start.search)
    const agent = new UserAgent(issuer)
    const callback = await signInAndApprove(agent, await agent.open(String(signIn.headers['location'])))
    const ended = await send(callback.pathname + callback.search)
    t.equal(ended.headers['location'], `https://${name}${path}`)
    t.match([...cookies.keys()].sort(), ['__Host-lychgate_host', '__Host-lychgate_host_browser'])
  })
  await t.test('an app without cookies of its own gets none', async (t) => {
    t.notMatch(seen(await send('/page')), { cookie: /./ })
  })
  await t.test('the doctor finds nothing wrong with the proxy', async (t) => {
    const client = await server.deps.store.find('client', clientId)
    t.match(await examineProbes(client ? [client] : []), [{ check: 'protected host', level: 'ok' }])
  })
  await t.test('the app gets who the user is, its own cookies, and nothing that was forged', async (t) => {
    cookies.set('own', '1')
    const reply = await send('/page?x=1', { ...page, ...forged })
    t.equal(reply.status, 200)
    const headers = seen(reply)
    t.match(headers, { 'remote-user': 'alice', 'remote-email': 'alice@example.test', cookie: /^own=1$/ })
    t.match(headers['x-lychgate-assertion'], /^eyJ/)
    t.notMatch(JSON.stringify(rights(reply)), /admin/)
    t.equal(headers['x-path'], '/page?x=1')
    const posted = await send('/form', page, 'POST')
    t.match(seen(posted), { 'x-method': 'POST', 'remote-user': 'alice' })
  })
  await t.test('a client cannot choose the host, the path or the method that is asked about', async (t) => {
    const forwarded = { 'x-forwarded-host': 'other.example', 'x-forwarded-method': 'OPTIONS' }
    const forgedUri = { 'x-forwarded-uri': '/public/x', ...forwarded }
    const reply = await ask(host, '/page', { accept: 'application/json', ...forgedUri })
    t.equal(reply.status, 401)
    const ofOpenApp = { ...page, 'x-forwarded-host': 'open.example' }
    for (const odd of [`LOCALHOST:${host}`, `localhost.:${host}`, 'localhost', 'localhost:1', 'open.example'])
      t.notOk(isOfApp(await ask(host, '/page', { ...ofOpenApp, host: odd })), odd)
    for (const absolute of [`https://localhost:${host}/page`, 'https://open.example/page'])
      t.notOk(isOfApp(await ask(host, absolute, { ...ofOpenApp, host: 'open.example' })), absolute)
    for (const path of ['/public/../page', '/public/%2e%2e/page', '//public/x', '/public/x;y']) {
      const reply = await ask(host, path, { accept: 'application/json' })
      const reached = isOfApp(reply) ? seen(reply)['x-path'] : undefined
      t.equal(reached, isShortened && path === '//public/x' ? '/public/x' : undefined, path)
    }
  })
  await t.test('a WebSocket is opened for a user who is signed in, and for no other', async (t) => {
    const socket = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
      'sec-fetch-mode': 'websocket',
    }
    t.equal((await ask(host, '/socket', socket)).status, 401)
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    t.match(await ask(host, '/socket', { ...socket, cookie }), {
      status: 101,
      headers: { 'x-user': 'alice' },
    })
  })
  await t.test('a URL of 6 kB passes, and one of 20 kB is rejected', async (t) => {
    t.equal((await send(`/x?${'a'.repeat(6000)}`)).status, 200)
    t.notMatch(await send(`/x?${'a'.repeat(20_000)}`), { status: 200 })
  })
}

/** An app that believes its headers: it returns them, and opens sockets. */
async function startApp(t: Test): Promise<number> {
  const port = await freePort()
  const app = createServer({ maxHeaderSize: 64 * 1024 }, (request, response) => {
    const { method = '', url = '' } = request
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ ...request.headers, 'x-method': method, 'x-path': url }))
  })
  app.on('upgrade', ({ headers }, socket) => {
    socket.end(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-User: ${headers['remote-user']}\r\n\r\n`,
    )
  })
  await new Promise<void>((resolve) => app.listen(port, '127.0.0.1', resolve))
  t.teardown(() => app.close())
  return port
}

function ask(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  method = 'GET',
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request({
      host: 'localhost',
      servername: 'localhost',
      port,
      path,
      method,
      headers: { host: `localhost:${port}`, ...headers },
    })
    sent.on('response', (response) => {
      const { statusCode: status = 0 } = response
      text(response).then((body) => resolve({ status, headers: response.headers, body }), reject)
    })
    sent.on('upgrade', ({ statusCode: status = 0, headers }, socket) => {
      socket.destroy()
      resolve({ status, headers, body: '' })
    })
    sent.on('error', reject)
    sent.end()
  })
}
