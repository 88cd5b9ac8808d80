import t from 'tap'
import {
  ask,
  assertErrorRedirect,
  integrate,
  pageOf,
  pick,
  place,
  sentAway,
  signedIn,
} from '../helpers/authorization.ts'
import {
  authorizationUrl,
  authorize,
  claimsOf,
  exchange,
  type Fields,
  obtainCode,
  obtainTokens,
  register,
  responseOf,
  signInAndApprove,
  type TestClient,
} from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t)
const client = await register(server)
const firstParty = await integrate(server, { consent: 'skip', pkce: 'optional' })
const user = await signedIn(server, client)

/** The ID Token of a code. */
async function idTokenOf(who: TestClient, code = ''): Promise<Record<string, unknown>> {
  const tokens = (await (await exchange(server, who, code)).json()) as { id_token: string }
  return claimsOf(tokens.id_token)
}

t.test(
  '[oidc-core-3.1.2.1-get-and-post] a request sent as a form has the same outcome as a query',
  async (t) => {
    const fields: Fields = { state: 's p&c', nonce: 'n', prompt: 'login' }
    const url = new URL(authorizationUrl(server, client, fields))
    const body = url.searchParams
    const open = (init: RequestInit) =>
      new UserAgent(server.issuer).open(`${server.issuer}/oauth/authorize`, init)
    for (const headers of [{}, { 'sec-fetch-site': 'cross-site', origin: 'https://client.example' }])
      t.equal(place(await open({ method: 'POST', body, headers })), '/login')
    // With the session of the browser, as with a GET.
    const silent = new URLSearchParams(
      new URL(authorizationUrl(server, firstParty, { prompt: 'none' })).searchParams,
    )
    const landing = await user.open(`${server.issuer}/oauth/authorize`, { method: 'POST', body: silent })
    t.match(sentAway(landing), { code: /./, state: 'a-state', iss: server.issuer })
    // Cookies that a browser does not send with a cross-site POST come with the GET it is redirected to.
    const bare = await fetch(`${server.issuer}/oauth/authorize`, { method: 'POST', body, redirect: 'manual' })
    t.equal(bare.status, 303)
    const next = new URL(bare.headers.get('location') ?? '', server.issuer)
    t.equal(next.pathname, '/oauth/authorize')
    t.same(Object.fromEntries(next.searchParams), Object.fromEntries(body))
    const faulty = new URLSearchParams({ client_id: client.id, redirect_uri: client.redirectUri, state: 'x' })
    const rejected = await fetch(`${server.issuer}/oauth/authorize`, {
      method: 'POST',
      body: faulty,
      redirect: 'manual',
    })
    assertErrorRedirect(t, server, rejected, 'invalid_request', { state: 'x' })
    const large = new URLSearchParams([...body, ['login_hint', 'x'.repeat(8100)]])
    const landed = await new UserAgent(server.issuer).open(`${server.issuer}/oauth/authorize`, {
      method: 'POST',
      body: large,
    })
    t.equal(place(landed), '/login')
  },
)

t.test('parameters in the query of a POST are not read', async (t) => {
  const response = await fetch(authorizationUrl(server, client), {
    method: 'POST',
    body: new URLSearchParams({ state: 'x' }),
    redirect: 'manual',
  })
  t.equal(response.status, 400)
  t.equal(response.headers.get('location'), null)
})

t.test('[oidc-core-3.1.2.1-no-openid-scope] without openid there is no ID Token', async (t) => {
  const tokens = await obtainTokens(server, client, {
    fields: { scope: 'courses:read', nonce: 'n' },
    agent: user,
  })
  t.match(tokens, { access_token: /./, scope: 'courses:read' })
  t.notOk('id_token' in tokens)
})

t.test('[oidc-core-3.1.2.1-nonce-optional-code] nonce may be omitted', async (t) => {
  const code = await obtainCode(server, client, { fields: { nonce: undefined }, agent: user })
  t.notOk('nonce' in (await idTokenOf(client, code)))
  const with_ = await obtainCode(server, client, { fields: { nonce: 'a n%2Bé"' }, agent: user })
  t.equal((await idTokenOf(client, with_))['nonce'], 'a n%2Bé"')
})

