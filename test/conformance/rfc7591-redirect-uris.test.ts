import t from 'tap'
import { assertNotSentAway, assertRejected, loopback, registrationAt } from '../helpers/registration.ts'
import { startServer } from '../helpers/server.ts'

const { issuer, deps } = await startServer(t)
const { post, register, authorize, mayAuthorize, tokenError } = registrationAt(issuer)

t.test('localhost is accepted by default, and its port is free', async (t) => {
  const client = await register({ redirect_uris: ['http://localhost:1234/callback'] })
  t.strictSame(client['redirect_uris'], ['http://localhost:1234/callback'])
  t.match(client, { application_type: 'native', token_endpoint_auth_method: 'none' })
  t.ok(await mayAuthorize(client['client_id'], 'http://localhost:5678/callback'))
  t.ok(await mayAuthorize(client['client_id'], 'http://localhost/callback'))
  for (const host of ['127.0.0.1', '[::1]', 'LOCALHOST', 'localhost.', 'localhost@evil.example']) {
    const uri = `http://${host}:1234/callback`
    assertNotSentAway(t, await authorize(client['client_id'], { redirect_uri: uri }), uri)
  }
})

t.test(
  '[rfc8252-8.3-localhost-not-recommended] localhost is rejected where the setting leaves it out',
  async (t) => {
    const narrow = registrationAt((await startServer(t, { registration: { loopbackHosts: [] } })).issuer)
    const response = await narrow.post({ redirect_uris: ['http://localhost:1/cb'] })
    assertRejected(t, response, 'invalid_redirect_uri', 'localhost')
    t.match(response.body['error_description'], /registration\.loopbackHosts/)
    t.equal((await narrow.post({ redirect_uris: ['http://127.0.0.1:1/cb'] })).status, 201)
  },
)

t.test(
  '[service-5-registration-loopback-only] the text of a redirect URI decides, so names that resolve to loopback are rejected',
  async (t) => {
    for (const authority of [
      'LOCALHOST',
      'Localhost:1',
      'localhost.',
      'localhost.:1',
      'localhost.evil.example',
      'localhost:1.evil.example',
      'evil.localhost',
      'localhost@evil.example',
      'localhost:1@evil.example',
      'user@localhost',
      'localhost%2eevil.example',
      'localhost%00',
      'local%68ost',
      'localhost:',
      'localhost:0',
      'localhost:01',
      'localhost:65536',
      'localhost\\@evil.example',
      'loc\talhost',
      '\uff4cocalhost',
      'localho\u017ft',
      'localhos\u0442',
      '[localhost]',
      'localhost#',
      'localhost?',
    ]) {
      const uri = `http://${authority}/cb`
      assertRejected(t, await post({ redirect_uris: [uri] }), 'invalid_redirect_uri', uri)
    }
    for (const uri of [
      'https://localhost:1/cb',
      'HTTP://localhost:1/cb',
      'http:localhost/cb',
      '//localhost/cb',
    ])
      assertRejected(t, await post({ redirect_uris: [uri] }), 'invalid_redirect_uri', uri)
  },
)

t.test(
  '[rfc8252-8.4-native-public] a native client authenticates as it registered: with a secret or without',
  async (t) => {
    const open = await register({ application_type: 'native', token_endpoint_auth_method: 'none' })
    t.equal(await tokenError({ client_id: open['client_id'] }), 'invalid_grant')
    const { client_id, client_secret } = await register({
      application_type: 'native',
      token_endpoint_auth_method: 'client_secret_post',
    })
    t.equal(await tokenError({ client_id, client_secret }), 'invalid_grant')
    t.equal(await tokenError({ client_id, client_secret: 'wrong' }), 'invalid_client')
    t.equal(await tokenError({ client_id }), 'invalid_client')
  },
)

t.test('[rfc8252-8.4-complete-uri] no part of a redirect URI is a pattern', async (t) => {
  assertRejected(t, await post({ redirect_uris: ['http://127.0.0.1:*/cb'] }), 'invalid_redirect_uri', 'port')
  const client = await register({ redirect_uris: ['http://127.0.0.1:1/*'] })
  t.ok(await mayAuthorize(client['client_id'], 'http://127.0.0.1:1/*'))
  for (const uri of ['http://127.0.0.1:1/cb', 'http://127.0.0.1:1/', 'http://127.0.0.1:1/*/cb'])
    assertNotSentAway(t, await authorize(client['client_id'], { redirect_uri: uri }), uri)
})

