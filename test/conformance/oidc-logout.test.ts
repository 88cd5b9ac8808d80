import t from 'tap'
import { ask, bodyOf, integrate, pageOf, place, sentAway, signedIn, title } from '../helpers/authorization.ts'
import { exchange, type Fields, register } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { type Landing, UserAgent } from '../helpers/user-agent.ts'

const goodbye = 'https://portal.example/goodbye'
const server = await startServer(t)
const client = await register(server, {
  post_logout_redirect_uris: ['http://127.0.0.1:51004/bye'],
  client_name: 'Zed CLI',
})
const portal = await integrate(
  server,
  { consent: 'skip', postLogoutRedirectUris: [goodbye, `${goodbye}?from=here`] },
  { clientUri: 'https://portal.example/' },
)
const hintOf = async (user = alice) => {
  const agent = await signedIn(server, client, user)
  const { code = '' } = sentAway(await ask(server, portal, {}, agent))
  return ((await (await exchange(server, portal, code)).json()) as { id_token: string }).id_token
}
const [hint, bobsHint] = [await hintOf(), await hintOf(bob)]

type Method = 'GET' | 'POST'

function signOut(agent: UserAgent, fields: Fields = {}, method: Method = 'GET'): Promise<Landing> {
  const url = `${server.issuer}/oauth/logout`
  const body = new URLSearchParams(
    Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)]),
  )
  return method === 'GET' ? agent.open(`${url}?${body}`) : agent.open(url, { method, body })
}

/** Whether a user is signed in in this browser. */
async function isSignedIn(agent: UserAgent): Promise<boolean> {
  return 'code' in sentAway(await ask(server, portal, { prompt: 'none' }, agent))
}

t.test(
  '[oidc-rpl-2-ask-user] [oidc-rpl-2-logout-on-yes] [oidc-rpl-2-get-and-post] [oidc-rpl-6-csrf] without a hint the user is asked, and only yes ends the session',
  async (t) => {
    for (const method of ['GET', 'POST'] as const) {
      const agent = await signedIn(server, client)
      const page = pageOf(await signOut(agent, {}, method))
      t.equal(title(page), 'Sign out of Lychgate?')
      t.match(page.html, 'alice')
      t.equal(await isSignedIn(agent), true)
      t.equal(place(await agent.submit(page, { decision: 'stay' })), '/')
      t.equal(await isSignedIn(agent), true)
      const session = agent.cookie('session') ?? ''
      const done = pageOf(await agent.submit(page, { decision: 'logout' }))
      t.equal(title(done), 'You are signed out')
      t.equal(agent.cookie('session'), undefined)
      agent.setCookie('session', session)
      t.equal(await isSignedIn(agent), false, 'the session is dead, not only its cookie')
    }
  },
)

t.test(
  '[oidc-rpl-6-csrf] neither an image on a page of another site nor a forged confirmation ends a session',
  async (t) => {
    const agent = await signedIn(server, client)
    const page = pageOf(await signOut(agent))
    const other = pageOf(await signOut(await signedIn(server, client)))
    const picture = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }
    await agent.send(`${server.issuer}/oauth/logout`, { headers: picture })
    t.equal(await isSignedIn(agent), true)
    const tokens = [undefined, '', 'x', bodyOf(other).get('csrf') ?? '']
    for (const csrf of tokens) {
      const fields = { decision: 'logout', ...(csrf !== undefined && { csrf }) }
      t.match(title(pageOf(await signOut(agent, fields, 'POST'))), 'Sign out of')
    }
    const right = { decision: 'logout', csrf: bodyOf(page).get('csrf') ?? '' }
    t.match(title(pageOf(await signOut(agent, right))), 'Sign out of', 'not by GET')
    t.equal(await isSignedIn(agent), true)
  },
)

