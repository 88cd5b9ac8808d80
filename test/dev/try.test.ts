/** The start page and the try-it client, in a browser without script. */
import t from 'tap'
import type { Flow } from '../../src/dev/flows/flow.ts'
import { signInAndApprove } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t, { mode: 'dev' })

function pageOf(landing: Landing): Page {
  if (landing.at === 'page') return landing.page
  throw new Error(`sent to ${landing.location}`)
}

/** A run, started for alice. */
async function begin(agent: UserAgent, issuer = server.issuer): Promise<Page> {
  const body = new URLSearchParams({ user: alice.username })
  return pageOf(await agent.open(`${issuer}/_dev/try`, { method: 'POST', body }))
}

/** Presses the button of this step, or with `rest` of this and the following ones. */
async function take(agent: UserAgent, page: Page, step: string, rest = false): Promise<Page> {
  const body = new URLSearchParams({ step, ...(rest && { rest: '1' }) })
  return pageOf(await agent.open(page.url.replace(/#.*/, ''), { method: 'POST', body }))
}

const linkOf = (page: Page) =>
  /<a class="button primary" href="([^"]+)"/.exec(page.html)?.[1]?.replaceAll('&amp;', '&') ?? ''
/** The text of each step, by its identifier. */
const saidOf = (page: Page) =>
  Object.fromEntries(
    [...page.html.matchAll(/id="happened-([\w-]+)"[^>]*>\s*<summary>([^<]*)/g)].map(([, id, said]) => [
      id,
      said,
    ]),
  )
const stateOf = (page: Page, step: string) =>
  new RegExp(`id="${step}" class="runstep" data-state="(\\w+)"`).exec(page.html)?.[1]

interface Way {
  readonly issuer?: string
  /** Changes the query of the callback. */
  readonly change?: (query: URLSearchParams) => void
}

/** Runs all steps before the callback. */
async function comeBack(agent: UserAgent, { issuer, change }: Way = {}) {
  const ready = await take(agent, await begin(agent, issuer), 'discover', true)
  const callback = await signInAndApprove(agent, await agent.open(linkOf(ready)))
  change?.(callback.searchParams)
  return pageOf(
    await new UserAgent(callback.origin)
      .open(callback.href)
      .then((landing) => (landing.at === 'redirect' ? agent.open(landing.location.href) : landing)),
  )
}

t.test('the start page shows the issuer, its endpoints, its users and where to continue', async (t) => {
  const { html } = pageOf(await new UserAgent(server.issuer).open(`${server.issuer}/`))
  for (const text of [
    ...[
      server.issuer,
      '/oauth/authorize',
      '/api/oauth/token',
      '/api/oauth/revoke',
      '/.well-known/openid-configuration',
    ],
    ...[
      '>alice<',
      '/_dev/try"',
      '/_dev/flows"',
      '/_dev/clock',
      '/_dev/faults"',
      '/_dev/issuers"',
      '/_dev/snapshots"',
    ],
  ])
    t.ok(html.includes(text), text)
  t.notOk(html.includes(alice.password), 'a password that was set is nobody else’s')
})

t.test('the client runs every step without script, and the server agrees with what it shows', async (t) => {
  const agent = new UserAgent(server.issuer)
  const ready = await take(agent, await begin(agent), 'discover', true)
  const link = new URL(linkOf(ready))
  t.equal(link.origin + link.pathname, `${server.issuer}/oauth/authorize`)
  const { redirect_uri: redirectUri = '', login_hint: hint } = Object.fromEntries(link.searchParams)
  t.equal(redirectUri, `http://127.0.0.1:${new URL(server.issuer).port}/_dev/try/callback`)
  t.equal(hint, alice.username)
  const back = await comeBack(agent)
  t.equal(new URL(back.url).origin, server.origin)
  const done = await take(agent, back, 'exchange', true)
  const said = saidOf(done)
  t.strictSame(Object.keys(said), [
    ...['discover', 'register', 'prepare', 'authorize', 'exchange', 'identify', 'userinfo', 'call'],
    ...['introspect', 'refresh', 'revoke', 'call-again'],
  ])
  t.equal(said['call'], '200, as expected.')
  t.equal(said['call-again'], '401, as expected.')
  t.match(done.html, 'The run is complete')
  t.match(done.html, /rfc6750-3\.1-invalid-token-401/, 'why, from the server itself')
  t.match(done.html, /its grant was revoked at \d{4}-\d\d-\d\d/)
  t.notMatch(done.html, 'class="badge bad"', 'every check holds')

  const [, flowId] = /\/_dev\/flows\/(f\d+)"/.exec(done.html) ?? []
  const flow = (await (await fetch(`${server.issuer}/_dev/flows/${flowId}.json`)).json()) as Flow
  t.strictSame(
    flow.exchanges.map(({ step }) => step),
    [
      ...['discovery', 'registration', 'authorization', 'sign-in', 'sign-in', 'consent', 'consent'],
      ...[
        'code exchange',
        'keys',
        'UserInfo',
        'API call',
        'introspection',
        'refresh',
        'revocation',
        'API call',
      ],
    ],
  )
})

t.test('the computation of PKCE can be repeated by hand', async (t) => {
  const agent = new UserAgent(server.issuer)
  const { html } = await take(agent, await begin(agent), 'discover', true)
  const shown = Object.fromEntries(
    [...html.matchAll(/<dt><code>([\w-]+)<\/code><\/dt><dd><code>([^<]+)<\/code>/g)].map(
      ([, name, value]) => [name, value],
    ),
  )
  const { code_verifier: verifier = '', 'SHA-256': digest = '', code_challenge: challenge } = shown
  const bytes = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(verifier)))
  t.equal(bytes.toString('hex'), digest)
  t.equal(bytes.toString('base64url'), challenge)
})

