/** What attackers try at a protected host. The proxies themselves are attacked in test/deploy/forward-auth.ts. */
import t from 'tap'
import { put, update } from '../../src/domain/decision.ts'
import { groupKind, membershipKind } from '../../src/domain/group.ts'
import type { Client } from '../../src/domain/model.ts'
import { clientProbe } from '../../src/forward-auth/probe.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { callApi, obtainCode, register, type Tokens } from '../helpers/flow.ts'
import { postProven, signProof, tokenPath } from '../helpers/proofs.ts'
import { HostBrowser, page, protect } from '../helpers/protected-host.ts'
import { startServer } from '../helpers/server.ts'

const host = 'app.example.com'
const audience = `https://${host}`
const server = await startServer(t, {
  trustProxy: ['127.0.0.1', '::1'],
  resources: [
    { identifier: audience, name: 'App', scopes: ['courses:read'], tokenFormat: 'opaque' as const },
  ],
})
const { store } = server.deps
const rules = [
  { path: '/api/*', access: 'bearer' },
  { path: '/upload', methods: ['POST'], second_factor: true },
]
const clientId = await protect(server, host, rules)
const json = { accept: 'application/json' }

async function clientOfHost(): Promise<Client> {
  const client = await store.find('client', clientId)
  if (client === undefined) throw new Error('the client is there')
  return client
}

t.test('the issuer protects no paths of itself: its sign-in would need a sign-in', async (t) => {
  const own = new URL(server.issuer).host
  t.match(own, /^localhost:/)
  await protect(server, own)
  t.equal((await new HostBrowser(server, own).ask()).status, 403)
})

t.test('a client that is locked opens nothing, not even what is public', async (t) => {
  const id = await protect(server, 'locked.example.com', [{ path: '/*', access: 'public' }])
  const browser = new HostBrowser(server, 'locked.example.com')
  t.equal((await browser.ask()).status, 200)
  const client = await store.find('client', id)
  if (client === undefined) throw new Error('the client is there')
  await store.write(update('client', { ...client, lockedAt: server.now() }))
  t.equal((await browser.ask()).status, 403)
})

t.test('a callback opened in a browser that began another sign-in changes nothing there', async (t) => {
  const attacker = new HostBrowser(server, host)
  const victim = new HostBrowser(server, host)
  await victim.signIn('/')
  const before = victim.cookies.get('__Host-lychgate_host')
  const crossed = await victim.route(await attacker.reach('/x'))
  t.equal(crossed.status, 400)
  t.match(await crossed.text(), /This browser did not send our cookie/)
  t.equal(victim.cookies.get('__Host-lychgate_host'), before)
  t.equal((await victim.ask()).status, 200)
})

t.test('the secret of a browser is one that this server made', async (t) => {
  for (const planted of ['', 'x', `lyc_browser_${'x'.repeat(42)}`]) {
    const browser = new HostBrowser(server, host)
    browser.cookies.set('__Host-lychgate_host_browser', planted)
    await browser.route('/.lychgate/sign-in?to=/')
    t.match(browser.cookies.get('__Host-lychgate_host_browser'), /^lyc_browser_[\w-]{43}$/, planted)
  }
})

t.test('[rfc9207-2.4-host-iss] a callback of another issuer is rejected', async (t) => {
  const browser = new HostBrowser(server, host)
  const callback = await browser.reach()
  const mixed = new URL(callback)
  mixed.searchParams.set('iss', 'https://evil.example')
  t.equal((await browser.route(mixed)).status, 400)
  t.equal((await browser.ask()).status, 302)
  t.equal((await browser.route(callback)).status, 303, 'and the code is still there')
})

t.test('a callback without a code, or with an error, signs no user in', async (t) => {
  const browser = new HostBrowser(server, host)
  const callback = await browser.reach()
  const state = callback.searchParams.get('state') ?? ''
  for (const [query, status] of [
    [`state=${state}`, 403],
    [`state=${state}&error=access_denied`, 403],
    [`state=${state}&error=server_error&error_description=x`, 403],
    [`state=${state}&code=lyc_code_x`, 400],
    [`state=${state}&code=${callback.searchParams.get('code')}x`, 400],
    [`state=${state}x&code=${callback.searchParams.get('code')}`, 400],
    [`state=${state}&state=${state}&code=x`, 400],
    ['', 400],
  ] as const)
    t.equal((await browser.route(`/.lychgate/callback?${query}`)).status, status, query)
  t.equal((await browser.ask()).status, 302)
})

t.test('of two cookies of the host none counts, and none of another secret or grant', async (t) => {
  const browser = new HostBrowser(server, host)
  await browser.signIn()
  const cookie = browser.cookies.get('__Host-lychgate_host') ?? ''
  const askWith = (...values: readonly string[]) => {
    const sent = values.map((value) => `__Host-lychgate_host=${value}`).join('; ')
    return new HostBrowser(server, host).ask({ headers: { ...page, cookie: sent } })
  }
  t.equal((await askWith(cookie)).status, 200)
  t.equal((await askWith(cookie, cookie)).status, 302)
  t.equal((await askWith(cookie, 'x')).status, 302)
  const other = new HostBrowser(server, host)
  await other.signIn()
  const otherCookie = other.cookies.get('__Host-lychgate_host') ?? ''
  const split = (text: string) => [text.slice(0, 9 + 16 + 22), text.slice(9 + 16 + 22)]
  const [head = '', tail = ''] = [split(cookie)[0], split(otherCookie)[1]]
  t.equal(head.length + tail.length, cookie.length)
  t.equal((await askWith(head + tail)).status, 302, 'the tag is of the secret of the grant')
  t.equal((await askWith(cookie.slice(0, -1))).status, 302)
  t.equal((await askWith(`${cookie} `)).status, 200, 'white space around it is not part of it')
})

