import t, { type Test } from 'tap'
import { makeClientKey } from '../helpers/assertions.ts'
import { ask, assertNotSentAway, assertRejected, loopback, registrationAt } from '../helpers/registration.ts'
import { startServer } from '../helpers/server.ts'

// What the service specification and RFC 6749 §2 and §3.1.2 require of registration.
const { issuer, deps } = await startServer(t)
const { endpoint, post, register, configure, authorize, mayAuthorize, tokenError, firstPage } =
  registrationAt(issuer)

/** Asserts that no client was registered. */
async function assertNothingStored(t: Test, rejected: () => Promise<void>): Promise<void> {
  const clients = async () => (await deps.store.list('client')).map(({ id }) => id)
  const before = await clients()
  await rejected()
  t.strictSame(await clients(), before, 'nothing is stored')
}

t.test('[service-2-reg-client-name] the client name is stored and shown escaped', async (t) => {
  const client = await register({ client_name: 'Zed CLI' })
  t.equal(client['client_name'], 'Zed CLI')
  t.match(await firstPage(client['client_id']), 'Zed CLI')
  const hostile = await register({ client_name: '<b>Zed</b>' })
  const page = await firstPage(hostile['client_id'])
  t.match(page, '&lt;b&gt;Zed&lt;/b&gt;')
  t.notMatch(page, '<b>Zed')
})

t.test('[service-2-reg-application-type-native] application_type native is echoed', async (t) => {
  const { status, body } = await post({ application_type: 'native', redirect_uris: [loopback] })
  t.equal(status, 201)
  t.equal(body['application_type'], 'native')
})

t.test('[service-2-reg-redirect-uris-array] redirect_uris is a non-empty array of strings', async (t) => {
  await assertNothingStored(t, async () => {
    for (const redirectUris of ['http://127.0.0.1:1/cb', [], [1], [loopback, 1], [null], {}, 5]) {
      const response = await post({ redirect_uris: redirectUris })
      assertRejected(t, response, 'invalid_redirect_uri', JSON.stringify(redirectUris))
    }
  })
})

t.test('[service-2-reg-loopback-accepted] a loopback redirect URI is accepted', async (t) => {
  const client = await register({ redirect_uris: ['http://127.0.0.1:53999/callback'] })
  t.type(client['client_id'], 'string')
})

t.test('[service-2-reg-auth-none] a public client gets no secret', async (t) => {
  const client = await register({ token_endpoint_auth_method: 'none' })
  t.notOk('client_secret' in client)
  t.equal(client['token_endpoint_auth_method'], 'none')
})

t.test('[service-2-reg-auth-post] a confidential client gets a secret', async (t) => {
  const client = await register({ token_endpoint_auth_method: 'client_secret_post' })
  t.type(client['client_secret'], 'string')
  t.not(client['client_secret'], '')
  const { client_id, client_secret } = client
  t.equal(await tokenError({ client_id, client_secret }), 'invalid_grant')
})

t.test(
  '[service-2-reg-auth-other] other authentication methods are rejected, HTTP Basic works',
  async (t) => {
    await assertNothingStored(t, async () => {
      for (const method of ['private_key_jwt', 'tls_client_auth', 'client_secret_jwt', 'foo', '', 5]) {
        const response = await post({ redirect_uris: [loopback], token_endpoint_auth_method: method })
        assertRejected(t, response, 'invalid_client_metadata', String(method))
      }
      const jwks = { keys: [makeClientKey('ES256').jwk] }
      const signing = { redirect_uris: [loopback], token_endpoint_auth_method: 'private_key_jwt', jwks }
      assertRejected(t, await post(signing), 'invalid_client_metadata', 'private_key_jwt with keys')
    })
    const client = await register({ token_endpoint_auth_method: 'client_secret_basic' })
    t.equal(await tokenError({}, [client['client_id'], client['client_secret']]), 'invalid_grant')
    t.equal(await tokenError({}, [client['client_id'], 'wrong']), 'invalid_client')
  },
)

t.test(
  '[service-2-reg-response-client-id] the client_id of the response works at the authorization endpoint',
  async (t) => {
    const client = await register()
    t.type(client['client_id'], 'string')
    t.ok(await mayAuthorize(client['client_id']))
  },
)

t.test('[service-4-register-path] a JSON body registers, the same fields as a form do not', async (t) => {
  t.equal(endpoint, `${issuer}/api/oauth/register`)
  const fields = { client_name: 'x', redirect_uris: [loopback] }
  const { status, headers, body } = await post(fields)
  t.equal(status, 201)
  t.match(headers.get('content-type'), /^application\/json/)
  t.type(body['client_id'], 'string')
  await assertNothingStored(t, async () => {
    const form = new URLSearchParams({ client_name: 'x', redirect_uris: loopback })
    const responses = [await ask(endpoint, { method: 'POST', body: form })]
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonx',
      'multipart/form-data',
    ])
      responses.push(await post(fields, { 'content-type': type }))
    for (const response of responses) {
      t.equal(response.status, 415)
      t.strictSame(Object.keys(response.body).sort(), ['error', 'error_description'])
      t.equal(response.body['error'], 'invalid_client_metadata')
    }
  })
})

t.test('[service-5-registration-open] no authorization is needed', async (t) => {
  t.equal((await post({ redirect_uris: [loopback] })).status, 201)
})

