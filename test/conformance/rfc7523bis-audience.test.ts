/** Updates to RFC 7523 and RFC 9126 (draft-ietf-oauth-rfc7523bis): one audience, and a specific type. */
import t from 'tap'
import { type AssertionChange, makeClientKey, signAssertion, withAssertion } from '../helpers/assertions.ts'
import { type Fields, pkce, post } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { addClient, assertRejected, json } from '../helpers/wire.ts'

const server = await startServer(t)
const key = makeClientKey('ES256')
const client = await addClient(server, {
  authenticationMethod: 'private_key_jwt',
  grantTypes: ['authorization_code', 'client_credentials'],
  scope: ['openid', 'courses:read'],
  description: { jwks: { keys: [key.jwk] } },
})
const { issuer } = server
const metadata = await json(await fetch(`${issuer}/.well-known/oauth-authorization-server`))
const [tokenEndpoint, parEndpoint] = [
  String(metadata['token_endpoint']),
  String(metadata['pushed_authorization_request_endpoint']),
]

function assertionOf(change: AssertionChange): string {
  return signAssertion(key, { id: client.id, issuer, now: server.now() }, change)
}

function ask(change: AssertionChange, fields: Fields = {}): Promise<Response> {
  const sent = { grant_type: 'client_credentials', ...withAssertion(assertionOf(change)), ...fields }
  return post(server, new URL(tokenEndpoint).pathname, sent)
}

function push(change: AssertionChange): Promise<Response> {
  return post(server, new URL(parEndpoint).pathname, {
    response_type: 'code',
    redirect_uri: client.redirectUri,
    code_challenge: pkce('v'.repeat(43)).challenge,
    code_challenge_method: 'S256',
    ...withAssertion(assertionOf(change)),
  })
}

t.test('[rfc7523bis-4-issuer-identifier] the issuer of the metadata addresses this server', async (t) => {
  t.equal((await ask({ claims: { aud: metadata['issuer'] } })).status, 200)
})

t.test('[rfc7523bis-4-aud-sole-value] another audience, or a second one, is rejected', async (t) => {
  for (const aud of [undefined, '', 'https://other.example', [issuer, 'https://other.example'], [issuer], []])
    await assertRejected(t, await ask({ claims: { aud } }), 'invalid_client', 400, JSON.stringify(aud))
})

t.test(
  '[rfc7523bis-4-no-token-endpoint-audience] [bcpupdate-2.1.2-sole-audience-accepted] the token endpoint is not an audience',
  async (t) => {
    const alone = '[rfc7523bis-4-no-token-endpoint-audience]'
    const oneOfTwo = '[bcpupdate-2.1.2-sole-audience-accepted]'
    for (const [aud, clause] of [
      [tokenEndpoint, alone],
      [[tokenEndpoint], alone],
      [[issuer, tokenEndpoint], oneOfTwo],
    ])
      await assertRejected(t, await ask({ claims: { aud } }), 'invalid_client', 400, `${clause} ${aud}`)
  },
)

t.test('[rfc7523bis-4-simple-string-comparison] audiences are compared character by character', async (t) => {
  const { host } = new URL(issuer)
  for (const aud of [
    `${issuer}/`,
    issuer.toUpperCase(),
    issuer.replace('http', 'HTTP'),
    issuer.replace('localhost', 'LocalHost'),
    issuer.replace('localhost', '%6cocalhost'),
    `http://user@${host}`,
    ` ${issuer}`,
    `${issuer}#`,
  ])
    await assertRejected(t, await ask({ claims: { aud } }), 'invalid_client', 400, aud)
})

t.test(
  '[rfc7523bis-4-explicit-type] [rfc7523bis-4-untyped-accepted] the type is accepted and not required',
  async (t) => {
    for (const typ of ['client-authentication+jwt', 'application/client-authentication+jwt'])
      t.equal((await ask({ header: { typ } })).status, 200, `[rfc7523bis-4-explicit-type] ${typ}`)
    for (const typ of [undefined, 'JWT'])
      t.equal((await ask({ header: { typ } })).status, 200, `[rfc7523bis-4-untyped-accepted] ${typ}`)
    for (const typ of ['at+jwt', 'logout+jwt', 'oauth-authz-req+jwt', 'dpop+jwt'])
      await assertRejected(
        t,
        await ask({ header: { typ } }),
        'invalid_client',
        400,
        `[rfc7523bis-4-explicit-type] ${typ}`,
      )
  },
)

t.test(
  '[rfc7523bis-5-par-aud-sole-value] [rfc7523bis-5-par-explicit-type] pushed requests have the same rules',
  async (t) => {
    for (const aud of [parEndpoint, tokenEndpoint, [issuer, parEndpoint], 'https://other.example'])
      await assertRejected(
        t,
        await push({ claims: { aud } }),
        'invalid_client',
        400,
        `[rfc7523bis-5-par-aud-sole-value] ${aud}`,
      )
    for (const typ of ['client-authentication+jwt', undefined])
      t.equal((await push({ header: { typ } })).status, 201, `[rfc7523bis-5-par-explicit-type] ${typ}`)
  },
)

t.test('[rfc7523bis-3-no-saml-authentication] a SAML assertion authenticates no client', async (t) => {
  const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer'
  await assertRejected(t, await ask({}, { client_assertion_type }), 'invalid_client')
  t.notMatch(JSON.stringify(metadata['token_endpoint_auth_methods_supported']), /saml/i)
})
