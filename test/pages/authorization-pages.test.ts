import t from 'tap'
import { ask, bodyOf, integrate, pageOf, pick, signedIn } from '../helpers/authorization.ts'
import { authorizationUrl, authorize, type Fields, register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t)
const client = await register(server)
const portal = await integrate(server)
const v6 = await register(server, { redirect_uris: ['http://[::1]/cb'] })
const registeredLinks = {
  client_uri: 'https://client.example/',
  policy_uri: 'https://client.example/privacy',
  tos_uri: 'https://terms.example/tos',
}
const linked = await register(server, { ...registeredLinks, logo_uri: 'https://client.example/logo.png' })
const user = await signedIn(server, client)

/** Every page a user can reach, each with its form-action: none while a request of a client is pending. */
async function everyPage(): Promise<Readonly<Record<string, readonly [Page, string | undefined]>>> {
  const own = "'self'"
  const leading = undefined
  const open = async (fields: Fields, agent?: UserAgent, who = client) =>
    pageOf(await ask(server, who, fields, agent))
  const agent = new UserAgent(server.issuer)
  const login = await open({}, agent)
  const failed = pageOf(await agent.submit(login, { username: 'alice', password: 'wrong' }))
  return {
    login: [login, leading],
    'failed sign-in': [failed, leading],
    'sign-in for an app added by an operator': [await open({}, undefined, portal), leading],
    'sign-in for an IPv6 port': [
      await open({ redirect_uri: 'http://[::1]:7000/cb' }, undefined, v6),
      leading,
    ],
    consent: [await open({}, user), leading],
    'consent on another port': [
      await open({ redirect_uri: 'http://127.0.0.1:7777/callback' }, user),
      leading,
    ],
    'consent for a client with links': [await open({}, user, linked), leading],
    'account choice': [await open({ prompt: 'select_account' }, user), leading],
    form_post: [await open({ response_mode: 'form_post', prompt: 'none' }), leading],
    error: [await open({ client_id: 'nobody' }), own],
    'error of a pending request': [pageOf(await agent.submit(login, { csrf: 'of another page' })), own],
    'sign-in for a page of ours': [
      pageOf(await new UserAgent(server.issuer).open(`${server.issuer}/account`)),
      own,
    ],
    account: [pageOf(await user.open(`${server.issuer}/account/profile`)), own],
    device: [pageOf(await user.open(`${server.issuer}/device`)), own],
    'used page': [pageOf(await user.open(`${server.issuer}/consent?interaction=gone`)), own],
    'sign-out': [pageOf(await user.open(`${server.issuer}/oauth/logout`)), own],
    home: [pageOf(await user.open(`${server.issuer}/`)), own],
    'nothing there': [
      pageOf(await user.open(`${server.issuer}/nowhere`, { headers: { accept: 'text/html' } })),
      own,
    ],
  }
}

const pages = await everyPage()
const responses = [
  await authorize(server, client),
  await authorize(server, client, { scope: 'nonsense' }),
  await authorize(server, client, { client_id: 'nobody' }),
]

t.test(
  '[rfc6749-10.13-frame-protection] [rfc9700-4.16-csp] no page can be framed, and its form leads to this server, or wherever the client of a pending request redirects on',
  async (t) => {
    for (const [name, [page, sources]] of Object.entries(pages)) {
      t.equal(page.headers.get('x-frame-options'), 'DENY', name)
      const policy = new Map(
        (page.headers.get('content-security-policy') ?? '').split('; ').map((directive): [string, string] => {
          const [key = '', ...values] = directive.split(' ')
          return [key, values.join(' ')]
        }),
      )
      t.same(
        Object.fromEntries(policy),
        {
          'default-src': "'none'",
          'script-src': /^form_post|login|sign-in/.test(name) ? "'self'" : "'none'",
          'style-src': "'self'",
          'img-src': "'self'",
          ...(sources !== undefined && { 'form-action': sources }),
          'frame-ancestors': "'none'",
          'base-uri': "'none'",
        },
        name,
      )
    }
  },
)

t.test(
  '[rfc9700-4.2.4-referrer-policy] no page and no redirect is cached or sends a referrer to another server',
  async (t) => {
    const named = Object.entries(pages).map(([name, [page]]) => [name, page.headers] as const)
    for (const [name, headers] of [
      ...named,
      ...responses.map(({ headers, status }) => [String(status), headers] as const),
    ]) {
      t.equal(headers.get('referrer-policy'), 'no-referrer', name)
      t.equal(headers.get('cache-control'), 'no-store', name)
      t.equal(headers.get('x-content-type-options'), 'nosniff', name)
    }
  },
)