t.test(
  '[service-5-registration-loopback-only] one foreign redirect URI rejects the whole request',
  async (t) => {
    await assertNothingStored(t, async () => {
      for (const foreign of ['https://x.example/cb', 'com.app:/cb', 'http://x.example/cb']) {
        assertRejected(t, await post({ redirect_uris: [foreign] }), 'invalid_redirect_uri', foreign)
        const mixed = await post({ redirect_uris: [loopback, foreign] })
        assertRejected(t, mixed, 'invalid_redirect_uri', foreign)
        t.match(mixed.body['error_description'], /redirect_uris\[1\]/)
      }
    })
  },
)

t.test('[service-7-https-redirect-refused] an https redirect URI is rejected', async (t) => {
  await assertNothingStored(t, async () => {
    const response = await post({ redirect_uris: ['https://app.example/cb'] })
    assertRejected(t, response, 'invalid_redirect_uri', 'https')
  })
})

t.test('[rfc6749-2.1-type-recorded] the registered type decides, not the form of a request', async (t) => {
  const open = await register({ token_endpoint_auth_method: 'none' })
  const secretive = await register({ token_endpoint_auth_method: 'client_secret_post' })
  t.equal(await tokenError({ client_id: secretive['client_id'] }), 'invalid_client')
  const { client_id } = open
  for (const promoted of [
    await tokenError({ client_id, client_secret: 'made up' }),
    await tokenError({}, [client_id, 'made up']),
  ])
    t.equal(promoted, 'invalid_client')
  t.equal(await tokenError({ client_id }), 'invalid_grant', 'as what it registered it is known')
  const read = await configure(open, 'GET')
  t.equal(read.body['token_endpoint_auth_method'], 'none')
  t.notOk('client_secret_expires_at' in read.body)
})

t.test(
  '[rfc6749-2.2-client-id-unique] [rfc6749-A-visible-ascii] [cimd-6.9-no-https-prefix] 100 equal registrations are 100 clients',
  async (t) => {
    const ids = new Set<unknown>()
    for (let count = 0; count < 100; count++) {
      const client = await register({ client_name: 'Same', token_endpoint_auth_method: 'client_secret_post' })
      ids.add(client['client_id'])
      t.match(client['client_id'], /^[\x20-\x7e]+$/, '[rfc6749-A-visible-ascii] client_id')
      t.notMatch(client['client_id'], /^https:/)
      t.match(client['client_secret'], /^[\x20-\x7e]+$/, '[rfc6749-A-visible-ascii] client_secret')
    }
    t.equal(ids.size, 100, '[rfc6749-2.2-client-id-unique]')
  },
)

t.test('[rfc6749-3.1.2-redirect-absolute] a relative redirect URI is rejected', async (t) => {
  await assertNothingStored(t, async () => {
    for (const uri of ['/cb', '127.0.0.1:80/cb', '//127.0.0.1/cb'])
      assertRejected(t, await post({ redirect_uris: [uri] }), 'invalid_redirect_uri', uri)
  })
})

t.test('[rfc6749-3.1.2-redirect-no-fragment] a redirect URI with a fragment is rejected', async (t) => {
  const { client_id: clientId } = await register({ redirect_uris: ['http://127.0.0.1:1/cb'] })
  for (const uri of ['http://127.0.0.1:1/cb#x', 'http://127.0.0.1:1/cb#']) {
    assertRejected(t, await post({ redirect_uris: [uri] }), 'invalid_redirect_uri', uri)
    assertNotSentAway(t, await authorize(clientId, { redirect_uri: uri }), uri)
  }
})

t.test(
  '[rfc6749-3.1.2.2-public-must-register] [rfc6749-3.1.2.2-all-register] every client registers a redirect URI',
  async (t) => {
    for (const method of ['none', 'client_secret_post', 'client_secret_basic']) {
      for (const grantTypes of [undefined, ['authorization_code']]) {
        const response = await post({ token_endpoint_auth_method: method, grant_types: grantTypes })
        const clause =
          method === 'none' ? '[rfc6749-3.1.2.2-public-must-register]' : '[rfc6749-3.1.2.2-all-register]'
        assertRejected(t, response, 'invalid_redirect_uri', `${clause} ${method}`)
      }
    }
  },
)

t.test('[rfc6749-3.1.2.2-multiple-uris] each of several redirect URIs works', async (t) => {
  const uris = ['http://127.0.0.1:1/one', 'http://127.0.0.1:1/two']
  const client = await register({ redirect_uris: uris })
  for (const uri of uris) t.ok(await mayAuthorize(client['client_id'], uri))
  const third = 'http://127.0.0.1:1/three'
  assertNotSentAway(t, await authorize(client['client_id'], { redirect_uri: third }), third)
})

t.test(
  '[rfc6749-10.1-no-shared-native-secret] [rfc7591-3.2.1-secret-unique] no two registrations share a secret',
  async (t) => {
    const metadata = {
      client_name: 'Same',
      application_type: 'native',
      token_endpoint_auth_method: 'client_secret_post',
    }
    const secrets = [await register(metadata), await register(metadata)].map(
      (client) => client['client_secret'],
    )
    t.type(secrets[0], 'string')
    t.not(secrets[0], secrets[1], '[rfc7591-3.2.1-secret-unique]')
    const open = await register({ token_endpoint_auth_method: 'none' })
    t.notOk('client_secret' in open, '[rfc6749-10.1-no-shared-native-secret]')
  },
)

t.test(
  '[rfc6749-3.1-no-duplicate-response-params] a redirect URI with a parameter of the response is rejected',
  async (t) => {
    for (const query of ['code=1', 'a=b&state=x', 'iss', '%73tate=x', 'error=no']) {
      const response = await post({ redirect_uris: [loopback, `${loopback}?${query}`] })
      assertRejected(t, response, 'invalid_redirect_uri', query)
    }
    await register({ redirect_uris: [`${loopback}?states=1&codex=2`] })
  },
)