t.test(
  '[oidc-rpl-2-ask-user-normally] [oidc-rpl-2-state-returned] with an ID Token of the signed-in user the session ends at once, and the browser returns to the client',
  async (t) => {
    for (const method of ['GET', 'POST'] as const) {
      for (const [uri, state, expected] of [
        [goodbye, 'x y&z', `${goodbye}?state=x+y%26z`],
        [goodbye, undefined, goodbye],
        [`${goodbye}?from=here`, 's', `${goodbye}?from=here&state=s`],
      ] as const) {
        const agent = await signedIn(server, client)
        const fields = {
          id_token_hint: hint,
          post_logout_redirect_uri: uri,
          ...(state !== undefined && { state }),
        }
        const landing = await signOut(agent, fields, method)
        t.equal(landing.at === 'redirect' && landing.location.href, expected)
        t.match(landing, { status: 303 })
        t.equal(await isSignedIn(agent), false)
      }
    }
    const agent = await signedIn(server, client)
    const stays = pageOf(await signOut(agent, { id_token_hint: hint, state: 'lost', ui_locales: 'xx' }))
    t.equal(title(stays), 'You are signed out')
    t.match(stays.html, 'Portal')
    t.match(stays.html, '<a class="button" href="/account">Sign in again</a>')
    const link =
      '<a class="button" href="https://portal.example/" rel="noopener noreferrer">Go back to <bdi>Portal</bdi></a>'
    t.match(stays.html, link)
    t.match(stays.headers.get('content-security-policy'), "script-src 'none';")
    const named = await signedIn(server, client)
    const question = pageOf(await signOut(named, { client_id: portal.id }))
    const unproven = pageOf(await named.submit(question, { decision: 'logout' }))
    t.equal(title(unproven), 'You are signed out')
    t.match(unproven.html, '<a class="button" href="/account">Sign in again</a>')
    t.notMatch(unproven.html, 'https://portal.example/', 'a client_id proves no app')
  },
)

t.test(
  '[oidc-rpl-2-ask-user] with an ID Token of another user the user is asked, and yes returns to the client',
  async (t) => {
    const agent = await signedIn(server, client)
    const fields = { id_token_hint: bobsHint, post_logout_redirect_uri: goodbye, state: 's' }
    const page = pageOf(await signOut(agent, fields))
    t.equal(title(page), 'Sign out of Lychgate?')
    t.match(page.html, 'Portal')
    t.equal(await isSignedIn(agent), true)
    // Browsers apply form-action to every redirect after the form, those of the client too.
    t.notMatch(page.headers.get('content-security-policy'), 'form-action')
    const landing = await agent.submit(page, { decision: 'logout' })
    t.equal(landing.at === 'redirect' && landing.location.href, `${goodbye}?state=s`)
    t.equal(await isSignedIn(agent), false)
  },
)

t.test(
  '[oidc-rpl-3-registered-redirect] [oidc-rpl-3-no-hint-no-redirect] [oidc-rpl-2-client-id-match] [oidc-rpl-4-errors-stay] what is not valid costs the redirect, and never the sign-out',
  async (t) => {
    const [header = '', claims = '', signature = ''] = hint.split('.')
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const forged = `${header}.${claims}.${signature.slice(0, -4)}AAAA`
    const unsigned = `${encode({ alg: 'none' })}.${claims}.`
    const rows: Readonly<Record<string, readonly Fields[]>> = {
      // The ID Token is the user's: nothing is asked.
      'oidc-rpl-3-registered-redirect': [
        { id_token_hint: hint, post_logout_redirect_uri: `${goodbye}/more` },
        { id_token_hint: hint, post_logout_redirect_uri: `${goodbye}?x=1` },
        { id_token_hint: hint, post_logout_redirect_uri: 'https://evil.example/' },
        { id_token_hint: hint, post_logout_redirect_uri: portal.redirectUri },
      ],
      'oidc-rpl-3-no-hint-no-redirect': [
        { post_logout_redirect_uri: goodbye },
        { post_logout_redirect_uri: goodbye, client_id: 'nobody' },
      ],
      'oidc-rpl-2-client-id-match': [
        { id_token_hint: hint, client_id: client.id, post_logout_redirect_uri: goodbye },
        { id_token_hint: hint, client_id: client.id },
      ],
      'oidc-rpl-2-hint-validated': [
        { id_token_hint: forged, post_logout_redirect_uri: goodbye },
        { id_token_hint: unsigned, post_logout_redirect_uri: goodbye },
        { id_token_hint: 'garbage' },
      ],
    }
    for (const [rule, requests] of Object.entries(rows)) {
      for (const fields of requests) {
        for (const method of ['GET', 'POST'] as const) {
          const about = `${rule} ${method} ${JSON.stringify(fields)}`
          const agent = await signedIn(server, client)
          let page = pageOf(await signOut(agent, fields, method))
          t.equal(page.status, 200, about)
          t.ok(page.headers.get('x-request-id'), `${about} is found by lychgate explain`)
          t.match(server.log.at(-1), rule)
          if (rule !== 'oidc-rpl-3-registered-redirect') {
            t.equal(title(page), 'Sign out of Lychgate?', about)
            t.match(page.headers.get('content-security-policy'), "form-action 'self';", 'it leads nowhere')
            t.equal(await isSignedIn(agent), true, `${about} ends no session before the user agrees`)
            page = pageOf(await agent.submit(page, { decision: 'logout' }))
          }
          t.equal(title(page), 'You are signed out', about)
          t.notMatch(page.html, /evil|http-equiv|<script/)
          t.equal(await isSignedIn(agent), false, about)
        }
      }
    }
    const agent = await signedIn(server, client)
    const twice = await agent.send(
      `${server.issuer}/oauth/logout?id_token_hint=${hint}&id_token_hint=${hint}`,
    )
    t.equal(twice.status, 400)
    t.equal(await isSignedIn(agent), true)
  },
)

