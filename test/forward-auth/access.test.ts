/** What a path of a protected host needs: no user, a group, a second factor, or an access token for the host. */
import { TOTP } from 'otpauth'
import t from 'tap'
import { put, update } from '../../src/domain/decision.ts'
import { groupKind, membershipKind } from '../../src/domain/group.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { exchange, obtainCode, register, type Tokens } from '../helpers/flow.ts'
import { HostBrowser, page, protect } from '../helpers/protected-host.ts'
import { bob, startServer } from '../helpers/server.ts'

const host = 'app.example.com'
const audience = `https://${host}`
const resources = [
  { identifier: audience, name: 'App', scopes: ['courses:read'], tokenFormat: 'opaque' as const },
  {
    identifier: 'https://jwt.example.com',
    name: 'JWT',
    scopes: ['courses:read'],
    tokenFormat: 'jwt' as const,
  },
]
const server = await startServer(t, { trustProxy: ['127.0.0.1', '::1'], resources })
const { store, keys } = server.deps
const [alice, bobsUser] = await Promise.all(
  ['alice', 'bob'].map(async (name) => (await store.find('userByLogin', name))?.id ?? ''),
)
if (alice === undefined || bobsUser === undefined) throw new Error('no users')

const staff = `group_${'A'.repeat(21)}A`
const admins = `group_${'B'.repeat(21)}A`
for (const [id, name] of [
  [staff, 'staff'],
  [admins, 'admins'],
] as const)
  await store.write(put(groupKind, { id, name, createdAt: server.now() }))
const join = (groupId: string, userId: string) =>
  store.write(put(membershipKind, { groupId, userId, addedAt: server.now() }))
const leave = (groupId: string, userId: string) =>
  store.write({ op: 'deleteRecord', kind: membershipKind.name, key: `${groupId} ${userId}` })

const rules = [
  { path: '/public/*', access: 'public' },
  { path: '/api/*', methods: ['OPTIONS'], access: 'public' },
  { path: '/api/*', access: 'bearer' },
  { path: '/admin/*', groups: [admins] },
  { path: '/keys', second_factor: true },
]
await protect(server, host, rules)
const json = { accept: 'application/json' }
const headerNames = ['remote-user', 'remote-email', 'remote-name', 'remote-groups', 'x-lychgate-assertion']

t.test('a public path has no user, and all headers, empty', async (t) => {
  const browser = new HostBrowser(server, host)
  const response = await browser.ask({ uri: '/public/a.css', headers: json })
  t.equal(response.status, 200)
  t.strictSame(
    headerNames.map((name) => response.headers.get(name)),
    headerNames.map(() => ''),
  )
  const cookie = '__Host-lychgate_host=x; a=1; __Host-lychgate_host_browser=y; b="2"'
  const cookies = await browser.ask({ uri: '/public/a.css', headers: { ...json, cookie } })
  t.equal(cookies.headers.get('cookie'), 'a=1; b="2"', 'the app gets its own cookies alone')
  for (const uri of ['/public/../admin', '/public/%2e%2e/admin', '/public//x', '/public/x;y', '/public/%2Fx'])
    t.equal(
      (await browser.ask({ uri, headers: json })).status,
      401,
      `[rfc3986-6.2.2-host-normal-path] ${uri}`,
    )
})

t.test('a rule for OPTIONS lets preflights pass, and nothing else', async (t) => {
  const browser = new HostBrowser(server, host)
  t.equal((await browser.ask({ method: 'OPTIONS', uri: '/api/x', headers: json })).status, 200)
  t.equal((await browser.ask({ method: 'POST', uri: '/api/x', headers: json })).status, 401)
  t.equal((await browser.ask({ method: 'OPTIONS', uri: '/x', headers: json })).status, 401)
})

t.test('a group of a path counts at each request', async (t) => {
  const browser = new HostBrowser(server, host)
  await join(staff, alice)
  await browser.signIn()
  const plain = await browser.ask()
  t.equal(plain.headers.get('remote-groups'), 'staff')
  const denied = await browser.ask({ uri: '/admin/x', headers: json })
  t.equal(denied.status, 403)
  t.match(await denied.json(), { error: 'access_denied' })
  const shown = await browser.ask({ uri: '/admin/x' })
  t.match([shown.status, shown.headers.get('content-type')], [403, /^text\/html/])
  await join(admins, alice)
  const passed = await browser.ask({ uri: '/admin/x' })
  t.strictSame([passed.status, passed.headers.get('remote-groups')], [200, 'admins,staff'])
  await leave(admins, alice)
  t.equal((await browser.ask({ uri: '/admin/x' })).status, 403)
  // No rule about groups or factors can be avoided by another spelling of a path.
  t.equal((await browser.ask({ uri: '/Admin/x' })).status, 403)
  t.equal((await browser.ask({ uri: '/x/../admin', headers: json })).status, 403)
})