t.test('each request can be sent again from a terminal', async (t) => {
  const agent = new UserAgent(server.issuer)
  const { html } = await take(agent, await begin(agent), 'discover', true)
  const [, curl = ''] = /<pre id="curl-register-0"[^>]*>([^<]*)/.exec(html) ?? []
  t.equal(
    curl
      .replaceAll('&#39;', "'")
      .replaceAll('&quot;', '"')
      .replaceAll(/\\\n\s*/g, ''),
    `curl -s '${server.issuer}/api/oauth/register' -H 'content-type: application/json' --data-raw '${JSON.stringify(
      {
        ...{ client_name: 'Lychgate try-it', application_type: 'native' },
        redirect_uris: [`http://127.0.0.1:${new URL(server.issuer).port}/_dev/try/callback`],
        token_endpoint_auth_method: 'none',
      },
    )}'`,
  )
})

t.test(
  'the client stops at a response with another issuer or state, and does not use the code',
  async (t) => {
    const agent = new UserAgent(server.issuer)
    const foreign = await comeBack(agent, {
      change: (query) => query.set('iss', 'https://evil.example'),
    })
    t.equal(stateOf(foreign, 'authorize'), 'failed')
    t.equal(saidOf(foreign)['authorize'], 'This response must not be used.')
    t.equal(stateOf(await take(agent, foreign, 'exchange'), 'exchange'), 'later')

    const unknown = await fetch(`${server.issuer}/_dev/try/callback?code=x&state=of-nobody`)
    t.equal(unknown.status, 400)
  },
)

t.test('a misbehaving issuer is detected, and a correct one is not', async (t) => {
  const list = await (await fetch(`${server.issuer}/_dev/try`)).text()
  for (const [id, step, said] of [
    ['iss-wrong', 'authorize', 'This response must not be used.'],
    ['id-token-wrong-nonce', 'identify', 'This ID Token must not be used.'],
    ['reference', 'call-again', '401, as expected.'],
  ] as const) {
    t.ok(list.includes(`href="/_dev/issuers/${id}/_dev/try"`))
    const agent = new UserAgent(server.issuer)
    const back = await comeBack(agent, { issuer: `${server.issuer}/_dev/issuers/${id}` })
    const page = await take(agent, back, 'exchange', true)
    t.equal(saidOf(page)[step], said, id)
    t.equal(stateOf(page, step), id === 'reference' ? 'done' : 'failed')
  }
})

