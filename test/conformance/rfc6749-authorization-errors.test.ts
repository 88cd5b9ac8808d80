import t from 'tap'
import { assertErrorPage, assertErrorRedirect, callback, integrate } from '../helpers/authorization.ts'
import { authorizationUrl, authorize, type Fields, redirectUri, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t)
const client = await register(server)

t.test(
  '[rfc6749-4.1.2.1-client-error-page] a client_id that is missing, unknown or repeated shows an error page',
  async (t) => {
    const rows: readonly (readonly [Fields, string])[] = [
      [{ client_id: undefined }, 'invalid_request'],
      [{ client_id: '' }, 'invalid_request'],
      [{ client_id: 'nope' }, 'invalid_client'],
      [{ client_id: client.id.toUpperCase() }, 'invalid_client'],
      [{ client_id: [client.id, client.id] }, 'invalid_request'],
      [{ client_id: '"><script>evil()</script>' }, 'invalid_client'],
      [{ client_id: `${client.id}\u0000` }, 'invalid_request'],
      [{ client_id: 'x'.repeat(9000) }, 'invalid_request'],
    ]
    for (const [fields, error] of rows)
      await assertErrorPage(
        t,
        await authorize(server, client, fields),
        error,
        JSON.stringify(fields).slice(0, 60),
      )
    const html = await assertErrorPage(
      t,
      await authorize(server, client, { client_id: 'nope' }),
      'invalid_client',
    )
    t.match(html, 'lychgate client add')
    t.match(html, 'lifetimes.unusedClientSeconds')
  },
)

t.test(
  '[service-4-authorize-redirect-uri] [rfc6749-3.1.2.3-simple-string-match] [rfc6749-3.1.2.4-invalid-not-redirected] a redirect_uri that is not the registered one, character for character, shows an error page',
  async (t) => {
    const path = 'http://127.0.0.1:51004/callback'
    const wrong = [
      'http://127.0.0.1:51004/callback/',
      'http://127.0.0.1:51004/CALLBACK',
      'http://127.0.0.1:51004/a/../callback',
      'http://127.0.0.1:51004/c%61llback',
      'http://127.0.0.1:51004//callback',
      'http://127.0.0.1:51004/callback?extra=1',
      'http://127.0.0.1:51004/callback?',
      'http://127.0.0.1:51004/callback#f',
      'http://user@127.0.0.1:51004/callback',
      'http://127.0.0.1:51004@evil.example/callback',
      'http://127.0.0.1.evil.example:51004/callback',
      'http://127.0.0.1:51004\\@evil.example/callback',
      'HTTP://127.0.0.1:51004/callback',
      ' http://127.0.0.1:51004/callback',
      'http://127.0.0.1:51004/callback\n',
      'https://evil.example/callback',
      '//evil.example/callback',
      'javascript:alert(1)',
      '/callback',
    ]
    t.equal((await authorize(server, client, { redirect_uri: path })).status, 303)
    for (const redirect of wrong) {
      // A second error in the request must not lead to a redirect.
      for (const [scope, clause] of [
        ['openid', '[service-4-authorize-redirect-uri]'],
        ['openid', '[rfc6749-3.1.2.3-simple-string-match]'],
        ['nonsense', '[rfc6749-3.1.2.4-invalid-not-redirected]'],
      ] as const)
        await assertErrorPage(
          t,
          await authorize(server, client, { redirect_uri: redirect, scope }),
          'invalid_request',
          `${clause} ${JSON.stringify(redirect)}`,
        )
    }
  },
)

t.test(
  '[rfc6749-3.1.2.3-required-when-ambiguous] with several registered URIs a request without redirect_uri shows an error page',
  async (t) => {
    const several = await register(server, {
      redirect_uris: ['http://127.0.0.1/one', 'http://127.0.0.1/two'],
    })
    for (const redirect of [undefined, ''])
      await assertErrorPage(
        t,
        await authorize(server, several, { redirect_uri: redirect, scope: 'profile' }),
        'invalid_request',
      )
    for (const path of ['one', 'two']) {
      const { status } = await authorize(server, several, { redirect_uri: `http://127.0.0.1/${path}` })
      t.equal(status, 303)
    }
    // One alone would do for a client added by an operator, so these fail only because there are several.
    const portal = await integrate(server, { redirectUris: [callback, `${callback}/other`] })
    const ambiguous = await authorize(server, portal, { redirect_uri: undefined, scope: 'profile' })
    await assertErrorPage(t, ambiguous, 'invalid_request')
  },
)

t.test(
  '[rfc6749-3.1.2.3-omitted-single] an omitted redirect_uri is the only URI of a client added by an operator; a loopback client must send it, for its port',
  async (t) => {
    const portal = await integrate(server)
    const response = await authorize(server, portal, {
      redirect_uri: undefined,
      scope: 'profile',
      state: 's',
      response_type: 'x',
    })
    assertErrorRedirect(t, server, response, 'unsupported_response_type', { to: callback, state: 's' })
    await assertErrorPage(
      t,
      await authorize(server, client, { redirect_uri: undefined, scope: 'profile' }),
      'invalid_request',
    )
  },
)