t.test(
  '[oidc-core-3.1.2.1-display-accepted] [oidc-core-3.1.2.1-ui-locales] [oidc-core-3.1.2.1-prompt-unknown] a value that is not supported is not an error',
  async (t) => {
    const rows: readonly (readonly [string, Fields])[] = [
      ['[oidc-core-3.1.2.1-display-accepted]', { display: 'page' }],
      ['[oidc-core-3.1.2.1-display-accepted]', { display: 'popup' }],
      ['[oidc-core-3.1.2.1-display-accepted]', { display: 'touch' }],
      ['[oidc-core-3.1.2.1-display-accepted]', { display: 'wap' }],
      ['[oidc-core-3.1.2.1-display-accepted]', { display: 'foo' }],
      ['[oidc-core-3.1.2.1-ui-locales]', { ui_locales: 'xx yy' }],
      ['[oidc-core-3.1.2.1-ui-locales]', { ui_locales: 'se' }],
      ['[oidc-core-3.1.2.1-ui-locales]', { ui_locales: `"<>${' x'.repeat(500)}` }],
      ['[oidc-core-5.2-claims-locales]', { claims_locales: 'xx' }],
      ['[oidc-core-3.1.2.1-acr-values]', { acr_values: '1 2' }],
      ['[oidc-core-3.1.2.1-prompt-unknown]', { prompt: 'foo' }],
      ['[oidc-core-3.1.2.1-prompt-unknown]', { prompt: 'create foo' }],
    ]
    for (const [clause, fields] of rows) {
      const response = sentAway(await ask(server, firstParty, fields, user))
      t.match(response, { code: /./ }, `${clause} ${JSON.stringify(fields).slice(0, 40)}`)
      t.equal(place(await ask(server, client, fields)), '/login')
    }
  },
)

t.test('[oidc-core-15.1-prompt-display-locales-acr] all of them together end with a code', async (t) => {
  const fields = {
    prompt: 'consent',
    display: 'popup',
    ui_locales: 'fr-CA fr',
    claims_locales: 'fr',
    acr_values: '1 2',
  }
  const code = await obtainCode(server, client, { fields })
  t.equal((await exchange(server, client, code)).status, 200)
})

t.test(
  '[oidc-core-3.1.2.1-prompt-none] [oidc-core-3.1.2.6-login-required] [oidc-core-3.1.2.6-consent-required] prompt=none shows no page: the response is a code or an error',
  async (t) => {
    const nobody = await authorize(server, client, { prompt: 'none' })
    assertErrorRedirect(t, server, nobody, 'login_required')
    t.equal(responseOf(nobody)['error'], 'login_required', '[oidc-core-3.1.2.6-login-required]')
    const unasked = await authorize(server, client, { prompt: 'none' }, user)
    assertErrorRedirect(t, server, unasked, 'consent_required')
    t.equal(responseOf(unasked)['error'], 'consent_required', '[oidc-core-3.1.2.6-consent-required]')
    const remembering = await integrate(server)
    const first = await authorize(server, remembering, { prompt: 'none' }, user)
    assertErrorRedirect(t, server, first, 'consent_required', { to: remembering.redirectUri })
    const silent = await authorize(server, firstParty, { prompt: 'none' }, user)
    t.equal(silent.status, 303, '[oidc-core-3.1.2.1-prompt-none]')
    t.match(responseOf(silent), { code: /./, iss: server.issuer }, '[oidc-core-3.1.2.1-prompt-none]')
    const state = '-._~'.repeat(32)
    t.equal(responseOf(await authorize(server, firstParty, { prompt: 'none', state }))['state'], state)
    const stale = await signedIn(server, client)
    server.advance(10)
    const tooOld = await authorize(server, firstParty, { prompt: 'none', max_age: '5' }, stale)
    t.match(responseOf(tooOld), { error: 'login_required' })
  },
)

t.test('[oidc-core-3.1.2.1-prompt-none-exclusive] prompt=none with another value is rejected', async (t) => {
  for (const prompt of ['none login', 'consent none', 'none foo'])
    assertErrorRedirect(t, server, await authorize(server, client, { prompt }, user), 'invalid_request', {
      message: prompt,
    })
})

t.test(
  '[oidc-core-3.1.2.1-prompt-login] prompt=login asks for the password again, once, and renews auth_time',
  async (t) => {
    const agent = await signedIn(server, client)
    const before = await idTokenOf(
      firstParty,
      sentAway(await ask(server, firstParty, { max_age: '9999' }, agent))['code'],
    )
    server.advance(30)
    const landing = await ask(server, firstParty, { prompt: 'login', max_age: '9999' }, agent)
    t.equal(place(landing), '/login')
    t.match(pageOf(landing).html, 'Confirm that it is you')
    const after = await idTokenOf(firstParty, sentAway(await agent.submit(pageOf(landing), alice))['code'])
    t.equal(after['sub'], before['sub'])
    t.ok(Number(after['auth_time']) >= Number(before['auth_time']) + 30)
  },
)

t.test(
  '[oidc-core-3.1.2.1-prompt-login] the required sign-in cannot be skipped by going to the consent page',
  async (t) => {
    const agent = await signedIn(server, client)
    const landing = await ask(server, client, { prompt: 'login' }, agent)
    const consent = pageOf(landing).url.replace('/login', '/consent')
    t.equal(place(await agent.open(consent)), '/login')
    const posted = await agent.open(consent, {
      method: 'POST',
      body: new URLSearchParams({
        interaction: new URL(consent).searchParams.get('interaction') ?? '',
        decision: 'approve',
      }),
    })
    t.equal(place(posted), '/login')
  },
)

