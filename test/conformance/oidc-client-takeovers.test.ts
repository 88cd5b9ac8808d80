/** Ways in which accounts of other servers were taken over by their sign-in with an upstream: by what the attacker did. */
import t from 'tap'
import { upstreamLinkKind } from '../../src/users/rules/upstream-link.ts'
import { authorizationUrl, redirectUri, type TestClient } from '../helpers/flow.ts'
import { recordOf } from '../helpers/rejection.ts'
import { bob, startServer, type TestServer } from '../helpers/server.ts'
import {
  goAway,
  locationOf,
  pageOf,
  type StandInUpstream,
  startStandInUpstream,
  startWithUpstream,
  UserAgent,
  upstreamOf,
} from '../helpers/stand-in-upstream.ts'

const victimsAddress = 'alice@example.test'

async function userNamed({ deps: { store } }: TestServer, name: string) {
  const user = await store.find('userByLogin', name)
  if (user === undefined) throw new Error(`there is no ${name}`)
  return user
}

const linksOf = ({ deps: { store } }: TestServer, userId: string) => store.listOf(upstreamLinkKind, userId)

/** Signs in with an upstream in a new browser. @returns Who is signed in then; undefined if no one is. */
async function signIn(
  { server, client, upstream }: { server: TestServer; client: TestClient; upstream: StandInUpstream },
  claims: Readonly<Record<string, unknown>>,
) {
  const { store } = server.deps
  upstream.says = { claims }
  const here = new UserAgent(server.issuer)
  await here.open(upstream.respondTo(await goAway(here, authorizationUrl(server, client))))
  if (here.cookie('session') === undefined) return undefined
  const [event] = (await store.audit({ since: 0, name: 'sign-in', limit: 100 })).slice(-1)
  return store.find('user', event?.userId ?? '')
}

t.test(
  '[oidc-core-5.7-rp-user-key] link by an email address: one that the attacker wrote there, verified or not, leads to no user here',
  async (t) => {
    for (const firstSignIn of ['off', 'domain', 'any'] as const) {
      const setup = await startWithUpstream(t, { firstSignIn, domains: ['example.test'] })
      const { server } = setup
      const alice = await userNamed(server, 'alice')
      for (const verified of [false, undefined, 'true', 1, true]) {
        const claims = { sub: `attacker ${verified}`, email: victimsAddress, email_verified: verified }
        const user = await signIn(setup, { ...claims, preferred_username: 'alice' })
        t.not(user?.id, alice.id, `${firstSignIn} ${verified}`)
        t.not(user?.email, victimsAddress)
        t.not(user?.username, 'alice')
      }
      t.strictSame(await linksOf(server, alice.id), [])
      t.same(await userNamed(server, victimsAddress), alice)
    }
  },
)

t.test(
  '[oidc-core-5.7-rp-user-key] email change at the upstream: the attacker stays who they are, and the victim stays theirs',
  async (t) => {
    const setup = await startWithUpstream(t, {
      firstSignIn: 'domain',
      domains: ['example.com', 'example.test'],
    })
    const { server } = setup
    const alice = await userNamed(server, 'alice')
    const attacker = { sub: 'attacker', email: 'mallory@example.com' }
    const before = await signIn(setup, attacker)
    t.equal(before?.email, 'mallory@example.com')
    const after = await signIn(setup, { ...attacker, email: victimsAddress, preferred_username: 'alice' })
    t.same(after, before, 'nothing of it is stored, either')
    t.same(await userNamed(server, victimsAddress), alice)
    t.strictSame(await linksOf(server, alice.id), [])
  },
)

t.test(
  '[oidc-core-5.7-rp-user-key] sub of another issuer: the same sub at a second upstream is another user',
  async (t) => {
    const [first, second] = [await startStandInUpstream(t), await startStandInUpstream(t)]
    const policy = { firstSignIn: 'any' } as const
    const upstreams = [
      upstreamOf(t, first.issuer, policy),
      upstreamOf(t, second.issuer, { ...policy, id: 'other', name: 'Other' }),
    ]
    const server = await startServer(t, { mode: 'dev', upstreams })
    const signInWith = async (id: string, upstream: StandInUpstream, claims: Record<string, unknown>) => {
      const here = new UserAgent(server.issuer)
      const { html, url } = pageOf(await here.open(`${server.issuer}/account`))
      const hrefs = [...html.matchAll(/href="([^"]+)"/g)].map(([, href = '']) =>
        href.replaceAll('&amp;', '&'),
      )
      const button = hrefs.find((href) => href.includes(`/login/upstream/${id}?`)) ?? ''
      upstream.says = { claims }
      await here.open(upstream.respondTo(locationOf(await here.open(new URL(button, url).href))))
      if (here.cookie('session') === undefined) return undefined
      return (await server.deps.store.audit({ since: 0, name: 'sign-in', limit: 100 })).at(-1)?.userId
    }
    const sub = 'the-sub-of-a-victim'
    const victim = await signInWith('work', first, { sub })
    t.type(victim, 'string')
    const attacker = await signInWith('other', second, { sub })
    t.type(attacker, 'string')
    t.not(attacker, victim)
    t.equal(await signInWith('other', second, { sub, iss: first.issuer }), undefined, 'nor by its iss')
    t.equal(await signInWith('work', first, { sub }), victim)
  },
)

