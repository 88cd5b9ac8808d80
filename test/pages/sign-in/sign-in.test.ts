import { availableParallelism } from 'node:os'
import t from 'tap'
import { insert } from '../../../src/domain/decision.ts'
import { cookieName } from '../../../src/http/cookies.ts'
import { systemRandom } from '../../../src/system/system.ts'
import { hashPassword } from '../../../src/users/passwords.ts'
import { changePassword, createUser } from '../../../src/users/rules/user.ts'
import {
  ask,
  bodyOf,
  integrate,
  pageOf,
  place,
  sentAway,
  signedIn,
  title,
} from '../../helpers/authorization.ts'
import { claimsOf, exchange, register } from '../../helpers/flow.ts'
import { alice, bob, startServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'

const server = await startServer(t)
const client = await register(server)
const firstParty = await integrate(server, { consent: 'skip' })

async function loginPage(agent = new UserAgent(server.issuer)): Promise<{ agent: UserAgent; page: Page }> {
  return { agent, page: pageOf(await ask(server, firstParty, {}, agent)) }
}

function interactionOf(page: Page): string {
  return new URL(page.url).searchParams.get('interaction') ?? ''
}

t.test(
  'a wrong password shows an error, keeps the name and the pending request, and starts no session',
  async (t) => {
    const { agent, page } = await loginPage()
    const failed = pageOf(await agent.submit(page, { username: 'Alice', password: 'wrong' }))
    t.equal(failed.status, 400)
    t.match(failed.html, 'The user name or the password is wrong')
    t.equal(failed.forms[0]?.fields.find(({ name }) => name === 'username')?.value, 'Alice')
    t.notMatch(failed.html, 'value="wrong"')
    t.equal(agent.cookie('session'), undefined)
    t.match(sentAway(await agent.submit(failed, alice)), { code: /./, state: 'a-state' })
  },
)

t.test('an unknown user name looks like a wrong password', async (t) => {
  const shown = async (username: string) => {
    const { agent, page } = await loginPage()
    const failed = pageOf(await agent.submit(page, { username, password: 'wrong' }))
    const { csrf = '', interaction = '', from = '' } = Object.fromEntries(bodyOf(failed))
    const challenge = /&quot;challenge&quot;:&quot;([\w-]{43})&quot;/.exec(failed.html)?.[1] ?? ''
    const ofLanguage = failed.languageForm?.fields.find(({ name }) => name === 'csrf')?.value ?? ''
    const fresh = [csrf, ofLanguage, from, interaction, username, challenge].filter((each) => each !== '')
    const html = fresh.reduce((text, each) => text.replaceAll(each, '…'), failed.html)
    return {
      html,
      status: failed.status,
      cookies: [...agent.cookies.keys()],
      headers: [...failed.headers.keys()],
    }
  }
  const wrong = await shown('alice')
  for (const name of ['nobody', 'nobody@nowhere.example']) t.same(await shown(name), wrong)
  // A user with only passkeys looks the same.
  const { store, random } = server.deps
  await store.write(insert('user', createUser({ username: 'zoe-of-tests' }, random(16), server.now())))
  t.same(await shown('zoe-of-tests'), wrong)
  for (const name of ['', ' ', 'x'.repeat(300), 'a\u200bb', "' or 1=1 --"]) {
    const { agent, page } = await loginPage()
    t.equal(
      pageOf(await agent.submit(page, { username: name, password: 'wrong' })).status,
      400,
      name.slice(0, 9),
    )
  }
})

t.test('users sign in with their email address, in any case', async (t) => {
  for (const username of ['alice@example.test', 'ALICE', ' Alice@Example.TEST ']) {
    const { agent, page } = await loginPage()
    t.match(sentAway(await agent.submit(page, { ...alice, username })), { code: /./ }, username)
  }
})

t.test('a password must match exactly as typed', async (t) => {
  for (const password of [
    ` ${alice.password}`,
    `${alice.password} `,
    alice.password.toUpperCase(),
    '',
    'x'.repeat(4000),
  ]) {
    const { agent, page } = await loginPage()
    t.equal(pageOf(await agent.submit(page, { username: 'alice', password })).status, 400)
  }
})

t.test('every sign-in makes a new session, and the old one is invalid', async (t) => {
  const { agent, page } = await loginPage()
  agent.setCookie('session', `lyc_session_${'A'.repeat(43)}`)
  await agent.submit(page, alice)
  const first = agent.cookie('session') ?? ''
  t.match(first, /^lyc_[a-z]+_[\w-]{43}$/)
  t.not(first, `lyc_session_${'A'.repeat(43)}`, 'a planted session is not taken over')
  const again = pageOf(await ask(server, firstParty, { prompt: 'login' }, agent))
  await agent.submit(again, alice)
  const second = agent.cookie('session') ?? ''
  t.not(second, first)
  const alive = async (session: string) => {
    const browser = new UserAgent(server.issuer)
    browser.setCookie('session', session)
    return 'code' in sentAway(await ask(server, firstParty, { prompt: 'none' }, browser))
  }
  t.equal(await alive(second), true)
  t.equal(await alive(first), false)
  t.equal(await alive(second.slice(0, -2)), false)
})

t.test(
  'a user who must re-authenticate finds their name filled in, and can switch to another user',
  async (t) => {
    const agent = await signedIn(server, firstParty)
    const again = pageOf(await ask(server, firstParty, { prompt: 'login' }, agent))
    t.match(again.forms[0]?.fields, [
      { name: 'interaction' },
      { name: 'from' },
      { name: 'csrf' },
      { name: 'username', value: 'alice' },
    ])
    const hinted = pageOf(await ask(server, firstParty, { prompt: 'login', login_hint: 'bob' }, agent))
    t.equal(
      hinted.forms[0]?.fields.find(({ name }) => name === 'username')?.value,
      'bob',
      'the hint of the client wins',
    )
    t.match(sentAway(await agent.submit(again, bob)), { code: /./ })
    const { page } = await loginPage()
    t.equal(
      page.forms[0]?.fields.find(({ name }) => name === 'username')?.value,
      '',
      'a stranger finds nothing',
    )
  },
)

t.test('cookies are HttpOnly, SameSite=Lax, for the whole site, and contain only handles', async (t) => {
  for (const [at, name, secure] of [
    [server, /^lychgate_[a-z]+_[\w-]{10}=/, false],
    [await startServer(t, { issuer: 'https://id.example' }), /^__Host-lychgate_[a-z]+_[\w-]{10}=/, true],
  ] as const) {
    const own = await register(at)
    const agent = new UserAgent(at.issuer)
    const set: string[] = []
    const send = agent.send.bind(agent)
    agent.send = async (url, init) => {
      const response = await send(url, init)
      set.push(...response.headers.getSetCookie())
      return response
    }
    await agent.submit(pageOf(await ask(at, own, {}, agent)), alice)
    t.same(
      [...agent.cookies.keys()].sort(),
      (['browser', 'device', 'session'] as const).map((kind) => cookieName(at.deps.config.issuer, kind)),
    )
    for (const cookie of set) {
      t.match(cookie, name)
      t.match(cookie, /; Path=\/(;|$)/)
      t.match(cookie, '; HttpOnly')
      t.match(cookie, '; SameSite=Lax')
      t.equal(/; Secure/.test(cookie), secure)
      t.notMatch(cookie, /Domain=|alice/i)
    }
  }
})

t.test('a sign-in page is invalid in another browser', async (t) => {
  const { agent, page } = await loginPage()
  const stranger = new UserAgent(server.issuer)
  const without = pageOf(await stranger.open(page.url))
  t.equal(without.status, 400)
  t.match(title(without), 'did not send our cookie')
  await ask(server, client, {}, stranger)
  for (const landing of [await stranger.open(page.url), await stranger.submit(page, alice)]) {
    t.equal(pageOf(landing).status, 400)
    t.match(title(pageOf(landing)), 'already used, or it has expired')
  }
  t.equal(stranger.cookie('session'), undefined)
  t.match(sentAway(await agent.submit(page, alice)), { code: /./ }, 'it still works where it belongs')
})

t.test('a used sign-in page shows that it was used, in a second tab and after going back', async (t) => {
  const { agent, page } = await loginPage()
  const [tab, other] = [page, pageOf(await agent.open(page.url))]
  t.match(sentAway(await agent.submit(tab, alice)), { code: /./ })
  for (const landing of [await agent.open(page.url), await agent.submit(other, alice)]) {
    t.equal(pageOf(landing).status, 400)
    t.match(title(pageOf(landing)), 'already used, or it has expired')
    t.match(pageOf(landing).html, 'Go back to the app you came from')
  }
})

t.test('two requests in two tabs of one browser both complete', async (t) => {
  const agent = new UserAgent(server.issuer)
  const [one, two] = [
    pageOf(await ask(server, firstParty, { state: 'one' }, agent)),
    pageOf(await ask(server, firstParty, { state: 'two' }, agent)),
  ]
  t.match(sentAway(await agent.submit(two, alice)), { code: /./, state: 'two' })
  t.match(sentAway(await agent.open(one.url)), { code: /./, state: 'one' })
})

t.test('a pending request expires', async (t) => {
  const { agent, page } = await loginPage()
  server.advance(1780)
  t.equal(place(await agent.open(page.url)), '/login')
  server.advance(20)
  for (const landing of [await agent.open(page.url), await agent.submit(page, alice)]) {
    t.equal(pageOf(landing).status, 400)
    t.match(title(pageOf(landing)), 'open for too long')
  }
  t.equal(agent.cookie('session'), undefined)
})

t.test('a sign-in under way when the password changes is rejected', async (t) => {
  const own = await startServer(t)
  const portal = await integrate(own, { consent: 'skip' })
  const open = async (agent: UserAgent) => ({ agent, page: pageOf(await ask(own, portal, {}, agent)) })
  const others = await Promise.all(
    Array.from({ length: 2 * availableParallelism() }, () => open(new UserAgent(own.issuer))),
  )
  const { agent, page } = await open(new UserAgent(own.issuer))
  const { store } = own.deps
  const passwordHash = await hashPassword('another password', systemRandom)
  const user = await store.find('userByLogin', 'alice')
  if (user === undefined) throw new Error('alice is there')
  // Few passwords are checked at a time: hers waits behind these, after her old hash was read.
  const crowd = others.map((other, index) =>
    other.agent.submit(other.page, { username: `nobody${index}`, password: 'wrong' }),
  )
  const { find } = store
  const read = Promise.withResolvers<void>()
  const observed = async (...parameters: unknown[]) => {
    const found = await Reflect.apply(find, store, parameters)
    if (parameters[0] === 'userByLogin' && parameters[1] === 'alice') read.resolve()
    return found
  }
  t.teardown(() => Object.assign(store, { find }))
  Object.assign(store, { find: observed })
  const late = agent.submit(page, alice)
  await read.promise
  await store.transact('user', user.id, () =>
    changePassword(user, passwordHash, { by: 'operator', at: own.now() }),
  )
  t.equal(pageOf(await late).status, 400)
  await Promise.all(crowd)
  t.equal(agent.cookie('session'), undefined)
  t.equal(place(await agent.open(page.url)), '/login')
  t.ok('code' in sentAway(await agent.submit(page, { username: 'alice', password: 'another password' })))
})

t.test('Switch on the consent page signs another user in, and the code is theirs', async (t) => {
  const agent = await signedIn(server, client)
  const consent = pageOf(await ask(server, client, {}, agent))
  const link = /href="([^"]*switch=1[^"]*)"/.exec(consent.html)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const login = pageOf(await agent.open(new URL(link, server.issuer).href))
  t.notMatch(login.html, 'Confirm that it is you')
  const asBob = pageOf(await agent.submit(login, bob))
  t.match(asBob.html, '<bdi>bob</bdi>')
  t.notMatch(asBob.html, 'alice')
  const { code = '' } = sentAway(await agent.submit(asBob, { decision: 'approve' }))
  const tokens = (await (await exchange(server, client, code)).json()) as { id_token: string }
  t.equal(claimsOf(tokens.id_token)['sub'], (await server.deps.store.find('userByLogin', 'bob'))?.id)
})

t.test(
  '[rfc6749-10.15-no-open-redirector] no parameter of the pages redirects away from the server',
  async (t) => {
    const { agent, page } = await loginPage()
    const evil = 'https://evil.example/'
    for (const name of [
      'return_to',
      'continue',
      'redirect',
      'redirect_uri',
      'next',
      'url',
      'post_logout_redirect_uri',
      'ReturnUrl',
    ]) {
      for (const value of [evil, '//evil.example/']) {
        for (const path of ['/login', '/consent', '/oauth/logout', '/']) {
          const query = new URLSearchParams({ interaction: interactionOf(page), [name]: value })
          const response = await agent.send(`${server.issuer}${path}?${query}`)
          t.notMatch(response.headers.get('location') ?? '', 'evil', `${path} ${name}`)
          t.notMatch(await response.text(), `href="${value}`)
        }
      }
    }
    const landing = await agent.submit(page, { ...alice, redirect_uri: evil, return_to: evil })
    t.equal(landing.at === 'redirect' && landing.location.host, 'portal.example')
  },
)
