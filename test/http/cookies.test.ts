/** The names of cookies: what keeps servers of one host apart, and what becomes of the names of the version before. */
import t from 'tap'
import { hashSecret } from '../../src/domain/secret.ts'
import { cookieName } from '../../src/http/cookies.ts'
import { ask, integrate, pageOf, pick, place, sentAway, signedIn, title } from '../helpers/authorization.ts'
import { register } from '../helpers/flow.ts'
import { alice, bob, startServer, type TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const kinds = ['session', 'others', 'browser', 'device'] as const
const [here, there] = [await startServer(t), await startServer(t)]
const client = await register(here)
const otherClient = await register(there)
const portal = await integrate(here, { consent: 'skip' })

/** Another server in the same browser: cookies of a host are sent to all its ports, RFC 6265 §8.5. */
function alsoAt(server: TestServer, { cookies }: UserAgent): UserAgent {
  return Object.assign(new UserAgent(server.issuer), { cookies })
}

const formerName = (name: string) => name.replace(/_[\w-]{10}$/, '')

/** Gives the cookies of a browser the names that they had in the version before. */
function renameAsBefore({ cookies }: UserAgent): void {
  for (const [name, value] of [...cookies]) {
    cookies.delete(name)
    cookies.set(formerName(name), value)
  }
}

const namesIn = (agent: UserAgent) => [...agent.cookies.keys()].sort()
const namesOf = (server: TestServer, ...of: readonly (typeof kinds)[number][]) =>
  of.map((kind) => cookieName(server.issuer, kind))

t.test(
  'a name depends on host, port and path of the issuer, and has the prefix __Host- on https',
  async (t) => {
    const issuers = [
      'http://localhost:9400',
      'http://localhost:9401',
      'http://127.0.0.1:9400',
      'https://id.example',
      'https://id.example/a',
      'https://id.example/b',
    ]
    const names = issuers.flatMap((issuer) => kinds.map((kind) => cookieName(issuer, kind)))
    t.equal(new Set(names).size, names.length)
    for (const name of names) t.match(name, /^(?:__Host-)?lychgate_[a-z]+_[\w-]{10}$/)
    t.match(cookieName('https://id.example/a', 'session'), /^__Host-/)
    t.equal(cookieName('https://id.example', 'device'), cookieName('https://id.example:443/', 'device'))
  },
)

t.test('two servers on localhost keep a user each, also in the middle of consent', async (t) => {
  const agent = new UserAgent(here.issuer)
  const consent = pageOf(await agent.submit(pageOf(await ask(here, client, {}, agent)), alice))
  const other = alsoAt(there, agent)
  pageOf(await other.submit(pageOf(await ask(there, otherClient, {}, other)), bob))
  t.equal(place(await ask(here, client, {}, agent)), '/consent', 'the first server still knows its user')
  t.match(sentAway(await agent.submit(consent, { decision: 'approve' })), { code: /./ })
  const home = pageOf(await other.open(`${there.issuer}/account`))
  t.match(home.html, 'bob')
  t.strictSame(
    namesIn(agent),
    [
      ...namesOf(here, 'browser', 'device', 'session'),
      ...namesOf(there, 'browser', 'device', 'session'),
    ].sort(),
  )
})

t.test('two issuers below paths of one host keep a session each', async (t) => {
  const [one, two] = [await startServer(t, { issuerPath: '/a' }), await startServer(t, { issuerPath: '/b' })]
  const agent = await signedIn(one, await register(one))
  const other = alsoAt(two, agent)
  const twoClient = await register(two)
  pageOf(await other.submit(pageOf(await ask(two, twoClient, {}, other)), bob))
  t.match(pageOf(await agent.open(`${one.issuer}/account`)).html, 'alice')
  t.match(pageOf(await other.open(`${two.issuer}/account`)).html, 'bob')
})

t.test('cookies of the version before stay valid, and are replaced and cleared', async (t) => {
  const agent = await signedIn(here, portal)
  const choice = pageOf(await ask(here, portal, { prompt: 'select_account' }, agent))
  const login = pageOf(await agent.submit(choice, { decision: 'switch' }))
  sentAway(await agent.submit(login, bob))
  const before = new Map(kinds.map((kind) => [kind, agent.cookie(kind)]))
  renameAsBefore(agent)
  const response = await agent.send(`${here.issuer}/account`)
  t.equal(response.status, 200)
  t.match(await response.text(), 'bob')
  for (const kind of ['session', 'others', 'browser'] as const) t.equal(agent.cookie(kind), before.get(kind))
  t.strictSame(
    namesIn(agent),
    ['lychgate_browser', 'lychgate_device', ...namesOf(here, 'session', 'others', 'browser')].sort(),
  )
  for (const cookie of response.headers.getSetCookie()) t.match(cookie, /; Path=\/; .*HttpOnly; SameSite=Lax/)
  const again = pageOf(await ask(here, portal, { prompt: 'select_account' }, agent))
  t.match(sentAway(await agent.submit(again, pick(again, '>alice<'))), { code: /./ }, 'the other user, too')
})

t.test('a sign-in and a consent that wait during the update are completed', async (t) => {
  const agent = new UserAgent(here.issuer)
  const login = pageOf(await ask(here, client, {}, agent))
  const secret = agent.cookie('browser')
  renameAsBefore(agent)
  const consent = pageOf(await agent.submit(login, alice))
  t.equal(title(consent), 'Allow Test client to use your account?')
  t.equal(agent.cookie('browser'), secret)
  t.notOk(agent.cookies.has('lychgate_browser'))
  renameAsBefore(agent)
  t.match(sentAway(await agent.submit(consent, { decision: 'approve' })), { code: /./ })
})

t.test('a form of the account that was open during the update still counts', async (t) => {
  const agent = await signedIn(here, portal)
  const page = pageOf(await agent.open(`${here.issuer}/account/profile`))
  renameAsBefore(agent)
  const [form] = page.forms
  const saved = await agent.submit(page, { given_name: 'Alison' }, form)
  t.match(pageOf(saved).url, 'done=')
})

t.test(
  'a known browser of the version before stays known; the cookie is replaced at the next sign-in',
  async (t) => {
    const agent = await signedIn(here, portal)
    const device = agent.cookie('device') ?? ''
    const [, nonce] = device.split('.')
    agent.cookies.clear()
    agent.cookies.set('lychgate_device', device)
    sentAway(await agent.submit(pageOf(await ask(here, portal, {}, agent)), alice))
    t.equal(agent.cookie('device')?.split('.')[1], nonce, 'its count goes on')
    t.notOk(agent.cookies.has('lychgate_device'))
    agent.deleteCookie('session')
    agent.deleteCookie('device')
    agent.cookies.set('lychgate_device', device)
    sentAway(await agent.submit(pageOf(await ask(here, portal, {}, agent)), bob))
    t.notOk(agent.cookies.has('lychgate_device'), 'also by the sign-in of another user')
  },
)

t.test("another server's cookies of these names count for nothing and stay", async (t) => {
  const agent = await signedIn(there, otherClient)
  renameAsBefore(agent)
  const theirs = new Map(agent.cookies)
  const visitor = alsoAt(here, agent)
  const login = pageOf(await ask(here, client, {}, visitor))
  t.equal(title(login), 'Sign in')
  t.not(visitor.cookie('browser'), theirs.get('lychgate_browser'))
  pageOf(await visitor.submit(login, alice))
  t.equal((await visitor.send(`${here.issuer}/account`)).status, 200)
  for (const [name, value] of theirs) t.equal(visitor.cookies.get(name), value, name)
  t.match(pageOf(await agent.open(`${there.issuer}/account`)).html, 'alice', 'there its user stays signed in')
})

t.test('a former name counts for nothing where there is a cookie of today', async (t) => {
  const agent = await signedIn(here, portal)
  const session = agent.cookie('session') ?? ''
  const visitor = await signedIn(here, portal, bob)
  visitor.cookies.set('lychgate_session', session)
  t.match(pageOf(await visitor.open(`${here.issuer}/account`)).html, 'bob')
  t.equal(visitor.cookies.get('lychgate_session'), session)
  // An ended session opens nothing, whatever the name.
  await here.deps.store.write({ op: 'endSession', sessionId: hashSecret(session), at: here.now() })
  const stale = new UserAgent(here.issuer)
  stale.cookies.set('lychgate_session', session)
  t.equal(place(await stale.open(`${here.issuer}/account`)), '/login')
})
