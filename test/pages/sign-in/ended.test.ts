import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { put, update } from '../../../src/domain/decision.ts'
import { handleOf } from '../../../src/pages/sign-in/way-back.ts'
import { secondFactorKind } from '../../../src/users/rules/second-factor.ts'
import { ask, integrate, pageOf, pick, sentAway, signedIn, title } from '../../helpers/authorization.ts'
import { register } from '../../helpers/flow.ts'
import { recordOf } from '../../helpers/rejection.ts'
import { alice, bob, startServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'

// A page of a sign-in that stays open beyond its limit says so and leads back: to the app or to the page of this server.
const server = await startServer(t)
const { interactionSeconds } = server.deps.config.lifetimes
const tooLong = 'This page was open for too long'
const home = 'https://app.example/start?a=1'
const homely = { client_uri: home }

/** The links of the page itself, each with its `rel`. */
function linksOf({ html }: Page): readonly string[] {
  const main = /<main[\s\S]*<\/main>/.exec(html)?.[0] ?? html
  return [...main.matchAll(/<a ([^>]*)>/g)].map(([, attributes = '']) => attributes)
}

const away = (url: string) => [
  `class="button" href="${url.replaceAll('&', '&amp;')}" rel="noopener noreferrer nofollow"`,
]

async function expire(agent: UserAgent, page: Page, changes: Record<string, string>): Promise<Page> {
  server.advance(interactionSeconds)
  // Nothing of the request is stored any more.
  await server.maintain()
  return pageOf(await agent.submit(page, changes))
}

t.test('sign-in, consent and account choice that were open for too long lead back to the app', async (t) => {
  const app = await register(server, { client_name: 'Zyx', ...homely })
  const pages = {
    'sign-in': async (agent: UserAgent) => ({ page: await ask(server, app, {}, agent), changes: alice }),
    consent: async (agent: UserAgent) => {
      await agent.submit(pageOf(await ask(server, app, {}, agent)), alice)
      return { page: await ask(server, app, {}, agent), changes: { decision: 'approve' } }
    },
    'account choice': async (agent: UserAgent) => {
      await agent.submit(pageOf(await ask(server, app, {}, agent)), alice)
      const page = await ask(server, app, { prompt: 'select_account' }, agent)
      return { page, changes: pick(pageOf(page)) }
    },
  }
  for (const [about, open] of Object.entries(pages)) {
    const agent = new UserAgent(server.issuer)
    const { page, changes } = await open(agent)
    const ended = await expire(agent, pageOf(page), changes)
    t.equal(ended.status, 400, about)
    t.equal(title(ended), tooLong, about)
    t.strictSame(linksOf(ended), away(home), about)
    t.match(ended.html, />Go back to <bdi>Zyx<\/bdi><\/a>/, about)
    t.match(ended.html, /<bdi class="host">app\.example<\/bdi>/, about)
    t.match(await recordOf(server, ended), { why: 'the authorization request has expired' }, about)
    t.match(ended.html, `reference: <code>${ended.headers.get('x-request-id')}</code>`, about)
    t.match(ended.headers.get('content-security-policy'), "form-action 'self'", about)
    t.equal(ended.headers.get('referrer-policy'), 'no-referrer', about)
    const reloaded = pageOf(await agent.open(pageOf(page).url))
    t.strictSame(linksOf(reloaded), away(home), `${about}, reloaded`)
  }
})

t.test('the second factor that was open for too long leads back, also after a wrong code', async (t) => {
  const app = await register(server, homely)
  const { store, keys } = server.deps
  const { id: userId = '' } = (await store.find('userByLogin', 'bob')) ?? {}
  const sealedSecret = keys.seal(randomBytes(20), userId, secondFactorKind)
  const now = server.now()
  await store.write(
    put(secondFactorKind, { userId, sealedSecret, confirmedAt: now, recoveryHashes: [], createdAt: now }),
  )
  const secondOf = async (agent: UserAgent) => {
    const second = pageOf(await agent.submit(pageOf(await ask(server, app, {}, agent)), bob))
    t.match(second.html, 'name="code"')
    return second
  }
  const [one, two] = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
  const shown = await secondOf(one)
  const wrong = pageOf(await two.submit(await secondOf(two), { code: '000000' }))
  t.equal(wrong.status, 400)
  for (const [agent, page] of [
    [one, shown],
    [two, wrong],
  ] as const) {
    const ended = await expire(agent, page, { code: '000000' })
    t.equal(title(ended), tooLong)
    t.strictSame(linksOf(ended), away(home))
  }
})

t.test(
  '[oidc-core-4-initiate-login] an app that starts sign-ins itself is linked to there, with the issuer',
  async (t) => {
    const starts = 'https://app.example/begin?x=%20y'
    const description = { initiate_login_uri: starts, client_uri: home }
    const portal = await integrate(server, { description })
    const agent = new UserAgent(server.issuer)
    const ended = await expire(agent, pageOf(await ask(server, portal, {}, agent)), alice)
    t.strictSame(linksOf(ended), away(`${starts}&${new URLSearchParams({ iss: server.issuer })}`))
  },
)

t.test('a page that was used already leads back to the app, and does not say that it expired', async (t) => {
  const portal = await integrate(server, {}, { clientUri: home })
  const agent = await signedIn(server, portal)
  const page = pageOf(await ask(server, portal, {}, agent))
  t.ok('code' in sentAway(await agent.submit(page, { decision: 'approve' })))
  const again = pageOf(await agent.submit(page, { decision: 'approve' }))
  t.equal(again.status, 400)
  t.equal(title(again), 'This page was already used, or it has expired')
  t.strictSame(linksOf(again), away(home))
})

t.test(
  'only https and this computer are linked to, and no app that is locked, removed or without a page',
  async (t) => {
    const { store } = server.deps
    const endedOf = async (clientUri: string, after?: (id: string) => Promise<unknown>) => {
      const portal = await integrate(server, {}, clientUri === '' ? {} : { clientUri })
      const agent = new UserAgent(server.issuer)
      const page = pageOf(await ask(server, portal, {}, agent))
      await after?.(portal.id)
      return expire(agent, page, alice)
    }
    const lock = async (id: string) => {
      const client = await store.find('client', id)
      if (client === undefined) throw new Error('no client')
      await store.write(update('client', { ...client, lockedAt: server.now() }))
    }
    for (const uri of ['http://127.0.0.1:7777/', 'http://localhost:7777/', 'http://[::1]:7777/'])
      t.strictSame(linksOf(await endedOf(uri)), away(uri))
    for (const uri of ['http://app.example/', 'javascript:alert(1)', 'myapp://home', '//app.example', '']) {
      const ended = await endedOf(uri)
      t.equal(title(ended), tooLong, uri)
      t.strictSame(linksOf(ended), [], uri)
      t.match(ended.html, 'Go back to the app you came from', uri)
    }
    t.strictSame(linksOf(await endedOf(home, lock)), [])
  },
)

t.test('a sign-in page that was kept as a bookmark leads to the account', async (t) => {
  for (const path of ['/login', '/consent']) {
    const page = pageOf(await new UserAgent(server.issuer).open(`${server.issuer}${path}`))
    t.equal(page.status, 400)
    t.strictSame(linksOf(page), ['class="button" href="/account"'], path)
    t.match(page.html, />Your account<\/a>/, path)
  }
})

t.test('a link of another site does not make the page lead to an app of its choice', async (t) => {
  const app = await integrate(server, {}, { clientUri: home })
  const evil = await integrate(server, {}, { clientUri: 'https://evil.example/' })
  const agent = new UserAgent(server.issuer)
  const url = new URL(pageOf(await ask(server, app, {}, agent)).url)
  const from = url.searchParams.get('from') ?? ''
  const other = new URL(pageOf(await ask(server, app, {}, agent)).url).searchParams.get('from') ?? ''
  const stranger = new UserAgent(server.issuer)
  const strange = new URL(pageOf(await ask(server, evil, {}, stranger)).url)
  server.advance(interactionSeconds)
  const open = async (changed: string | undefined, browser = agent) => {
    const query = new URL(url)
    if (changed === undefined) query.searchParams.delete('from')
    else query.searchParams.set('from', changed)
    return pageOf(await browser.open(query.href))
  }
  t.strictSame(linksOf(await open(from)), away(home), 'its own')
  const forged = {
    'another app': from.replace(app.id, evil.id),
    'another time': from.replace(/\.(\d+)\./, '.1.'),
    'another kind': from.replace('.app.', '.page.'),
    'another request of this browser': other,
    'another browser': strange.searchParams.get('from') ?? '',
    'no MAC': from.slice(from.indexOf('.')),
    nothing: '',
    'no member': undefined,
  }
  for (const [about, each] of Object.entries(forged)) {
    const page = await open(each)
    t.strictSame([page.status, title(page)], [400, 'This page was already used, or it has expired'], about)
    t.strictSame(linksOf(page), [], about)
  }
  t.strictSame(linksOf(pageOf(await agent.open(strange.href))), [], 'a request of another browser')
})

t.test('a sign-in for a page of this server leads to that page, which asks again', async (t) => {
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(`${server.issuer}/account/sessions`))
  const ended = await expire(agent, page, alice)
  t.equal(title(ended), tooLong)
  t.strictSame(linksOf(ended), ['class="button" href="/account/sessions"'])
  t.match(ended.html, 'Show the page again and sign in')
  const again = pageOf(await agent.open(`${server.issuer}/account/sessions`))
  t.match((await agent.submit(again, alice)).at, 'page')
})

