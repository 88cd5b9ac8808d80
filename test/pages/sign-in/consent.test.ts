import t from 'tap'
import { defaultScopeCatalogue } from '../../../src/domain/scope-catalogue.ts'
import {
  ask,
  assertErrorRedirect,
  bodyOf,
  integrate,
  offeredScope,
  pageOf,
  place,
  sentAway,
  signedIn,
  title,
} from '../../helpers/authorization.ts'
import { authorize, exchange, register } from '../../helpers/flow.ts'
import { registrationAt } from '../../helpers/registration.ts'
import { recordOf } from '../../helpers/rejection.ts'
import { bob, startServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'
import { json } from '../../helpers/wire.ts'

const notes = 'https://notes.example/api'
const server = await startServer(t, {
  resources: [
    { identifier: notes, name: 'Notes', scopes: ['courses:read', 'courses:write'], tokenFormat: 'opaque' },
  ],
})
const client = await register(server)
const user = await signedIn(server, client)

const consentPage = async (fields = {}, agent = user, who = client) =>
  pageOf(await ask(server, who, fields, agent))

/** A form posted to the consent page exactly as given, without a browser. */
function forge(page: Page, agent: UserAgent, changes: Record<string, string | undefined>, headers = {}) {
  const body = bodyOf(page, { decision: 'approve' })
  for (const [name, value] of Object.entries(changes))
    if (value === undefined) body.delete(name)
    else body.set(name, value)
  return agent.send(`${server.issuer}/consent`, { method: 'POST', body, headers })
}

t.test(
  '[rfc6749-10.2-consent-information] the page names the client, its redirect host, every scope in words, and for how long',
  async (t) => {
    const named = await register(server, { client_name: 'Zed CLI' })
    const every = defaultScopeCatalogue.map(({ name }) => name)
    const page = await consentPage({ scope: every.join(' ') }, user, named)
    t.equal(title(page), 'Allow Zed CLI to use your account?')
    t.match(page.html, '127.0.0.1:51004')
    for (const { description, name } of defaultScopeCatalogue) t.match(page.html, description, name)
    t.same(offeredScope(page).toSorted(), every.filter((name) => name !== 'openid').toSorted())
    t.match(page.html, 'The app stays connected until you disconnect it, 90 days at most')
    t.match(page.html, '<a href="/account/apps">Your account</a>')
    const brief = await register(server, { grant_types: ['authorization_code'] })
    t.match((await consentPage({}, user, brief)).html, 'The connection ends by itself after a short time')
    const limited = await consentPage({ scope: 'courses:read' })
    t.same(offeredScope(limited), ['courses:read'])
    t.notMatch(limited.html, 'Students')
  },
)

t.test(
  '[oidc-core-11-offline-access-ignored] offline_access is described, granted, and does not affect refresh tokens',
  async (t) => {
    const redeemed = async (fields: Record<string, string>, who = client) => {
      const landing = await user.submit(await consentPage(fields, user, who), { decision: 'approve' })
      return json(await exchange(server, who, sentAway(landing)['code'] ?? ''))
    }
    const page = await consentPage({ scope: 'openid offline_access courses:read' })
    t.match(page.html, 'Stay connected while you are away')
    t.match(page.html, 'Until you disconnect the app')
    t.same(offeredScope(page), ['courses:read'], 'and it is no choice')
    for (const fields of [{}, { prompt: 'consent' }]) {
      const tokens = await redeemed({ scope: 'openid offline_access', ...fields })
      t.match(tokens, { scope: 'openid offline_access', refresh_token: String })
    }
    t.match(await redeemed({ scope: 'openid' }), { scope: 'openid', refresh_token: String })

    // A client that registered a narrower scope, or that cannot refresh.
    const narrow = await register(server, { scope: 'openid' })
    t.match(await redeemed({ scope: 'openid offline_access' }, narrow), { scope: 'openid offline_access' })
    const brief = await register(server, { grant_types: ['authorization_code'] })
    t.notMatch(
      (await consentPage({ scope: 'openid offline_access' }, user, brief)).html,
      'while you are away',
    )
    const { scope, refresh_token: none } = await redeemed({ scope: 'openid offline_access' }, brief)
    t.strictSame([scope, none], ['openid', undefined])
  },
)

t.test(
  '[oidc-core-11-offline-access-ignored] offline_access alone is no scope to request or to approve',
  async (t) => {
    const alone = await authorize(server, client, { scope: 'offline_access' })
    assertErrorRedirect(t, server, alone, 'invalid_scope')
    const page = await consentPage({ scope: 'courses:read offline_access' })
    const landing = await user.submit(page, { decision: 'approve', scope: [] })
    t.equal(sentAway(landing)['error'], 'access_denied')
  },
)

t.test(
  '[oidc-core-11-offline-access-ignored] an operator can describe offline_access in their own words',
  async (t) => {
    const openid = { name: 'openid', group: 'You', access: 'identity' as const, description: 'Know you' }
    const words = { ...openid, name: 'offline_access', description: 'Work at night' }
    const own = await startServer(t, { scopes: [openid, words] })
    const metadata = await json(await fetch(`${own.issuer}/.well-known/openid-configuration`))
    t.strictSame(metadata['scopes_supported'], ['openid', 'offline_access', 'groups'])
    const app = await register(own)
    const visitor = await signedIn(own, app)
    const page = pageOf(await ask(own, app, { scope: 'openid offline_access' }, visitor))
    t.match(page.html, 'Work at night')
    const fewer = await startServer(t, { scopes: [openid] })
    const listed = await json(await fetch(`${fewer.issuer}/.well-known/openid-configuration`))
    t.strictSame(listed['scopes_supported'], ['openid', 'groups', 'offline_access'])
  },
)

t.test(
  '[rfc7591-5-self-asserted] the page of a self-registered client states that it is unverified; that of one added by an operator does not',
  async (t) => {
    const page = await consentPage()
    t.match(page.html, 'This app named itself.')
    t.match(
      page.html,
      /registered automatically \d+ \w+ ago by a program on this computer and nobody has checked who made it/,
    )
    t.match(page.html, /sent back to <bdi class="host">127\.0\.0\.1:51004<\/bdi>, a program on this computer/)
    const portal = await consentPage({}, user, await integrate(server))
    t.notMatch(portal.html, /named itself|nobody has checked/)
    t.match(portal.html, /sent back to <bdi class="host">portal\.example<\/bdi>\./)
  },
)

t.test(
  'the network a client registered from is shown only where it is known: loopback means a proxy to a public service',
  async (t) => {
    const behind = await startServer(t, { issuer: 'https://id.example' })
    const silent = await register(behind)
    const silentPage = pageOf(await ask(behind, silent, {}, await signedIn(behind, silent)))
    t.match(silentPage.html, /registered automatically \d+ \w+ ago and nobody has checked who made it/)
    const told = await startServer(t, { issuer: 'https://id.example', trustProxy: ['127.0.0.1', '::1'] })
    const { client_id: id } = (await (
      await fetch(`${told.issuer}/api/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9:51004' },
        body: JSON.stringify({ redirect_uris: [client.redirectUri] }),
      })
    ).json()) as { client_id: string }
    const known = { ...client, id }
    const page = pageOf(await ask(told, known, {}, await signedIn(told, known)))
    t.match(
      page.html,
      /automatically \d+ \w+ ago from the network <bdi class="host">203\.0\.113\.0\/24<\/bdi> as/,
    )
  },
)

t.test('consent covers what the page showed: a client that changed in between is shown again', async (t) => {
  const { register: enrol, configure } = registrationAt(server.issuer)
  const base = { redirect_uris: [client.redirectUri], client_name: 'Honest' }
  const registered = await enrol({ ...base })
  const id = String(registered['client_id'])
  const changes = [
    { client_name: 'Bank' },
    { 'client_name#en': 'Bank' },
    { policy_uri: 'https://evil.example/' },
    { redirect_uris: [client.redirectUri, 'http://127.0.0.1/other'] },
    { grant_types: ['authorization_code'] },
  ]
  for (const change of changes) {
    await configure(registered, 'PUT', { client_id: id, ...base })
    const page = await consentPage({}, user, { ...client, id })
    t.notMatch(page.html, 'has changed its details')
    t.equal((await configure(registered, 'PUT', { client_id: id, ...base, ...change })).status, 200)
    const again = await user.submit(page, { decision: 'approve' })
    if (again.at !== 'page') throw new Error(`agreed to ${JSON.stringify(change)}: ${again.location}`)
    t.equal(again.page.status, 200)
    t.match(again.page.html, 'This app has changed its details.', Object.keys(change).join())
    const sent = await user.submit(again.page, { decision: 'approve' })
    t.match(sent, { at: 'redirect', location: /[?&]code=/ }, 'what is shown now can be agreed to')
  }
  const page = await consentPage({}, user, { ...client, id })
  await configure(registered, 'PUT', { client_id: id, ...base, client_name: 'Bank' })
  t.match(await user.submit(page, { decision: 'deny' }), { location: /[?&]error=access_denied/ })
})

t.test('a redirect URI that the client removed in between gets no response', async (t) => {
  const { register: enrol, configure } = registrationAt(server.issuer)
  const registered = await enrol({ redirect_uris: [client.redirectUri] })
  const id = String(registered['client_id'])
  const page = await consentPage({}, user, { ...client, id })
  const moved = { client_id: id, redirect_uris: ['http://127.0.0.1/other'] }
  t.equal((await configure(registered, 'PUT', moved)).status, 200)
  for (const decision of ['approve', 'deny']) {
    const response = await forge(page, user, { decision })
    t.equal(response.status, 400)
    t.equal(response.headers.get('location'), null)
    t.match(await recordOf(server, response), { why: /^redirect_uri is not registered/ })
  }
})

t.test(
  'links of the client are shown with their host and pass no referrer; its logo is not fetched',
  async (t) => {
    const linked = await register(server, {
      client_uri: 'https://client.example/',
      policy_uri: 'https://client.example/privacy',
      tos_uri: 'https://terms.example/tos',
      logo_uri: 'https://client.example/logo.png',
    })
    const { html } = await consentPage({}, user, linked)
    for (const url of [
      'https://client.example/',
      'https://client.example/privacy',
      'https://terms.example/tos',
    ])
      t.match(html, new RegExp(`<a href="${url}" rel="noopener noreferrer nofollow">`))
    t.match(html, 'terms.example</bdi>')
    t.notMatch(html, 'logo.png')
  },
)

t.test(
  '[rfc6749-10.14-sanitise] [service-2-reg-client-name] text from a client is shown as text and breaks nothing',
  async (t) => {
    const hostile = '<script>alert(1)</script>"\'&amp;'
    const named = await register(server, { client_name: hostile })
    const fields = {
      state: `"><script>alert(2)</script>\r\nX-Injected: 1`,
      nonce: '<script>',
      login_hint: hostile,
    }
    const login = pageOf(await ask(server, named, fields))
    const consent = await consentPage(fields, user, named)
    const unproven = await authorize(server, named, {
      redirect_uri: 'http://x/<script>alert(3)</script>',
      client_id: named.id,
    })
    const scoped = await authorize(server, named, { scope: '<script>alert(4)</script>' }, user)
    t.match(scoped.headers.get('location'), /[?&]error=invalid_scope&/)
    t.notMatch(decodeURIComponent(scoped.headers.get('location') ?? ''), /<|alert/)
    const pages = [login, consent, { html: await unproven.text(), headers: unproven.headers }]
    for (const { html, headers } of pages) {
      t.notMatch(html, /<script(?! src="\/assets\/)/)
      t.equal(headers.get('x-injected'), null)
    }
    t.match(consent.html, '&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;amp;')
    const response = await forge(consent, user, {})
    t.equal(response.headers.get('x-injected'), null)
    t.match(response.headers.get('location'), 'state=%22%3E%3Cscript%3E')
  },
)

t.test(
  '[rfc6749-10.12-csrf-approval] a forged decision grants nothing, and the page still works',
  async (t) => {
    const page = await consentPage()
    const { csrf = '' } = Object.fromEntries(bodyOf(page))
    const other = Object.fromEntries(bodyOf(await consentPage()))['csrf'] ?? ''
    const stranger = await signedIn(server, client, bob)
    const rejections = [
      [await forge(page, user, { csrf: undefined }), 403],
      [await forge(page, user, { csrf: '' }), 403],
      [await forge(page, user, { csrf: 'wrong' }), 403],
      [await forge(page, user, { csrf: csrf.slice(0, -1) }), 403],
      [await forge(page, user, { csrf: other }), 403],
      [await forge(page, user, { interaction: undefined }), 400],
      [await forge(page, stranger, {}), 400],
      [await forge(page, new UserAgent(server.issuer), {}), 400],
      [await forge(page, user, {}, { 'sec-fetch-site': 'cross-site' }), 403],
      [await forge(page, user, {}, { 'sec-fetch-site': 'same-site' }), 403],
    ] as const
    for (const [response, status] of rejections) {
      t.equal(response.status, status)
      t.equal(response.headers.get('location'), null)
      t.match(response.headers.get('content-type'), 'text/html')
    }
    const responded = await forge(page, user, {}, { 'sec-fetch-site': 'same-origin' })
    t.match(responded.headers.get('location'), 'code=')
  },
)

t.test('[rfc6749-10.12-csrf-approval] a forged sign-in signs no user in', async (t) => {
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await ask(server, client, {}, agent))
  const post = (csrf: string | undefined, headers = {}) => {
    const body = bodyOf(page)
    body.set('username', 'alice')
    body.set('password', 'alice-in-tests')
    if (csrf !== undefined) body.set('csrf', csrf)
    return agent.send(`${server.issuer}/login`, { method: 'POST', body, headers })
  }
  for (const response of [
    await post(''),
    await post('x'),
    await post(undefined, { 'sec-fetch-site': 'cross-site' }),
  ]) {
    t.equal(response.status, 403)
    t.equal(agent.cookie('session'), undefined)
  }
  t.equal((await post(undefined)).status, 303)
})

t.test('[rfc6749-10.12-csrf-approval] a page shown to alice cannot be submitted as bob', async (t) => {
  const agent = await signedIn(server, client)
  const shownToAlice = await consentPage({}, agent)
  const login = pageOf(await agent.open(shownToAlice.url.replace('/consent', '/login').concat('&switch=1')))
  const shownToBob = pageOf(await agent.submit(login, bob))
  const responded = pageOf(await agent.submit(shownToAlice, { decision: 'approve' }))
  t.equal(responded.status, 403)
  t.match(title(responded), 'out of date')
  t.match(responded.html, `href="/consent?interaction=${bodyOf(shownToAlice).get('interaction')}&amp;from=`)
  t.match(sentAway(await agent.submit(shownToBob, { decision: 'approve' })), { code: /./ })
})

t.test('a consent page is invalid in another browser, and once it was submitted', async (t) => {
  const page = await consentPage()
  const stranger = await signedIn(server, client)
  for (const landing of [await stranger.open(page.url), await stranger.submit(page, { decision: 'approve' })])
    t.match(title(pageOf(landing)), 'already used, or it has expired')
  t.match(sentAway(await user.submit(page, { decision: 'approve' })), { code: /./ })
  for (const landing of [
    await user.open(page.url),
    await user.submit(page, { decision: 'approve' }),
    await user.submit(page, { decision: 'deny' }),
  ]) {
    t.equal(pageOf(landing).status, 400)
    t.match(title(pageOf(landing)), 'already used, or it has expired')
  }
})

t.test('consent for an added app is remembered: only new scopes and resources ask again', async (t) => {
  const portal = await integrate(server)
  const silent = (scope: string, resource?: string) =>
    authorize(server, portal, { scope, prompt: 'none', resource }, user)
  assertErrorRedirect(t, server, await silent('openid courses:read'), 'consent_required', {
    to: portal.redirectUri,
  })
  const first = await consentPage({ scope: 'openid courses:read' }, user, portal)
  const { code = '' } = sentAway(await user.submit(first, { decision: 'approve' }))
  t.equal((await exchange(server, portal, code)).status, 200)
  t.match(sentAway(await ask(server, portal, { scope: 'courses:read openid' }, user)), { code: /./ })
  t.match((await silent('openid')).headers.get('location'), 'code=')

  assertErrorRedirect(t, server, await silent('openid courses:write'), 'consent_required', {
    to: portal.redirectUri,
  })
  const more = await consentPage({ scope: 'openid courses:write' }, user, portal)
  t.strictSame(offeredScope(more), ['courses:write'], 'what was allowed before is not asked again')
  const grown = sentAway(await user.submit(more, { decision: 'approve' }))
  t.equal((await json(await exchange(server, portal, grown['code'] ?? '')))['scope'], 'openid courses:write')
  t.match(
    (await silent('openid courses:read courses:write')).headers.get('location'),
    'code=',
    'consent grows',
  )

  assertErrorRedirect(t, server, await silent('courses:read', notes), 'consent_required', {
    to: portal.redirectUri,
  })
  const elsewhere = await consentPage({ scope: 'courses:read', resource: notes }, user, portal)
  t.match(elsewhere.html, /Notes[\s\S]*notes\.example/)
  sentAway(await user.submit(elsewhere, { decision: 'approve' }))
  t.match((await silent('courses:read', notes)).headers.get('location'), 'code=')
  assertErrorRedirect(t, server, await silent('courses:write', notes), 'consent_required', {
    to: portal.redirectUri,
  })

  const another = await signedIn(server, client, bob)
  t.equal(place(await ask(server, portal, {}, another)), '/consent', 'another user is asked')
  t.equal(
    place(await ask(server, await integrate(server), {}, user)),
    '/consent',
    'another client is asked about',
  )
})

t.test('what the user unticked or denied is not remembered, even if it was allowed before', async (t) => {
  const portal = await integrate(server)
  const fields = { scope: 'openid courses:read courses:write' }
  sentAway(await user.submit(await consentPage(fields, user, portal), { decision: 'deny' }))
  t.equal(place(await ask(server, portal, fields, user)), '/consent')
  sentAway(await user.submit(await consentPage(fields, user, portal), { decision: 'approve' }))
  t.match(sentAway(await ask(server, portal, fields, user)), { code: /./ })
  const again = await consentPage({ ...fields, prompt: 'consent' }, user, portal)
  const { code = '' } = sentAway(await user.submit(again, { decision: 'approve', scope: ['courses:read'] }))
  t.equal((await json(await exchange(server, portal, code)))['scope'], 'openid courses:read')
  t.equal(place(await ask(server, portal, fields, user)), '/consent')
  t.match(sentAway(await ask(server, portal, { scope: 'openid courses:read' }, user)), { code: /./ })
})

t.test('Only read unticks every scope that writes', async (t) => {
  const page = await consentPage({ scope: 'openid courses:read courses:write pages:write' })
  const link = /href="([^"]*only=read)"/.exec(page.html)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const reading = pageOf(await user.open(new URL(link, server.issuer).href))
  const { code = '' } = sentAway(await user.submit(reading, { decision: 'approve' }))
  t.equal((await json(await exchange(server, client, code)))['scope'], 'openid courses:read')
})