t.test(
  '[oidc-core-3.1.2.1-redirect-uri-required] an openid request without redirect_uri shows an error page, even if one URI is registered',
  async (t) => {
    const portal = await integrate(server)
    for (const who of [client, portal]) {
      for (const scope of ['openid', 'profile openid'])
        await assertErrorPage(
          t,
          await authorize(server, who, { redirect_uri: undefined, scope }),
          'invalid_request',
        )
    }
  },
)

t.test(
  '[oidc-core-3.1.2.6-bad-response-mode] an unknown response_mode is a 400 page and no redirect',
  async (t) => {
    for (const mode of ['foo', 'fragment', 'fragment.jwt', 'Query', 'web_message'])
      await assertErrorPage(
        t,
        await authorize(server, client, { response_mode: mode }),
        'invalid_request',
        mode,
      )
    t.equal((await authorize(server, client, { response_mode: 'query' })).status, 303)
  },
)

t.test(
  '[rfc6749-4.1.2.1-other-errors-redirect] [rfc6749-3.1.1-response-type-missing] [rfc6749-3.1.1-response-type-unknown] [rfc6749-4.1.1-validate-request] every other error is redirected to the client at once, before a sign-in page',
  async (t) => {
    const missing: readonly Fields[] = [{ response_type: undefined }, { response_type: '' }]
    for (const fields of missing) {
      const message = '[rfc6749-3.1.1-response-type-missing]'
      const response = await authorize(server, client, fields)
      t.match(assertErrorRedirect(t, server, response, 'invalid_request', { message }), /response_type/)
    }
    for (const type of ['foo', 'Code', 'code code']) {
      const message = `[rfc6749-3.1.1-response-type-unknown] ${type}`
      const response = await authorize(server, client, { response_type: type })
      assertErrorRedirect(t, server, response, 'unsupported_response_type', { message })
    }
    const rows: readonly (readonly [Fields, string, RegExp])[] = [
      [{ scope: 'courses:delete' }, 'invalid_scope', /scope/],
      [{ code_challenge: undefined }, 'invalid_request', /code_challenge/],
      [{ resource: 'https://other.example' }, 'invalid_target', /resource/],
      [{ max_age: 'soon' }, 'invalid_request', /max_age/],
      [{ max_age: '-1' }, 'invalid_request', /max_age/],
      [{ max_age: '1.5' }, 'invalid_request', /max_age/],
      [{ prompt: 'none login' }, 'invalid_request', /prompt/],
      [{ claims: '{' }, 'invalid_request', /claims/],
      [{ id_token_hint: 'x' }, 'invalid_request', /id_token_hint/],
    ]
    for (const [fields, error, named] of rows) {
      const message = `[rfc6749-4.1.2.1-other-errors-redirect] ${JSON.stringify(fields)}`
      const response = await authorize(server, client, fields)
      t.match(assertErrorRedirect(t, server, response, error, { message }), named, message)
      t.equal(response.status, 303, '[rfc6749-4.1.1-validate-request] at once, without a sign-in page')
    }
  },
)