t.test(
  '[rfc6749-10.12-client-state] CSRF of the link page: the victim links nothing of the attacker, and the attacker nothing of the victim',
  async (t) => {
    const { upstream, server } = await startWithUpstream(t)
    const page = async (agent: UserAgent, user?: typeof bob) => {
      const login = pageOf(await agent.open(`${server.issuer}/account/upstreams`))
      return pageOf(await agent.submit(login, user ?? { username: 'alice', password: 'alice-in-tests' }))
    }
    const [victim, attacker] = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
    const own = await page(victim)
    const theirs = await page(attacker, bob)
    const back = upstream.respondTo(
      locationOf(await attacker.submit(theirs, { link: 'work' }, theirs.forms.at(-1))),
    )
    const opened = pageOf(await victim.open(back))
    t.equal((await recordOf(server, opened)).rule, 'rfc6749-10.12-client-state')
    t.equal(upstream.sent.length, 0, 'the code of the attacker is not used')

    // The same browser, after its user has changed.
    attacker.deleteCookie('session')
    await page(attacker)
    const changed = pageOf(await attacker.open(back))
    t.equal((await recordOf(server, changed)).rule, 'lychgate-upstream-link')
    t.equal(upstream.sent.length, 0)

    // The form of the page, as another site has a browser send it.
    const form = own.forms.at(-1)
    const body = new URLSearchParams({ link: 'work' })
    for (const { name, value } of form?.fields ?? []) if (name !== 'csrf') body.set(name, value)
    const url = new URL(form?.action ?? '', own.url).href
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]) {
      const sent = await victim.send(url, { method: 'POST', body, headers })
      t.equal(sent.status, 403)
      t.equal(sent.headers.get('location'), null, 'it leads to no upstream')
    }
    for (const name of ['alice', 'bob'])
      t.strictSame(await linksOf(server, (await userNamed(server, name)).id), [], name)
  },
)

t.test(
  '[oidc-core-5.7-rp-user-key] pre-hijacking: an account that the attacker made first does not become the account of the victim',
  async (t) => {
    const setup = await startWithUpstream(t, { firstSignIn: 'any', domains: ['example.com'] })
    const { server } = setup
    const claims = { email: 'victim@example.com', preferred_username: 'victim@example.com' }
    const attacker = { ...claims, sub: 'attacker', email_verified: false }
    const made = await signIn(setup, attacker)
    t.equal(made?.email, undefined)
    t.not(made?.username, 'victim@example.com')
    const victim = await signIn(setup, { ...claims, sub: 'victim', email_verified: true })
    t.equal(victim?.email, 'victim@example.com')
    t.not(victim?.id, made?.id)
    t.equal((await linksOf(server, victim?.id ?? '')).length, 1)
    t.equal((await signIn(setup, attacker))?.id, made?.id, 'the attacker is where they were')
  },
)

t.test(
  '[rfc6749-10.15-no-open-redirector] open redirect: a callback leads to the app that asked, or nowhere',
  async (t) => {
    const { upstream, server, client } = await startWithUpstream(t, { firstSignIn: 'any' })
    const evil = 'https://evil.example/'
    const names = ['redirect_uri', 'return_to', 'to', 'next', 'continue', 'url', 'interaction', 'done']
    const extra = new URLSearchParams(names.map((name): [string, string] => [name, evil]))
    const callback = `${server.issuer}/login/upstream/work/callback`
    for (const query of [`${extra}`, `state=${evil}&code=x&${extra}`, `error=access_denied&${extra}`]) {
      const response = await new UserAgent(server.issuer).send(`${callback}?${query}`)
      t.strictSame([response.status, response.headers.get('location')], [400, null])
      t.notMatch(await response.text(), /href="https:\/\/evil/)
    }
    for (const query of [`${extra}`, `interaction=${evil}`, 'interaction=//evil.example']) {
      const response = await new UserAgent(server.issuer).send(
        `${server.issuer}/login/upstream/work?${query}`,
      )
      t.ok(response.status >= 400 && response.status < 500, query)
      t.equal(response.headers.get('location'), null)
    }
    const here = new UserAgent(server.issuer)
    const back = upstream.respondTo(await goAway(here, authorizationUrl(server, client)))
    const page = pageOf(await here.open(`${back}&${extra}`))
    const landed = locationOf(await here.submit(page, { decision: 'approve' }))
    t.equal(landed.origin + landed.pathname, redirectUri)
  },
)
