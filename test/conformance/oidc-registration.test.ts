import t from 'tap'
import { ask, assertRejected, loopback, registrationAt } from '../helpers/registration.ts'
import { startServer } from '../helpers/server.ts'

const { issuer } = await startServer(t)
const { endpoint, post, register, mayAuthorize } = registrationAt(issuer)

t.test('[oidc-core-16.19-secret-entropy] a secret has at least 32 bytes', async (t) => {
  const { client_secret: secret } = await register({ token_endpoint_auth_method: 'client_secret_post' })
  const random = String(secret).split('_').slice(2).join('_')
  t.ok(Buffer.from(random, 'base64url').length >= 32)
})

t.test(
  '[oidc-reg-2-application-type-default] application_type is native for loopback redirects',
  async (t) => {
    t.equal((await register())['application_type'], 'native')
    t.equal((await register({ application_type: 'web' }))['application_type'], 'native')
    const { client_id: id } = await register()
    t.ok(await mayAuthorize(id, loopback.replace('7777', '51999')), 'so its port is free')
  },
)

t.test(
  '[oidc-reg-2-native-redirects] a native client cannot register redirects to other hosts',
  async (t) => {
    for (const uri of ['https://x/cb', 'http://x/cb']) {
      const response = await post({ application_type: 'native', redirect_uris: [uri] })
      assertRejected(t, response, 'invalid_redirect_uri', uri)
    }
  },
)

t.test('[oidc-reg-2-application-type-values] application_type is native or web', async (t) => {
  const response = await post({ redirect_uris: [loopback], application_type: 'desktop' })
  assertRejected(t, response, 'invalid_client_metadata', 'desktop')
})

t.test('an unsupported ID Token algorithm is rejected', async (t) => {
  for (const algorithm of ['XYZ', 'none', 'HS256']) {
    const response = await post({ redirect_uris: [loopback], id_token_signed_response_alg: algorithm })
    assertRejected(t, response, 'invalid_client_metadata', algorithm)
  }
})

t.test('[oidc-reg-2-subject-type] subject_type must be public', async (t) => {
  const response = await post({ redirect_uris: [loopback], subject_type: 'pairwise' })
  assertRejected(t, response, 'invalid_client_metadata', 'pairwise')
  await register({ subject_type: 'public' })
})

t.test('[oidc-reg-3-cors] pages of other origins may register', async (t) => {
  const { status, headers } = await ask(endpoint, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://app.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type',
    },
  })
  t.ok(status >= 200 && status < 300)
  t.equal(headers.get('access-control-allow-origin'), '*')
  t.match(headers.get('access-control-allow-methods'), 'POST')
  t.match(headers.get('access-control-allow-headers'), /content-type/i)
})

t.test('[rfc7523-2.2-registration] private_key_jwt without keys is rejected', async (t) => {
  const response = await post({ redirect_uris: [loopback], token_endpoint_auth_method: 'private_key_jwt' })
  assertRejected(t, response, 'invalid_client_metadata', 'private_key_jwt')
})