t.test('a denied request is shown as the client sees it', async (t) => {
  const agent = new UserAgent(server.issuer)
  const ready = await take(agent, await begin(agent), 'discover', true)
  let page = pageOf(await agent.open(linkOf(ready)))
  if (page.html.includes('name="password"')) page = pageOf(await agent.submit(page, alice))
  const rejected = await agent.submit(page, { decision: 'deny' })
  if (rejected.at !== 'redirect') throw new Error('no redirect')
  const landing = await new UserAgent(rejected.location.origin).open(rejected.location.href)
  if (landing.at !== 'redirect') throw new Error('no redirect')
  const shown = pageOf(await agent.open(landing.location.href))
  t.match(saidOf(shown)['authorize'], /^access_denied/)
  t.match(linkOf(shown), '/oauth/authorize?', 'it can be tried again')
})

t.test('a step can be done wrong, to see the error, and then right', async (t) => {
  const agent = new UserAgent(server.issuer)
  const vary = async (page: Page, step: string, variant: string) => {
    const body = new URLSearchParams({ step, variant })
    const shown = pageOf(await agent.open(page.url.replace(/#.*/, ''), { method: 'POST', body }))
    const [, said = 'nothing', rest = ''] =
      shown.html.match(
        new RegExp(`id="happened-${step}\\.${variant}"[^>]*>\\s*<summary>([^<]*)([\\s\\S]*)`),
      ) ?? []
    return {
      said,
      rule: /<p class="ruling"><span><b>Rejected<[\s\S]*?<code>([\w.-]+)<\/code><\/span>/.exec(rest)?.[1],
    }
  }
  const back = await comeBack(agent)
  t.strictSame(await vary(back, 'refresh', 'used'), { said: 'nothing', rule: undefined }, 'not yet')
  t.strictSame(await vary(back, 'exchange', 'other-verifier'), {
    said: 'Rejected. The code is still valid.',
    rule: 'rfc7636-4.6-mismatch-invalid-grant',
  })
  const called = await take(agent, back, 'exchange', true)
  t.equal(stateOf(called, 'exchange'), 'done')

  const other = await comeBack(agent)
  let page = other
  for (const step of ['exchange', 'identify', 'userinfo', 'call']) page = await take(agent, page, step)
  t.equal((await vary(page, 'call', 'anonymous')).said, 'Served as anonymous.')
  t.strictSame(await vary(page, 'call', 'beyond-scope'), {
    said: 'Rejected: the token may only read.',
    rule: 'rfc6750-3.1-insufficient-scope-403',
  })
  for (const step of ['introspect', 'refresh']) page = await take(agent, page, step)
  t.match((await vary(page, 'refresh', 'used')).said, 'a retry after a lost response')
  server.advance(server.deps.config.lifetimes.refreshReuseSeconds)
  t.strictSame(await vary(page, 'refresh', 'used'), {
    said: 'It was used twice and may have been stolen, so the whole grant is revoked.',
    rule: 'rfc9700-4.14.2-reuse-revokes-family',
  })
})

t.test('no step can be taken before those it depends on', async (t) => {
  const agent = new UserAgent(server.issuer)
  const page = await take(agent, await begin(agent), 'revoke')
  t.strictSame(saidOf(page), {})
  t.equal(stateOf(page, 'discover'), 'now')
  const gone = await agent.open(`${server.issuer}/_dev/try/nothing`)
  t.equal(gone.at === 'page' && gone.page.status, 404)
})

t.test('a lost response is shown as lost, and the step can be repeated', async (t) => {
  const agent = new UserAgent(server.issuer)
  const page = await begin(agent)
  const order = { endpoint: 'registration', requests: 1, fault: 'reset-before' }
  const headers = { 'content-type': 'application/json' }
  await fetch(`${server.issuer}/_dev/faults`, { method: 'POST', headers, body: JSON.stringify(order) })
  const failed = await take(agent, page, 'discover', true)
  t.equal(stateOf(failed, 'register'), 'failed')
  t.match(failed.html, 'no response')
  t.equal(stateOf(await take(agent, failed, 'register'), 'register'), 'done')
})
