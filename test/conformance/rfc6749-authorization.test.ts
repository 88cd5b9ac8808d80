import t from 'tap'
import {
  ask,
  assertErrorRedirect,
  bodyOf,
  callback,
  integrate,
  pageOf,
  place,
  sentAway,
  signedIn,
  title,
} from '../helpers/authorization.ts'
import {
  authorizationUrl,
  authorize,
  exchange,
  type Fields,
  obtainCode,
  obtainTokens,
  register,
  signInAndApprove,
  type TestClient,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t)
const client = await register(server)
const user = await signedIn(server, client)
/** A client that never asks, so that a signed-in browser is redirected at once. */
const firstParty = await integrate(server, { consent: 'skip' })

/** The scope of the tokens at the end of a flow. */
async function granted(fields: Fields, who: TestClient = client): Promise<readonly string[]> {
  const { scope } = await obtainTokens(server, who, { fields, agent: user })
  return scope.split(' ').sort()
}

t.test(
  '[service-4-authorize-path] [rfc6749-3.1-get-supported] [rfc6749-3.1-owner-authenticated-first] a GET by an unknown browser leads to the sign-in page and never to a code',
  async (t) => {
    const landing = await ask(server, client)
    t.equal(place(landing), '/login', '[rfc6749-3.1-owner-authenticated-first]')
    t.equal(pageOf(landing).status, 200, '[rfc6749-3.1-get-supported]')
    t.match(pageOf(landing).headers.get('content-type'), /^text\/html/, '[service-4-authorize-path]')
    t.match(title(pageOf(landing)), 'Sign in')
    // Also at a client that skips consent.
    t.equal(place(await ask(server, firstParty)), '/login', '[rfc6749-3.1-owner-authenticated-first]')
  },
)

t.test(
  '[service-5-approval-required] a signed-in user is asked, and only the decision makes a code',
  async (t) => {
    const landing = await ask(server, client, {}, user)
    t.equal(place(landing), '/consent')
    t.equal(pageOf(landing).status, 200)
    t.notMatch(pageOf(landing).html, /lyc_|code=/)
    t.match(sentAway(await user.submit(pageOf(landing), { decision: 'approve' })), { code: /./ })
  },
)

t.test(
  '[service-4-authorize-redirect-params] [rfc6749-4.1.2-code-in-query] consent redirects with code, state and iss in the query and nothing else',
  async (t) => {
    const page = pageOf(await ask(server, client, { state: 'xyz' }, user))
    const landing = await user.submit(page, { decision: 'approve' })
    const { code = '', ...rest } = sentAway(landing)
    t.same(rest, { state: 'xyz', iss: server.issuer }, '[service-4-authorize-redirect-params]')
    t.match(code, /^[\w-]{22,}$/, '[rfc6749-4.1.2-code-in-query]')
    t.match(landing, { status: 303 })
    t.equal(landing.at === 'redirect' && landing.location.hash, '', '[rfc6749-4.1.2-code-in-query] only')
    t.equal((await exchange(server, client, code)).status, 200)
  },
)

t.test(
  '[rfc6749-4.1.2.1-access-denied] [service-5-approval-required] deny redirects with access_denied, and the page cannot be submitted again',
  async (t) => {
    const page = pageOf(await ask(server, client, {}, user))
    const { error_description: description, ...rest } = sentAway(
      await user.submit(page, { decision: 'deny' }),
    )
    t.same(rest, { error: 'access_denied', state: 'a-state', iss: server.issuer })
    t.equal(typeof description, 'string')
    const again = await user.submit(page, { decision: 'approve' })
    t.match(title(pageOf(again)), 'already used')
  },
)

t.test(
  '[service-4-authorize-scope-list] [rfc6749-3.3-scope-order-irrelevant] a scope is a set: encoded as + or %20, in any order, repeated',
  async (t) => {
    const wanted = ['courses:read', 'openid', 'profile']
    for (const scope of [
      'openid profile courses:read',
      'courses:read profile openid profile',
      ' openid  profile courses:read ',
    ])
      t.same(await granted({ scope }), wanted, `[rfc6749-3.3-scope-order-irrelevant] ${scope}`)
    const spaced = authorizationUrl(server, client, { scope: 'openid profile courses:read' }).replaceAll(
      '+',
      '%20',
    )
    t.match(spaced, 'openid%20profile%20courses')
    const location = await signInAndApprove(user, await user.open(spaced))
    const response = await exchange(server, client, location.searchParams.get('code') ?? '')
    const { scope } = (await response.json()) as { scope: string }
    t.same(scope.split(' ').sort(), wanted, '[service-4-authorize-scope-list] with %20')
  },
)

