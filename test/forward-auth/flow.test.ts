/** A protected host: what a proxy learns about each request, from the first page to the end of the session. */
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t from 'tap'
import { signInAndApprove } from '../helpers/flow.ts'
import { HostBrowser, page, protect } from '../helpers/protected-host.ts'
import { alice, startServer } from '../helpers/server.ts'

const trustProxy = ['127.0.0.1', '::1']
const host = 'app.example.com'
const server = await startServer(t, { trustProxy })
const clientId = await protect(server, host)

t.test('a page signs in and goes back to the exact URL; the response has all headers', async (t) => {
  const browser = new HostBrowser(server, host)
  const uri = '/a/b?q=%C3%A5&x=1&x=2'
  const asked = await browser.ask({ uri })
  t.equal(asked.status, 302)
  t.match(asked.headers.get('location'), 'https://app.example.com/.lychgate/sign-in?to=')
  t.equal(await browser.signIn(uri), `https://${host}${uri}`)
  const passed = await browser.ask({ uri })
  t.equal(passed.status, 200)
  const header = (name: string) => Buffer.from(passed.headers.get(name) ?? '-', 'latin1').toString()
  t.equal(header('remote-user'), 'alice')
  t.equal(header('remote-email'), 'alice@example.test')
  t.equal(header('remote-name'), 'Alice Ångström')
  t.equal(header('remote-groups'), '')
  const assertion = header('x-lychgate-assertion')
  t.match(decodeProtectedHeader(assertion), { typ: 'lychgate-assertion+jwt', alg: 'ES256' })
  const claims = decodeJwt(assertion)
  t.match(claims, { iss: server.issuer, aud: clientId, preferred_username: 'alice', amr: ['pwd'] })
  t.equal((claims.exp ?? 0) - (claims.iat ?? 0), 120)
})

t.test(
  '[rfc6265bis-4.1.3.2-host-cookie] the cookie is bound to its host, and no other host can read it',
  async (t) => {
    const browser = new HostBrowser(server, host)
    const response = await browser.route(await browser.reach())
    const set = response.headers.getSetCookie()
    t.equal(set.length, 1)
    t.match(set[0], /^__Host-lychgate_host=lyc_host_[\w-]{60}; Path=\/; Secure; HttpOnly; SameSite=Lax$/)
    await protect(server, 'other.example.com')
    const other = new HostBrowser(server, 'other.example.com')
    for (const [name, value] of browser.cookies) other.cookies.set(name, value)
    t.equal((await other.ask()).status, 302)
    t.equal((await browser.ask()).status, 200)
  },
)

t.test('[rfc7235-4.1-host-challenge] what is no page gets 401 and no redirect', async (t) => {
  const browser = new HostBrowser(server, host)
  const noPages = [
    { headers: { accept: 'application/json' } },
    { headers: { accept: 'text/html', 'sec-fetch-mode': 'cors' } },
    { headers: { accept: '*/*', 'sec-fetch-mode': 'websocket', 'sec-websocket-key': 'x' } },
    { method: 'POST', headers: page },
  ]
  for (const asked of noPages) {
    const response = await browser.ask(asked)
    t.equal(response.status, 401, JSON.stringify(asked))
    t.equal(response.headers.get('location'), null)
    t.equal(response.headers.get('www-authenticate'), 'Cookie')
    t.match(await response.json(), { error: 'login_required' })
  }
  const nginx = await browser.ask({ query: '?redirect=401' })
  t.equal(nginx.status, 401)
  t.match(nginx.headers.get('location'), `https://${host}/.lychgate/sign-in`)
  t.equal(nginx.headers.get('www-authenticate'), 'Cookie')
})

t.test('an assertion is signed once a minute for a session and host', async (t) => {
  const browser = new HostBrowser(server, host)
  await browser.signIn()
  const assertion = async () => (await browser.ask()).headers.get('x-lychgate-assertion')
  const first = await assertion()
  t.equal(await assertion(), first)
  server.advance(60)
  t.not(await assertion(), first)
})