t.test(
  '[rfc9700-4.2.4-no-third-party-content] [rfc7591-5-display-uri-origin] pages load nothing from elsewhere, not even a logo, and link only to what the client registered',
  async (t) => {
    for (const [name, [page]] of Object.entries(pages)) {
      const named = [...page.html.matchAll(/<(\w+)\b[^>]*\s(?:src|href)="([^"]*)"[^>]*>/g)]
      t.ok(named.length > 0, name)
      const foreign = named.filter(([, , url = '']) => new URL(url, server.issuer).origin !== server.origin)
      t.strictSame(
        foreign.map(([, tag, url]) => [tag, url]),
        name === 'consent for a client with links'
          ? Object.values(registeredLinks).map((url) => ['a', url])
          : [],
        name,
      )
      for (const [link] of foreign) t.match(link, ' rel="noopener noreferrer nofollow"', name)
      t.notMatch(page.html, /logo\.png|<img/, name)
      t.notMatch(page.html, /<(iframe|object|embed|base|style)\b|\sstyle=|\son\w+=|url\(/, name)
      for (const [, url = ''] of page.html.matchAll(/<(?:link|script)[^>]*\s(?:src|href)="([^"]*)"/g))
        t.equal((await fetch(server.issuer + url)).status, 200, url)
    }
  },
)

t.test(
  '[rfc9700-2.6-no-cors-authorize] no other origin may read the authorization endpoint or the pages',
  async (t) => {
    const origin = { origin: 'https://elsewhere.example' }
    const asking = {
      ...origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type',
    }
    const url = authorizationUrl(server, client)
    const paths = [
      url,
      `${server.issuer}/oauth/authorize`,
      `${server.issuer}/login`,
      `${server.issuer}/consent`,
      `${server.issuer}/oauth/logout`,
    ]
    for (const each of paths) {
      for (const init of [
        { headers: origin },
        { method: 'OPTIONS', headers: asking },
        { method: 'POST', headers: origin, body: new URLSearchParams({ a: 'b' }) },
      ]) {
        const response = await fetch(each, { ...init, redirect: 'manual' })
        for (const name of response.headers.keys())
          t.notMatch(name, /^access-control-/, `${init.method ?? 'GET'} ${each}`)
        if (init.method === 'OPTIONS') t.equal(response.status, 405)
      }
    }
  },
)

t.test(
  '[rfc9700-4.12-no-307] after a form the browser fetches with GET: 303 after sign-in, consent, choice and denial',
  async (t) => {
    const post = (agent: UserAgent, page: Page, added: Record<string, string>) => {
      const body = bodyOf(page)
      for (const [name, value] of Object.entries(added)) body.set(name, value)
      return agent.send(new URL(page.forms[0]?.action ?? '', page.url).href, { method: 'POST', body })
    }
    const agent = new UserAgent(server.issuer)
    const signIn = await post(agent, pageOf(await ask(server, client, {}, agent)), alice)
    t.equal(signIn.status, 303)
    t.match(signIn.headers.get('location'), /^\/consent\?interaction=[\w-]+&from=[\w.-]+$/)
    for (const decision of ['approve', 'deny']) {
      const responded = await post(agent, pageOf(await ask(server, client, {}, agent)), { decision })
      t.equal(responded.status, 303)
      t.match(responded.headers.get('location'), 'http://127.0.0.1:51004/callback?')
    }
    const choice = pageOf(await ask(server, client, { prompt: 'select_account' }, agent))
    t.equal((await post(agent, choice, { decision: 'switch' })).status, 303)
    t.equal((await post(agent, choice, pick(choice))).status, 303)
    const body = new URLSearchParams(new URL(authorizationUrl(server, client)).searchParams)
    t.equal((await agent.send(`${server.issuer}/oauth/authorize`, { method: 'POST', body })).status, 303)
    body.set('scope', 'nonsense')
    t.equal((await agent.send(`${server.issuer}/oauth/authorize`, { method: 'POST', body })).status, 303)
    const out = pageOf(await agent.open(`${server.issuer}/oauth/logout`))
    t.equal((await post(agent, out, { decision: 'stay' })).status, 303)
  },
)

t.test('methods other than GET and POST are rejected, and Allow names the supported ones', async (t) => {
  for (const method of ['PUT', 'DELETE', 'PATCH']) {
    const response = await fetch(authorizationUrl(server, client), { method })
    t.equal(response.status, 405)
    t.equal(response.headers.get('allow'), 'GET, HEAD, POST')
  }
})