t.test(
  '[rfc6749-4.1.2.1-invalid-scope] [rfc6749-3.3-scope-case-sensitive] [rfc6749-3.3-scope-syntax] [oidc-core-14-space-delimiter] a scope that is unknown, in another case or malformed is invalid_scope',
  async (t) => {
    const wrong: Readonly<Record<string, readonly string[]>> = {
      '[rfc6749-4.1.2.1-invalid-scope]': ['courses:delete', 'openid courses:delete'],
      '[rfc6749-3.3-scope-case-sensitive]': ['Courses:Read', 'OPENID'],
      '[rfc6749-3.3-scope-syntax]': ['openid "profile"', 'openid\\profile', 'openid,profile', '   '],
      '[oidc-core-14-space-delimiter]': ['openid\tprofile', 'openid\nprofile', 'openid\u00a0profile'],
    }
    for (const [clause, scopes] of Object.entries(wrong)) {
      for (const scope of scopes) {
        const response = await authorize(server, client, { scope }, user)
        const message = `${clause} ${JSON.stringify(scope)}`
        assertErrorRedirect(t, server, response, 'invalid_scope', { message })
      }
    }
  },
)

t.test('[service-5-scope-asymmetry] scopes that are not in the table do not exist', async (t) => {
  for (const name of ['analytics:write', 'orders:write', 'comments:write', 'forms:write', 'storage:read']) {
    const response = await authorize(server, client, { scope: `openid ${name}` }, user)
    assertErrorRedirect(t, server, response, 'invalid_scope', { message: name })
  }
  for (const name of ['analytics:read', 'orders:read', 'comments:read', 'forms:read', 'storage:write'])
    t.equal(place(await ask(server, client, { scope: name }, user)), '/consent', name)
})

t.test(
  '[rfc6749-3.3-scope-omitted] an omitted scope is openid profile email, without those the client may not have',
  async (t) => {
    const whole = ['email', 'openid', 'profile']
    t.same(await granted({ scope: undefined }), whole)
    const limited = await register(server, { scope: 'profile courses:read' })
    t.same(await granted({ scope: undefined }, limited), ['profile'])
    const nothingLeft = await register(server, { scope: 'courses:read' })
    assertErrorRedirect(
      t,
      server,
      await authorize(server, nothingLeft, { scope: undefined }),
      'invalid_scope',
    )
  },
)

t.test('[rfc6749-3.1-empty-as-omitted] a parameter without a value counts as omitted', async (t) => {
  t.same(await granted({ scope: '' }), ['email', 'openid', 'profile'])
  const page = pageOf(
    await ask(
      server,
      client,
      { state: '', prompt: '', max_age: '', claims: '', resource: '', response_mode: '', nonce: '' },
      user,
    ),
  )
  const response = sentAway(await user.submit(page, { decision: 'approve' }))
  t.same(Object.keys(response).sort(), ['code', 'iss'])
  const unproven = await authorize(server, client, { code_challenge: '' })
  t.match(assertErrorRedirect(t, server, unproven, 'invalid_request'), 'code_challenge is missing')
})

t.test('[rfc6749-3.1-ignore-unknown] unknown parameters change nothing', async (t) => {
  const fields = { foo: 'bar', utm: '1', 'x[y]': '{}' }
  t.same(await granted(fields), ['openid'])
  const page = pageOf(await ask(server, client, fields, user))
  const response = sentAway(await user.submit(page, { decision: 'approve' }))
  t.same(Object.keys(response).sort(), ['code', 'iss', 'state'])
})

t.test(
  '[rfc6749-3.1.2-redirect-query-retained] [rfc6749-3.1-no-duplicate-response-params] the query of the redirect URI is unchanged, and the response is appended to it',
  async (t) => {
    for (const query of ['?foo=bar', '?foo=b%20a+r&x=%c3%a9', '?', '?a=1&']) {
      const redirectUri = `http://127.0.0.1:51004/cb${query}`
      const own = await register(server, { redirect_uris: [redirectUri] })
      const response = await authorize(server, own, { scope: 'nonsense' })
      const error = response.headers.get('location') ?? ''
      const page = pageOf(await ask(server, own, {}, user))
      const body = bodyOf(page, { decision: 'approve' })
      const approved = await user.send(`${server.issuer}/consent`, { method: 'POST', body })
      const success = approved.headers.get('location') ?? ''
      for (const [location, members] of [
        [error, ['error', 'iss']],
        [success, ['code', 'iss']],
      ] as const) {
        const isRetained = location.startsWith(redirectUri)
        t.ok(isRetained, `[rfc6749-3.1.2-redirect-query-retained] ${location}`)
        t.equal(location.split('?').length, 2, 'one question mark')
        t.notMatch(location, /&&|\?&/)
        const { searchParams } = new URL(location)
        for (const member of members)
          t.equal(
            searchParams.getAll(member).length,
            1,
            `[rfc6749-3.1-no-duplicate-response-params] ${member}`,
          )
        t.same(searchParams.getAll('state'), ['a-state'])
      }
    }
  },
)

t.test(
  '[rfc6749-4.1.2-state-exact] [oidc-core-14-no-normalisation] state is returned character for character',
  async (t) => {
    for (const state of [
      'a b+c%26é&x',
      '-._~'.repeat(32),
      'e\u0301 \u00e9',
      '%00%0a',
      '"quoted" \\ {"j":1}',
      '🙂',
      'x'.repeat(4000),
    ]) {
      const landing = await ask(server, firstParty, { state }, user)
      t.equal(sentAway(landing)['state'], state, '[rfc6749-4.1.2-state-exact]')
    }
  },
)

