import t from 'tap'
import { ask, integrate, pageOf, signedIn } from '../helpers/authorization.ts'
import { register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t)
const client = await register(server)
const portal = await integrate(server, { consent: 'skip' })
const { store } = server.deps
const root = server.issuer

const languageOf = ({ html }: Page) => /<html lang="([\w-]+)"/.exec(html)?.[1]
const localeOf = async () => (await store.find('userByLogin', 'alice'))?.claims['locale']
const changes = async () =>
  (await store.audit({ since: 0, name: 'user-changed', limit: 99 })).map(({ by, facts }) => [by, facts])

async function choose(agent: UserAgent, page: Page, language: string): Promise<Page> {
  return pageOf(await agent.submit(page, { language }, page.languageForm))
}

t.test('each page offers every language by its own name, and the chosen one stays', async (t) => {
  const agent = new UserAgent(root)
  const login = pageOf(await ask(server, client, { ui_locales: 'fr' }, agent))
  t.equal(languageOf(login), 'fr')
  t.strictSame(
    [...login.html.matchAll(/<option value="(\w+)" lang="\w+"(?: selected)?>([^<]+)</g)].map(
      ([, ...one]) => one,
    ),
    [
      ['en', 'English'],
      ['de', 'Deutsch'],
      ['fr', 'Français'],
      ['es', 'Español'],
      ['pt', 'Português'],
      ['ja', '日本語'],
      ['ar', 'العربية'],
    ],
  )
  const german = await choose(agent, login, 'de')
  t.equal(german.url, login.url, 'the same request goes on')
  t.equal(languageOf(german), 'de', 'before ui_locales')
  const cookie = agent.cookie('language')
  t.equal(cookie, 'de')
  const wrong = pageOf(await agent.submit(german, { username: 'alice', password: 'wrong' }))
  t.equal(wrong.status, 400)
  const japanese = await choose(agent, wrong, 'ja')
  t.equal(japanese.url, login.url, 'the page of a rejected form is found again')
  const consent = pageOf(await agent.submit(japanese, alice))
  t.match(consent.url, '/consent')
  t.equal(languageOf(consent), 'ja')
  t.equal(languageOf(await choose(agent, consent, 'ar')), 'ar')
  for (const path of [
    '/device',
    '/forgot-password',
    '/',
    '/account',
    '/account/profile',
    '/oauth/authorize',
    '/nothing',
  ]) {
    const page = pageOf(await agent.open(root + path, { headers: { accept: 'text/html' } }))
    t.equal(languageOf(page), 'ar', path)
    t.ok(page.languageForm, path)
    t.equal((await choose(agent, page, 'ar')).url, root + path, path)
  }
})

t.test('the choice of a user who is signed in is on the profile, too', async (t) => {
  const agent = await signedIn(server, client)
  const account = pageOf(await agent.open(`${root}/account`))
  t.equal(languageOf(await choose(agent, account, 'pt')), 'pt')
  t.equal(await localeOf(), 'pt')
  t.strictSame((await changes()).at(-1), ['user', { changed: 'locale' }])
  const count = (await changes()).length
  const again = pageOf(await agent.open(`${root}/account`))
  await choose(agent, again, 'pt')
  t.equal((await changes()).length, count, 'the same language changes nothing')
})

t.test(
  'the choice on the profile applies where the user signs in, unless that browser has another',
  async (t) => {
    const agent = await signedIn(server, client)
    t.equal(agent.cookie('language'), 'pt')
    const account = pageOf(await agent.open(`${root}/account`, { headers: { 'accept-language': 'ja' } }))
    t.equal(languageOf(account), 'pt')
    const other = new UserAgent(root)
    const login = await choose(other, pageOf(await ask(server, client, {}, other)), 'fr')
    t.equal(languageOf(pageOf(await other.submit(login, alice))), 'fr')
    t.equal(await localeOf(), 'pt')
  },
)

t.test('another site changes no profile, and leads to no other server', async (t) => {
  const agent = await signedIn(server, client)
  const before = await localeOf()
  const send = (fields: Record<string, string>, headers = {}) =>
    agent.send(`${root}/language`, { method: 'POST', body: new URLSearchParams(fields), headers })
  const blind = await send({ language: 'es', to: '/account' })
  t.equal(blind.status, 303)
  t.equal(blind.headers.get('location'), `${root}/account`)
  t.equal(await localeOf(), before, 'a form without the token of this browser')
  const crossSite = await send({ language: 'es', to: '/account' }, { 'sec-fetch-site': 'cross-site' })
  t.equal(crossSite.status, 403)
  t.equal(crossSite.headers.get('set-cookie'), null)
  for (const to of ['https://evil.example/', '//evil.example', '\\\\evil.example', 'javascript:alert(1)', ''])
    t.equal((await send({ language: 'es', to })).headers.get('location'), `${root}/`, to)
  t.equal(
    (await send({ language: 'es', to: '/.//evil.example' })).headers.get('location'),
    `${root}//evil.example`,
  )
  const unknown = await send({ language: 'tlh', to: '/account' })
  t.equal(unknown.headers.get('set-cookie'), null)
  agent.cookies.set([...agent.cookies.keys()].find((name) => name.includes('language')) ?? '', '../x')
  t.equal(languageOf(pageOf(await agent.open(`${root}/account`))), 'en', 'a cookie that names none')
  t.equal(await localeOf(), before)
})

t.test('a page that shows something once, or posts by itself, offers no other language', async (t) => {
  const agent = await signedIn(server, client)
  const sent = pageOf(await ask(server, portal, { response_mode: 'form_post' }, agent))
  t.match(sent.html, 'form-post')
  t.equal(sent.languageForm, undefined)
})