t.test('[oauth21-2.3.1-complete-uri-all] a redirect URI without a path is rejected', async (t) => {
  for (const uri of ['http://127.0.0.1', 'http://127.0.0.1:80', 'http://[::1]:80']) {
    const response = await post({ redirect_uris: [uri], token_endpoint_auth_method: 'client_secret_post' })
    assertRejected(t, response, 'invalid_redirect_uri', uri)
  }
})

t.test(
  '[rfc7591-3.2.2-invalid-redirect-uri] the error says which part a loopback redirect lacks',
  async (t) => {
    const forms = 'http://127.0.0.1:port/path or http://[::1]:port/path or http://localhost:port/path'
    for (const [uri, said] of [
      ['localhost:3000', 'it has no scheme and no path, the form is http://localhost:3000/path'],
      ['localhost', 'it has no scheme and no path, the form is http://localhost/path'],
      ['localhost:3000/cb', 'it has no scheme, the form is http://localhost:3000/path'],
      ['[::1]:3000/cb?a=b', 'it has no scheme, the form is http://[::1]:3000/path'],
      ['http://localhost:3000', 'it has no path, the form is http://localhost:3000/path'],
      ['http://localhost:3000?a=b', 'it has no path, the form is http://localhost:3000/path'],
      ['http://127.0.0.1', 'it has no path, the form is http://127.0.0.1/path'],
    ] as const) {
      const response = await post({ redirect_uris: [uri] })
      assertRejected(t, response, 'invalid_redirect_uri', uri)
      t.equal(response.body['error_description'], `redirect_uris[0] is not of the form ${forms}; ${said}`)
      const second = await post({ redirect_uris: [loopback], post_logout_redirect_uris: [uri] })
      assertRejected(t, second, 'invalid_client_metadata', uri)
      t.equal(
        second.body['error_description'],
        `post_logout_redirect_uris[0] is not of the form ${forms}; ${said}`,
      )
    }
    for (const uri of [
      'localhost.evil.example',
      'localhost:0',
      'localhost:3000@evil.example',
      '//localhost',
      'a.example',
    ])
      t.notMatch((await post({ redirect_uris: [uri] })).body['error_description'], /it has no/, uri)
    t.equal(
      (await post({ redirect_uris: ['http://localhost:3000/path'] })).status,
      201,
      'the form is accepted',
    )
    const narrow = registrationAt((await startServer(t, { registration: { loopbackHosts: [] } })).issuer)
    const closed = await narrow.post({ redirect_uris: ['localhost:3000'] })
    t.match(
      closed.body['error_description'],
      /no path, the form is .+, and the option registration\.loopbackHosts/,
    )
  },
)

t.test(
  '[rfc8252-8.4-private-scheme-period] [mcp-security-redirects] private-use schemes are rejected',
  async (t) => {
    for (const uri of ['myapp:/cb', 'com.example.app:/cb', 'vscode://cb', 'urn:ietf:wg:oauth:2.0:oob']) {
      assertRejected(t, await post({ redirect_uris: [uri] }), 'invalid_redirect_uri', uri)
    }
  },
)

t.test('more redirect URIs than allowed are rejected', async (t) => {
  const uris = Array.from({ length: 51 }, (_, at) => `http://127.0.0.1/${at}`)
  t.equal((await post({ redirect_uris: uris.slice(1) })).status, 201)
  assertRejected(t, await post({ redirect_uris: uris }), 'invalid_redirect_uri', '51')
})