t.test(
  '[oidc-core-3.1.2.1-prompt-consent] prompt=consent asks where consent is remembered or skipped',
  async (t) => {
    const remembering = await integrate(server)
    sentAway(await user.submit(pageOf(await ask(server, remembering, {}, user)), { decision: 'approve' }))
    for (const who of [remembering, firstParty]) {
      t.match(sentAway(await ask(server, who, {}, user)), { code: /./ })
      const landing = await ask(server, who, { prompt: 'consent' }, user)
      t.equal(place(landing), '/consent')
      t.match(sentAway(await user.submit(pageOf(landing), { decision: 'deny' })), {
        error: 'access_denied',
      })
    }
  },
)

t.test(
  '[oidc-core-3.1.2.1-prompt-select-account] prompt=select_account offers the account and another one',
  async (t) => {
    const agent = await signedIn(server, client)
    const fields = { prompt: 'select_account' }
    const chooser = pageOf(await ask(server, firstParty, fields, agent))
    t.match(chooser.html, /Choose an account[\s\S]*alice[\s\S]*Use another account/)
    t.match(sentAway(await agent.submit(chooser, pick(chooser))), { code: /./ })
    const login = pageOf(
      await agent.submit(pageOf(await ask(server, firstParty, fields, agent)), { decision: 'switch' }),
    )
    t.match(login.html, 'name="password"')
    t.match(sentAway(await agent.submit(login, alice)), { code: /./ })
    t.equal(place(await ask(server, firstParty, fields)), '/login', 'no user to choose')
  },
)

t.test(
  '[oidc-core-3.1.2.1-max-age] a session older than max_age must re-authenticate, a younger one need not',
  async (t) => {
    const agent = await signedIn(server, client)
    const first = await idTokenOf(
      firstParty,
      sentAway(await ask(server, firstParty, { max_age: '10000' }, agent))['code'],
    )
    server.advance(2)
    const kept = await idTokenOf(
      firstParty,
      sentAway(await ask(server, firstParty, { max_age: '10000' }, agent))['code'],
    )
    t.type(first['auth_time'], 'number')
    t.equal(kept['auth_time'], first['auth_time'])
    const landing = await ask(server, firstParty, { max_age: '1' }, agent)
    t.equal(place(landing), '/login')
    // The user may take longer than max_age to sign in.
    server.advance(60)
    const renewed = await idTokenOf(firstParty, sentAway(await agent.submit(pageOf(landing), alice))['code'])
    t.ok(Number(renewed['auth_time']) > Number(first['auth_time']))
  },
)

t.test('[oidc-core-3.1.2.1-max-age-zero] max_age=0 means prompt=login', async (t) => {
  const agent = await signedIn(server, client)
  const landing = await ask(server, firstParty, { max_age: '0' }, agent)
  t.equal(place(landing), '/login')
  t.match(sentAway(await agent.submit(pageOf(landing), alice)), { code: /./ })
})

t.test(
  '[oidc-reg-2-default-max-age] default_max_age applies only when the request has no max_age',
  async (t) => {
    const agent = await signedIn(server, client)
    const strict = await register(server, { default_max_age: 1 })
    server.advance(2)
    t.equal(place(await ask(server, strict, {}, agent)), '/login')
    t.equal(place(await ask(server, strict, { max_age: '10000' }, agent)), '/consent')
  },
)

t.test('[oidc-reg-2-require-auth-time] require_auth_time puts auth_time into every ID Token', async (t) => {
  const strict = await register(server, { require_auth_time: true })
  const location = await signInAndApprove(user, await ask(server, strict, {}, user))
  const claims = await idTokenOf(strict, location.searchParams.get('code') ?? '')
  t.type(claims['auth_time'], 'number')
  t.ok(Number(claims['auth_time']) <= Number(claims['iat']))
})

t.test(
  '[oidc-core-5.5-claims-unsupported-ok] [oidc-core-5.5-claims-malformed] the claims parameter is supported, and rejected if it is not JSON of the right form',
  async (t) => {
    for (const claims of [
      '{"userinfo":{"name":null}}',
      '{"userinfo":{"name":{"essential":true}},"id_token":{"acr":{"values":["1"]}}}',
      '{}',
      '{"other":{"x":1}}',
      '{"userinfo":null}',
    ])
      t.match(sentAway(await ask(server, firstParty, { claims }, user)), { code: /./ }, claims)
    for (const claims of [
      '{',
      '[]',
      '"x"',
      '1',
      'null',
      '{"userinfo":[]}',
      '{"id_token":{"sub":"x"}}',
      '{"userinfo":{"name":1}}',
    ]) {
      const response = await authorize(server, client, { claims }, user)
      assertErrorRedirect(t, server, response, 'invalid_request', { message: claims })
    }
    const metadata = await fetch(`${server.issuer}/.well-known/openid-configuration`)
    t.match(await metadata.json(), { claims_parameter_supported: true })
  },
)