t.test('the groups of the client count as for any client, at each request', async (t) => {
  await protect(server, 'staff.example.com', [], { description: { allowed_groups: staff } })
  const browser = new HostBrowser(server, 'staff.example.com')
  await browser.signIn()
  t.equal((await browser.ask()).status, 200)
  await leave(staff, alice)
  t.equal((await browser.ask()).status, 403)
})

t.test('the policy of sign-ins counts at each request, and the factor is set up on the way', async (t) => {
  const id = await protect(server, 'vault.example.com', [])
  const browser = new HostBrowser(server, 'vault.example.com')
  await browser.signIn()
  t.equal((await browser.ask()).status, 200)
  const client = await store.find('client', id)
  if (client === undefined) throw new Error('the client is there')
  await store.write(update('client', { ...client, extra: { ...client.extra, required_sign_in: 'passkey' } }))
  t.equal((await browser.ask({ headers: json })).status, 403)
  const begun = await browser.route((await browser.ask()).headers.get('location') ?? '')
  const landing = await browser.agent.open(begun.headers.get('location') ?? '')
  t.match(landing.at === 'page' && landing.page.html, 'Set up a passkey')
})

t.test('a second factor is asked for where a path needs it, and the sign-in goes on', async (t) => {
  const totp = new TOTP()
  const code = () => totp.generate({ timestamp: server.now() * 1000 })
  const browser = new HostBrowser(server, host)
  await browser.signIn('/', bob)
  t.equal((await browser.ask({ uri: '/' })).status, 200)
  t.equal((await browser.ask({ uri: '/keys', headers: json })).status, 403)
  const without = await browser.ask({ uri: '/keys' })
  t.equal(without.status, 302)
  const begun = await browser.route(without.headers.get('location') ?? '')
  const refused = await browser.agent.open(begun.headers.get('location') ?? '')
  if (refused.at !== 'redirect') throw new Error('bob has no second factor, so the sign-in fails')
  const failed = await browser.route(refused.location)
  t.equal(failed.status, 403)
  t.match(await failed.text(), /acr that this user cannot sign in with|cannot use this app/)
  t.equal((await browser.ask()).status, 200, 'and nothing was ended')
  await store.write(
    put(secondFactorKind, {
      userId: bobsUser,
      sealedSecret: keys.seal(Buffer.from(totp.secret.bytes), bobsUser, secondFactorKind),
      confirmedAt: server.now(),
      recoveryHashes: [],
      createdAt: server.now(),
    }),
  )
  const again = await browser.route((await browser.ask({ uri: '/keys' })).headers.get('location') ?? '')
  let landing = await browser.agent.open(again.headers.get('location') ?? '')
  if (landing.at !== 'page') throw new Error('a code is asked for')
  landing = await browser.agent.submit(landing.page, { code: code() })
  if (landing.at !== 'redirect') throw new Error(landing.page.html)
  t.equal((await browser.route(landing.location)).headers.get('location'), `https://${host}/keys`)
  t.equal((await browser.ask({ uri: '/keys' })).status, 200)
})

t.test(
  '[rfc6750-5.2-host-audience] an access token passes where the path takes one, if it is for this host',
  async (t) => {
    const client = await register(server)
    const tokenFor = async (resource: string) => {
      const fields = { scope: 'openid courses:read', resource }
      const got = await exchange(server, client, await obtainCode(server, client, { fields }))
      return ((await got.json()) as Tokens).access_token
    }
    const browser = new HostBrowser(server, host)
    const ask = (token: string, uri = '/api/x') =>
      browser.ask({ uri, headers: { ...json, authorization: `Bearer ${token}` } })
    const token = await tokenFor(audience)
    const passed = await ask(token)
    t.strictSame([passed.status, passed.headers.get('remote-user')], [200, 'alice'])
    t.equal((await ask(token, '/')).status, 401, 'another path takes no token')
    t.equal((await ask(token, '/api/../x')).status, 401, 'nor does a path that is not in normal form')
    t.equal((await ask(token, '/api//x')).status, 401)
    const others = [await tokenFor(server.issuer), await tokenFor('https://jwt.example.com'), 'a.b', 'x y']
    for (const other of others) {
      const response = await ask(other)
      t.equal(response.status, 401)
      t.match(response.headers.get('www-authenticate'), /^Bearer error="invalid_token"/)
    }
    const absent = await browser.ask({ uri: '/api/x', headers: json })
    t.strictSame([absent.status, absent.headers.get('www-authenticate')], [401, 'Bearer'])
    await browser.signIn()
    t.equal((await browser.ask({ uri: '/api/x', headers: page })).status, 200, 'a session passes, too')
    const assertion = (await browser.ask()).headers.get('x-lychgate-assertion') ?? ''
    t.equal((await ask(assertion)).status, 401, 'an assertion is no access token')
  },
)