t.test('more metadata than can be stored is rejected, and the error names the setting', async (t) => {
  const path = (bytes: number) => 'p'.repeat(bytes)
  const uris = Array.from({ length: 40 }, (_, at) => `http://127.0.0.1/${at}/${path(200)}`)
  t.equal((await post({ redirect_uris: uris.map((uri) => uri.slice(0, 120)) })).status, 201)
  const before = (await deps.store.list('client')).length
  const localized = Object.fromEntries(
    Array.from({ length: 10 }, (_, at) => [`client_uri#de-x-a${at}`, `https://app.example/${path(2000)}`]),
  )
  for (const body of [{ redirect_uris: uris }, { redirect_uris: [loopback], ...localized }]) {
    const response = await post({ ...body, 'client_name#fr': 'é'.repeat(200) })
    assertRejected(t, response, 'invalid_client_metadata', Object.keys(body).join(' '))
    t.match(response.body['error_description'], 'limits.clientMetadataBytes')
  }
  t.equal((await deps.store.list('client')).length, before, 'nothing was stored')
})

t.test('[rfc7591-3.2.2-invalid-redirect-uri] a bad redirect URI is invalid_redirect_uri', async (t) => {
  for (const uri of [
    'http://127.1/cb',
    'http://2130706433/cb',
    'http://127.0.0.1@x.example/cb',
    'http://127.0.0.2/',
  ]) {
    assertRejected(t, await post({ redirect_uris: [uri] }), 'invalid_redirect_uri', uri)
  }
})

t.test(
  '[rfc7591-5-redirects-required] [rfc9700-2.1-no-http-redirects] http redirects to other hosts, and schemes other than http and https, are rejected',
  async (t) => {
    for (const uri of [
      'http://evil.example/cb',
      'http://app.example/cb',
      'javascript:alert(1)',
      'data:text/html,x',
      'file:///etc/passwd',
    ]) {
      const clause = uri.startsWith('http:')
        ? '[rfc9700-2.1-no-http-redirects]'
        : '[rfc7591-5-redirects-required]'
      assertRejected(t, await post({ redirect_uris: [uri] }), 'invalid_redirect_uri', `${clause} ${uri}`)
    }
  },
)

t.test('[oidc-reg-3.2-redirect-uris-never-replaced] redirect URIs are returned unchanged', async (t) => {
  const uris = ['http://127.0.0.1:8080/A/b?x=%20', 'http://127.0.0.1:80/a/../b', 'http://[::1]/%7e']
  t.strictSame((await register({ redirect_uris: uris }))['redirect_uris'], uris)
})

t.test('[oidc-rpl-3.1-registration] post_logout_redirect_uris follow the loopback rule', async (t) => {
  const uris = ['http://127.0.0.1:1/out']
  t.strictSame((await register({ post_logout_redirect_uris: uris }))['post_logout_redirect_uris'], uris)
  const response = await post({
    redirect_uris: [loopback],
    post_logout_redirect_uris: ['https://app.example/out'],
  })
  assertRejected(t, response, 'invalid_client_metadata', 'https')
})

t.test('a server that drops foreign redirects keeps and echoes the loopback ones', async (t) => {
  const lenient = await startServer(t, {
    issuerPath: '/t',
    registration: { foreignRedirects: 'drop', loopbackHosts: ['localhost'] },
  })
  const client = registrationAt(lenient.issuer)
  // The registration of an editor that runs on the desktop and in the browser.
  const registered = await client.register({
    client_name: 'Editor',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    redirect_uris: [
      'https://editor.example/redirect',
      'http://127.0.0.1/',
      'http://localhost:33418/',
      'http://127.0.0.1:33418/',
    ],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  })
  const kept = ['http://127.0.0.1/', 'http://localhost:33418/', 'http://127.0.0.1:33418/']
  t.strictSame(registered['redirect_uris'], kept)
  t.equal((await client.configure(registered, 'GET')).status, 200, 'below an issuer with a path')
  t.ok(await client.mayAuthorize(registered['client_id'], 'http://127.0.0.1:5000/'))
  t.ok(await client.mayAuthorize(registered['client_id'], 'http://localhost:5000/'))
  t.notOk(await client.mayAuthorize(registered['client_id'], 'https://editor.example/redirect'))
  const foreign = await client.post({ redirect_uris: ['https://editor.example/redirect'] })
  assertRejected(t, foreign, 'invalid_redirect_uri', 'nothing is left')
})