t.test(
  '[service-4-authorize-response-type] [rfc9700-2.1.2-no-implicit] no response type puts a token into the response',
  async (t) => {
    for (const type of ['token', 'id_token', 'id_token token', 'code token', 'code id_token', 'none']) {
      const response = await authorize(server, client, { response_type: type, nonce: 'n' })
      const location = response.headers.get('location')
      t.notMatch(location, /#|access_token|id_token=/, `[rfc9700-2.1.2-no-implicit] ${type}`)
      const message = `[service-4-authorize-response-type] ${type}`
      assertErrorRedirect(t, server, response, 'unsupported_response_type', { message })
    }
  },
)

t.test(
  '[rfc6749-3.1-no-duplicate-request-params] a repeated parameter is an error redirect; a repeated client_id or redirect_uri shows an error page',
  async (t) => {
    const once: Readonly<Record<string, string>> = {
      response_type: 'code',
      scope: 'openid',
      code_challenge: 'c'.repeat(43),
      code_challenge_method: 'S256',
      nonce: 'n',
      prompt: 'login',
      max_age: '10',
      login_hint: 'alice',
      id_token_hint: 'x',
      claims: '{}',
      display: 'page',
      something_else: 'x',
    }
    for (const [name, value] of Object.entries(once)) {
      const response = await authorize(server, client, { [name]: [value, value] })
      t.match(assertErrorRedirect(t, server, response, 'invalid_request', { message: name }), name)
    }
    const twoStates = await authorize(server, client, { state: ['one', 'two'] })
    t.match(assertErrorRedirect(t, server, twoStates, 'invalid_request', { state: '' }), 'state')
    const onPage: readonly Fields[] = [
      { redirect_uri: [redirectUri, redirectUri] },
      { redirect_uri: [redirectUri, 'https://evil.example/'] },
      { client_id: [client.id, client.id] },
    ]
    for (const fields of onPage)
      await assertErrorPage(t, await authorize(server, client, fields), 'invalid_request')
  },
)

t.test('[rfc6749-4.1.2.1-state-on-error] an error has the state exactly as received, or none', async (t) => {
  for (const state of [
    'a b+c%26é&x',
    'x'.repeat(2000),
    '{"a":["b"]}',
    '<script>',
    '-._~',
    '\r\nSet-Cookie: a=b',
    '漢字🙂',
  ]) {
    const response = await authorize(server, client, { scope: 'nonsense', state })
    assertErrorRedirect(t, server, response, 'invalid_scope', { state, message: state.slice(0, 20) })
    t.equal(response.headers.get('set-cookie'), null)
  }
  for (const state of [undefined, ''])
    assertErrorRedirect(
      t,
      server,
      await authorize(server, client, { scope: 'nonsense', state }),
      'invalid_scope',
      { state: '' },
    )
})

t.test(
  '[rfc6749-4.1.2.1-error-charset] [oidc-core-3.1.2.6-error-params-only] an error repeats nothing of the request, and has no unregistered members',
  async (t) => {
    const hostile = '"\\\r\né<script>alert(1)</script>'
    const names = ['response_type', 'scope', 'code_challenge', 'code_challenge_method', 'resource']
    for (const name of [
      ...names,
      'prompt',
      'max_age',
      'claims',
      'id_token_hint',
      'request',
      'request_uri',
      'registration',
      hostile,
    ]) {
      const response = await authorize(server, client, {
        [name]: name === 'prompt' ? `none ${hostile}` : hostile,
        ...(name === hostile && { [name]: ['a', 'b'] }),
      })
      const { error = '' } = Object.fromEntries(new URL(response.headers.get('location') ?? '').searchParams)
      t.match(error, /^[a-z_]+$/, name)
      const message = `[rfc6749-4.1.2.1-error-charset] ${JSON.stringify(name)}`
      t.notMatch(assertErrorRedirect(t, server, response, error, { message }), /alert|script/i)
    }
  },
)

t.test(
  '[rfc6749-4.1.2.1-unauthorized-client] a client without the authorization_code grant gets unauthorized_client',
  async (t) => {
    const portal = await integrate(server, {}, { grantTypes: ['refresh_token'] })
    const response = await authorize(server, portal)
    assertErrorRedirect(t, server, response, 'unauthorized_client', { to: callback })
  },
)

t.test(
  '[rfc9101-7-error-codes] [oidc-core-3.1.2.6-registration-not-supported] request, request_uri and registration of a client without keys are rejected by name, and no URL is fetched',
  async (t) => {
    let fetched = 0
    const { createServer } = await import('node:http')
    const stranger = createServer((_request, response) => {
      fetched += 1
      response.end()
    })
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
    t.teardown(() => stranger.close())
    const address = stranger.address() as { port: number }
    const [ofObject, ofRegistration] = [
      '[rfc9101-7-error-codes]',
      '[oidc-core-3.1.2.6-registration-not-supported]',
    ]
    const rows: readonly (readonly [Fields, string, string])[] = [
      [{ request: 'eyJhbGciOiJub25lIn0.e30.' }, 'invalid_request_object', ofObject],
      [{ request_uri: `http://127.0.0.1:${address.port}/object` }, 'invalid_request_uri', ofObject],
      [{ request_uri: 'urn:example:request' }, 'invalid_request_uri', ofObject],
      [{ registration: '{}' }, 'registration_not_supported', ofRegistration],
    ]
    for (const [fields, error, message] of rows)
      assertErrorRedirect(t, server, await authorize(server, client, fields), error, { message })
    const unregistered = await authorize(server, client, {
      request: 'x',
      redirect_uri: 'https://evil.example/',
    })
    await assertErrorPage(t, unregistered, 'invalid_request_object')
    t.equal(fetched, 0)
  },
)

t.test('parameters that cannot be parsed show an error page', async (t) => {
  const url = authorizationUrl(server, client)
  for (const broken of ['&x=%', '&x=%ff', '&x=%00', '&x=1'.repeat(101)])
    await assertErrorPage(
      t,
      await fetch(url + broken, { redirect: 'manual' }),
      'invalid_request',
      broken.slice(0, 9),
    )
  const json = await fetch(`${server.issuer}/oauth/authorize`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: client.id }),
  })
  t.equal(json.status, 415)
  t.match(json.headers.get('content-type'), 'text/html')
})

t.test('a rejected prompt=none leaves the browser without a pending request', async (t) => {
  const agent = new UserAgent(server.issuer)
  assertErrorRedirect(t, server, await authorize(server, client, { prompt: 'none' }, agent), 'login_required')
  t.equal(agent.cookies.size, 0)
})