t.test(
  '[rfc9449-7.2-host-bound-token] a token that is bound to a key does not pass: its proof is for another URL',
  async (t) => {
    const client = await register(server)
    const key = makeClientKey('ES256')
    const fields = { scope: 'openid courses:read', resource: audience }
    const code = await obtainCode(server, client, { fields })
    const proof = signProof(key, { url: server.issuer + tokenPath, now: server.now() })
    const response = await postProven(
      server,
      client,
      tokenPath,
      {
        grant_type: 'authorization_code',
        code,
        redirect_uri: client.redirectUri,
        code_verifier: 'v'.repeat(43),
      },
      proof,
    )
    const { access_token: token, token_type: type } = (await response.json()) as Tokens & {
      token_type: string
    }
    t.equal(type, 'DPoP')
    const asked = { uri: '/api/x', headers: { ...json, authorization: `Bearer ${token}` } }
    t.equal((await new HostBrowser(server, host).ask(asked)).status, 401)
  },
)

t.test('an address that is not verified is not passed on', async (t) => {
  const browser = new HostBrowser(server, host)
  await browser.signIn()
  t.equal((await browser.ask()).headers.get('remote-email'), 'alice@example.test')
  const user = await store.find('userByLogin', 'alice')
  if (user === undefined) throw new Error('alice is there')
  await store.write(update('user', { ...user, claims: { ...user.claims, email_verified: false } }))
  t.equal((await browser.ask()).headers.get('remote-email'), '')
  await store.write(update('user', user))
})

t.test('an assertion of a minute ago is not sent for a user who has changed', async (t) => {
  const browser = new HostBrowser(server, host)
  await browser.signIn()
  const assertion = async () => (await browser.ask()).headers.get('x-lychgate-assertion')
  const before = await assertion()
  const user = await store.find('userByLogin', 'alice')
  const group = { id: `group_${'C'.repeat(21)}A`, name: 'readers', createdAt: server.now() }
  await store.write(
    put(groupKind, group),
    put(membershipKind, { groupId: group.id, userId: user?.id ?? '', addedAt: server.now() }),
  )
  t.not(await assertion(), before)
})

t.test('a method is read as it is written, and a missing header is an error', async (t) => {
  const browser = new HostBrowser(server, host)
  for (const method of ['post', 'PO,ST', 'P OST', ''])
    t.equal((await browser.ask({ method, uri: '/upload', headers: json })).status, 400, method)
  const lacking = await fetch(`${server.origin}/forward-auth`, { headers: { 'x-forwarded-host': host } })
  t.equal(lacking.status, 400)
  t.match(await lacking.json(), { error: 'invalid_request' })
})

t.test('a long URL is asked about, and its way back is the start page if it is too long', async (t) => {
  const browser = new HostBrowser(server, host)
  const long = await browser.ask({ uri: `/x?${'a'.repeat(12_000)}` })
  t.match([long.status, long.headers.get('location')], [302, `https://${host}/.lychgate/sign-in?to=%2F`])
  t.equal((await browser.ask({ uri: `/x?${'a'.repeat(20_000)}` })).status, 431, 'Node reads 16 kB of headers')
})

t.test('the doctor tells a proxy that does not ask from one that lets forged headers through', async (t) => {
  const { requestOf, faultOf } = clientProbe
  t.match(requestOf(await clientOfHost()), { url: `https://${host}/.lychgate/probe` })
  t.equal(requestOf({ ...(await clientOfHost()), extra: {} }), undefined)
  t.equal(faultOf({ asked: true, forged: [] }), undefined)
  t.match(faultOf({ asked: false, forged: [] }), { said: /does not take/ })
  t.match(faultOf({ asked: true, forged: ['remote_user'] }), { said: /forges/, found: 'remote_user' })
  for (const other of [undefined, 'ok', {}, { forged: 'none' }])
    t.match(faultOf(other), { said: /does not send/ })
})

t.test('no host signs in for another: each has a cookie of its own', async (t) => {
  await protect(server, 'second.example.com')
  const first = new HostBrowser(server, host)
  await first.signIn()
  const second = new HostBrowser(server, 'second.example.com', first.agent)
  const asked = await second.ask()
  t.equal(asked.status, 302)
  // The session of the browser at the issuer signs it in without a question.
  const begun = await second.route(asked.headers.get('location') ?? '')
  const landing = await second.agent.open(begun.headers.get('location') ?? '')
  if (landing.at !== 'redirect') throw new Error('it is signed in at the issuer')
  t.equal(
    (await first.route(landing.location)).status,
    400,
    'the callback of the second is not for the first',
  )
  t.equal((await second.route(landing.location)).status, 303)
  t.equal((await second.ask()).status, 200)
  t.equal((await first.ask()).status, 200)
  t.equal((await callApi(server, '/api/courses', 'x')).status, 401)
})