t.test(
  '[rfc6749-10.2-no-silent-reapproval] [rfc8252-8.6-no-automatic-approval] a self-registered client needs consent every time',
  async (t) => {
    const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
    for (const who of [client, confidential]) {
      for (const round of [1, 2]) {
        const landing = await ask(server, who, {}, user)
        t.equal(place(landing), '/consent', `round ${round}`)
        sentAway(await user.submit(pageOf(landing), { decision: 'approve' }))
      }
      const silent = await authorize(server, who, { prompt: 'none' }, user)
      assertErrorRedirect(t, server, silent, 'consent_required')
    }
  },
)

t.test(
  '[service-5-https-client-out-of-band] a client with an https callback, added by the operator, works like any other',
  async (t) => {
    const portal = await integrate(server)
    const page = pageOf(await ask(server, portal, {}, user))
    t.match(page.html, 'added this app')
    const landing = await user.submit(page, { decision: 'approve' })
    t.equal(place(landing), `sent to ${new URL(callback).origin}`)
    const response = await exchange(server, portal, sentAway(landing)['code'] ?? '')
    t.equal(response.status, 200)
    t.match(await response.json(), { access_token: /./, refresh_token: /./, id_token: /./ })
  },
)

t.test(
  '[rfc6749-4.1.2.1-server-error] [rfc6749-4.1.2.1-temporarily-unavailable] an error while the code is issued is an error redirect',
  async (t) => {
    const { StoreUnavailable } = await import('../../src/storage/store.ts')
    const { store } = server.deps
    const { write, transact } = store
    t.teardown(() => Object.assign(store, { write, transact }))
    const faults = [
      [new Error('a disk of glass'), 'server_error', '[rfc6749-4.1.2.1-server-error]'],
      [
        new StoreUnavailable('locked'),
        'temporarily_unavailable',
        '[rfc6749-4.1.2.1-temporarily-unavailable]',
      ],
    ] as const
    for (const [fault, error, message] of faults) {
      const page = pageOf(await ask(server, client, {}, user))
      const fail = () => Promise.reject(fault)
      Object.assign(store, { write: fail, transact: fail })
      const atOnce = await authorize(server, firstParty, {}, user)
      t.notMatch(assertErrorRedirect(t, server, atOnce, error, { to: callback, message }), 'glass')
      const { error_description: description, ...afterConsent } = sentAway(
        await user.submit(page, { decision: 'approve' }),
      )
      t.same(afterConsent, { error, state: 'a-state', iss: server.issuer })
      t.notMatch(description, 'glass')
      Object.assign(store, { write, transact })
    }
    t.match(server.log.join(''), 'a disk of glass')
    t.match(sentAway(await ask(server, firstParty, {}, user)), { code: /./ })
  },
)

t.test('two simultaneous submissions of one consent page make one code', async (t) => {
  const page = pageOf(await ask(server, client, {}, user))
  const { store } = server.deps
  const { transact } = store
  t.teardown(() => Object.assign(store, { transact }))
  // All of them have found the request pending before any of them completes it.
  const arrived = Promise.withResolvers<void>()
  let count = 0
  const together = async (...parameters: unknown[]) => {
    count += 1
    if (count === 4) arrived.resolve()
    await arrived.promise
    return Reflect.apply(transact, store, parameters)
  }
  Object.assign(store, { transact: together })
  const landings = await Promise.all([1, 2, 3, 4].map(() => user.submit(page, { decision: 'approve' })))
  t.equal(landings.filter(({ at }) => at === 'redirect').length, 1)
  for (const landing of landings) if (landing.at === 'page') t.equal(landing.page.status, 400)
})

t.test(
  '[rfc6749-3.3-scope-in-response-when-different] the user can narrow the scope on the consent page, and not widen it',
  async (t) => {
    const fields = { scope: 'openid profile courses:read courses:write' }
    const grantedAfter = async (scope: readonly string[]) => {
      const code = await obtainCode(server, client, { fields, agent: user, scope })
      return (await json(await exchange(server, client, code)))['scope']
    }
    t.equal(await grantedAfter(['courses:read']), 'openid courses:read')
    t.equal(await grantedAfter([]), 'openid')
    const page = pageOf(await ask(server, client, { scope: 'courses:read' }, user))
    const body = bodyOf(page, {
      decision: 'approve',
      redirect_uri: 'https://evil.example/',
      state: 'other',
    })
    for (const more of ['students:write', 'openid']) body.append('scope', more)
    const response = sentAway(await user.open(`${server.issuer}/consent`, { method: 'POST', body }))
    t.equal(response['state'], 'a-state')
    const tokens = await exchange(server, client, response['code'] ?? '')
    t.equal((await json(tokens))['scope'], 'courses:read')
  },
)

t.test('approving no scope is access_denied', async (t) => {
  const page = pageOf(await ask(server, client, { scope: 'courses:read' }, user))
  t.match(sentAway(await user.submit(page, { decision: 'approve', scope: [] })), { error: 'access_denied' })
})