t.test(
  '[oidc-rpl-3-no-hint-no-redirect] [oidc-rpl-2-ask-user] with client_id and a registered URI the user is asked, and then redirected',
  async (t) => {
    const fields = { client_id: portal.id, post_logout_redirect_uri: goodbye, state: 's' }
    for (const request of [fields, { ...fields, id_token_hint: 'no longer known' }]) {
      for (const method of ['GET', 'POST'] as const) {
        const agent = await signedIn(server, client)
        const page = pageOf(await signOut(agent, request, method))
        t.equal(page.status, 200)
        t.equal(title(page), 'Sign out of Lychgate?')
        t.match(page.html, /Portal<.*asks to end your session/)
        t.equal(await isSignedIn(agent), true)
        t.equal(place(await agent.submit(page, { decision: 'stay' })), '/')
        t.equal(await isSignedIn(agent), true)
        const landing = await agent.submit(page, { decision: 'logout' })
        t.equal(landing.at === 'redirect' && landing.location.href, `${goodbye}?state=s`)
        t.equal(await isSignedIn(agent), false)
      }
    }
  },
)

t.test(
  '[oidc-rpl-3-no-hint-no-redirect] without a session and an ID Token, the user continues to the client by a button',
  async (t) => {
    const agent = new UserAgent(server.issuer)
    const fields = { client_id: portal.id, post_logout_redirect_uri: goodbye, state: 's' }
    const page = pageOf(await signOut(agent, fields))
    t.equal(title(page), 'No user is signed in')
    const foreign = await agent.submit(page, { decision: 'logout', csrf: 'made up' })
    t.equal(title(pageOf(foreign)), 'No user is signed in', 'only by the button of this browser')
    const landing = await agent.submit(page, { decision: 'logout' })
    t.equal(landing.at === 'redirect' && landing.location.href, `${goodbye}?state=s`)
  },
)

t.test('[oidc-rpl-6-csrf] a form of another site that has no cookie ends no session', async (t) => {
  const agent = await signedIn(server, client)
  const body = new URLSearchParams({ decision: 'logout', csrf: 'made up' })
  // SameSite=Lax cookies are not sent on a cross-site POST.
  const response = await fetch(`${server.issuer}/oauth/logout`, { method: 'POST', body, redirect: 'manual' })
  t.equal(response.status, 303)
  t.strictSame(response.headers.getSetCookie(), [], 'and no cookie is cleared')
  t.equal(await isSignedIn(agent), true)
})

t.test('[oidc-rpl-4-idempotent] signing out without a session is not an error', async (t) => {
  const agent = new UserAgent(server.issuer)
  t.equal(title(pageOf(await signOut(agent))), 'You are signed out')
  const landing = await signOut(agent, { id_token_hint: hint, post_logout_redirect_uri: goodbye, state: 's' })
  t.equal(landing.at === 'redirect' && landing.location.href, `${goodbye}?state=s`)
})

t.test('a loopback client is redirected to any port it listens on', async (t) => {
  const agent = await signedIn(server, client)
  const page = pageOf(await ask(server, client, {}, agent))
  const { code = '' } = sentAway(await agent.submit(page, { decision: 'approve' }))
  const { id_token: own } = (await (await exchange(server, client, code)).json()) as { id_token: string }
  const fields = { id_token_hint: own, post_logout_redirect_uri: 'http://127.0.0.1:7000/bye' }
  const landing = await signOut(agent, fields)
  t.equal(landing.at === 'redirect' && landing.location.href, 'http://127.0.0.1:7000/bye')
})

t.test('[oidc-rpl-2-hint-validated] an expired ID Token is accepted as the hint', async (t) => {
  server.advance(4000)
  const agent = await signedIn(server, client)
  const landing = await signOut(agent, { id_token_hint: hint, post_logout_redirect_uri: goodbye })
  t.equal(landing.at === 'redirect' && landing.location.href, goodbye)
  t.equal(await isSignedIn(agent), false)
})