t.test(
  '[rfc8725-3.11-host-assertion] an assertion is no token: not at UserInfo, as a hint, or in a sign-out',
  async (t) => {
    const browser = new HostBrowser(server, host)
    await browser.signIn()
    const assertion = (await browser.ask()).headers.get('x-lychgate-assertion') ?? ''
    const authorization = `Bearer ${assertion}`
    const userInfo = await fetch(`${server.issuer}/api/oauth/userinfo`, { headers: { authorization } })
    t.equal(userInfo.status, 401)
    const api = await fetch(`${server.issuer}/api/courses`, { headers: { authorization } })
    t.equal(api.status, 401)
    await browser.agent.open(`${server.issuer}/oauth/logout?id_token_hint=${assertion}`)
    t.equal((await browser.ask()).status, 200, 'as a hint it would have signed out without a question')
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: `https://${host}/.lychgate/callback`,
      scope: 'openid',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
      id_token_hint: assertion,
    })
    const hinted = await fetch(`${server.issuer}/oauth/authorize?${query}`, { redirect: 'manual' })
    t.match(hinted.headers.get('location'), /error=invalid_request/)
  },
)

t.test('the end of the session ends it at the next request', async (t) => {
  const browser = new HostBrowser(server, host)
  await browser.signIn()
  t.equal((await browser.ask()).status, 200)
  const landing = await browser.agent.open(`${server.issuer}/oauth/logout`)
  if (landing.at === 'page' && landing.page.forms[0] !== undefined)
    await browser.agent.submit(landing.page, { decision: 'logout' })
  t.equal((await browser.ask()).status, 302)
  const [, grantId = ''] = /^lyc_host_(.{16})/.exec(browser.cookies.get('__Host-lychgate_host') ?? '') ?? []
  const grant = await server.deps.store.find('grant', grantId)
  t.equal(grant?.revokedBy, 'lychgate-session-ended')
})

t.test('a session that idles ends it, and use keeps it', async (t) => {
  const { sessionIdleSeconds } = server.deps.config.lifetimes
  const browser = new HostBrowser(server, host)
  await browser.signIn()
  server.advance(sessionIdleSeconds - 60)
  t.equal((await browser.ask()).status, 200)
  server.advance(sessionIdleSeconds - 60)
  t.equal((await browser.ask()).status, 200, 'the first use has extended it')
  server.advance(sessionIdleSeconds + 60)
  t.equal((await browser.ask()).status, 302)
})

t.test('a user who is locked passes no more', async (t) => {
  const browser = new HostBrowser(server, host)
  await browser.signIn('/', { username: 'bob', password: 'bob-in-tests' })
  t.equal((await browser.ask()).status, 200)
  const user = await server.deps.store.find('userByLogin', 'bob')
  if (user === undefined) throw new Error('no bob')
  await server.deps.store.write({ op: 'update', kind: 'user', record: { ...user, lockedAt: server.now() } })
  t.equal((await browser.ask()).status, 302)
  await server.deps.store.write({ op: 'update', kind: 'user', record: user })
})

t.test(
  '[rfc6749-10.12-host-state] a callback is for the browser that began, once, and on its host',
  async (t) => {
    const browser = new HostBrowser(server, host)
    const callback = await browser.reach('/x')
    const stranger = new HostBrowser(server, host)
    const crossed = await stranger.route(callback)
    t.equal(crossed.status, 400)
    t.match(await crossed.text(), /lychgate-forward-auth-state|did not send our cookie/)
    const attacker = new HostBrowser(server, host)
    attacker.cookies.set('__Host-lychgate_host_browser', '')
    const ofNoBrowser = await attacker.reach('/x')
    t.equal((await stranger.route(ofNoBrowser)).status, 400, 'an empty cookie is not that of all others')
    const elsewhere = new HostBrowser(server, 'other.example.com')
    for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value)
    t.equal((await elsewhere.route(callback)).status, 400)
    t.equal((await browser.route(callback)).status, 303)
    t.equal((await browser.ask()).status, 200)
    t.equal((await browser.route(callback)).status, 400, 'a code is redeemed once')
    t.equal((await browser.ask()).status, 302, 'and what came of it is revoked, RFC 6749 section 4.1.2')
  },
)

t.test('a code of the client is worth nothing at the token endpoint', async (t) => {
  const browser = new HostBrowser(server, host)
  const callback = await browser.reach('/x')
  const response = await fetch(`${server.issuer}/api/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: callback.searchParams.get('code') ?? '',
      redirect_uri: `https://${host}/.lychgate/callback`,
      client_id: clientId,
      code_verifier: 'x'.repeat(43),
    }),
  })
  t.equal(response.status, 400)
  t.match(await response.json(), { error: 'unauthorized_client' })
  t.equal((await browser.route(callback)).status, 303, 'and the code is still there for the host')
})