t.test('the way back is kept where the sign-in leads to a new password', async (t) => {
  const portal = await integrate(server, {}, { clientUri: home })
  const agent = new UserAgent(server.issuer)
  const { url } = pageOf(await ask(server, portal, {}, agent))
  const forgotten = pageOf(await agent.open(url.replace('/login', '/forgot-password')))
  const [, back = ''] = /href="([^"]*\/login\?[^"]*)"/.exec(forgotten.html) ?? []
  t.equal(new URL(back.replaceAll('&amp;', '&'), url).href, url)
})

t.test('a client whose identifier is very long has no way back, and its request works', async (t) => {
  const pending = { id: 'i', browserHash: 'h', expiresAt: 1, request: { prompt: [], page: '/account' } }
  const before = { ...pending, userChosen: false, createdAt: 0 }
  t.match(handleOf(before), { interaction: 'i', from: /^[\w-]{22}\.page\.1\.\/account$/ })
  t.strictSame(handleOf({ ...before, request: { prompt: [], page: `/${'x'.repeat(1024)}` } }), {
    interaction: 'i',
  })
})

t.test('every language says what happened', async (t) => {
  const app = await register(server, { client_name: 'Zyx', ...homely })
  for (const language of ['en', 'de', 'fr', 'es', 'pt', 'ja', 'ar']) {
    const texts = JSON.parse(readFileSync(`views/texts/${language}.json`, 'utf8')) as Record<string, string>
    const agent = new UserAgent(server.issuer, { 'accept-language': language })
    const ended = await expire(agent, pageOf(await ask(server, app, {}, agent)), alice)
    t.equal(title(ended), texts['error.expired'], language)
    t.match(ended.html, texts['error.expired.advice'], language)
    t.strictSame(linksOf(ended), away(home), language)
  }
})