t.test('a name has one client, whatever its port', async (t) => {
  await t.rejects(protect(server, `${host}:8443`))
  await protect(server, 'port.example.com:8443')
  t.equal((await new HostBrowser(server, 'port.example.com:8443').ask()).status, 302)
  for (const other of ['port.example.com', 'port.example.com:443', 'port.example.com:8444'])
    t.equal((await new HostBrowser(server, other).ask()).status, 403, other)
})

t.test('a proxy may ask by any method; the one that counts is forwarded', async (t) => {
  for (const method of ['POST', 'DELETE', 'OPTIONS']) {
    const response = await fetch(`${server.origin}/forward-auth`, {
      method,
      headers: {
        'x-forwarded-host': host,
        'x-forwarded-method': 'GET',
        'x-forwarded-uri': '/',
        accept: 'text/html',
        'sec-fetch-mode': 'navigate',
      },
      redirect: 'manual',
    })
    // `fetch` has a mode of its own.
    t.equal(response.status, 401, method)
  }
})

t.test('the probe tells what of a forged request arrives', async (t) => {
  const asked = await new HostBrowser(server, host).ask({ uri: '/.lychgate/probe' })
  t.equal(asked.status, 200)
  const probe = async (headers: Readonly<Record<string, string>>) =>
    (await fetch(`${server.origin}/.lychgate/probe`, { headers })).json()
  t.strictSame(await probe({}), { asked: false, forged: [] })
  const taken = Object.fromEntries(
    ['remote-user', 'x-lychgate-assertion', 'cookie'].map((name) => [name, asked.headers.get(name) ?? '-']),
  )
  t.strictSame(await probe(taken), { asked: true, forged: [] })
  t.strictSame(await probe({ ...taken, Remote_User: 'admin', cookie: '__Host-lychgate_host=x' }), {
    asked: true,
    forged: ['cookie', 'remote_user'],
  })
  t.strictSame(
    await probe({ 'x-lychgate-assertion': 'forged', 'remote-name': 'x', 'x_lychgate-assertion': '1' }),
    {
      asked: false,
      forged: ['x-lychgate-assertion', 'remote-name', 'x_lychgate-assertion'],
    },
  )
})

t.test(
  '[rfc7239-8.1-host-trusted-proxy] only a proxy of trustProxy may ask, about a host that is protected, as text',
  async (t) => {
    for (const odd of [
      'APP.example.com',
      'app.example.com.',
      'app.example.com:443',
      'app.example.com, x',
      'evil.example',
    ])
      t.equal((await new HostBrowser(server, odd).ask()).status, 403, odd)
    const direct = await startServer(t)
    await protect(direct, host)
    const response = await new HostBrowser(direct, host).ask()
    t.equal(response.status, 403)
    const malformed = await new HostBrowser(server, host).ask({ uri: 'https://evil.example/' })
    t.equal(malformed.status, 400)
    const loop = await new HostBrowser(server, host).ask({ uri: '/.lychgate/sign-in?to=/' })
    t.equal(loop.status, 403)
  },
)

t.test('[rfc6749-10.15-host-return] a way back leads to the host alone', async (t) => {
  const browser = new HostBrowser(server, host)
  for (const [to, back] of [
    ['//evil.example/', `https://${host}//evil.example/`],
    ['https://evil.example/', `https://${host}/`],
    ['/\\evil.example', `https://${host}/\\evil.example`],
    [`/${'a'.repeat(5000)}`, `https://${host}/`],
  ]) {
    const begun = await browser.route(`/.lychgate/sign-in?to=${encodeURIComponent(to ?? '')}`)
    t.equal(begun.status, 303)
    const landing = await browser.agent.open(begun.headers.get('location') ?? '')
    const callback = await signInAndApprove(browser.agent, landing, { user: alice })
    t.equal((await browser.route(callback)).headers.get('location'), back)
  }
})

t.test('no log line has a cookie, a code or an assertion', async (t) => {
  t.notMatch(server.log.join('\n'), /lyc_(?:host|code|browser)_|eyJ/)
})
