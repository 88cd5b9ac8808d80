import t from 'tap'
import type { Authenticated } from '../../src/domain/client-authentication.ts'
import type { Client } from '../../src/domain/model.ts'
import {
  assertAuthentication,
  assertBound,
  assertRequest,
  extraOfPush,
  grantRule,
  isAccepted,
  isProfiled,
  narrowMetadata,
  signedFor,
} from '../../src/specs/fapi2-security-profile/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { operatorClient, publicClient } from '../helpers/samples.ts'

const issuer = 'https://auth.example'
const keyed: Client = {
  ...operatorClient,
  authenticationMethod: 'private_key_jwt',
  idTokenSignedResponseAlg: 'ES256',
}

/** A JWT: the rules tested here do not verify its signature. */
function jwtOf(alg: string, claims: object): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  return `${encode({ alg })}.${encode(claims)}.c2ln`
}

t.test('the profile holds for chosen clients, or for every one that gets tokens', async (t) => {
  const chosen: Client = { ...keyed, extra: { security_profile: 'fapi2' } }
  for (const [client, profile, expected] of [
    [keyed, 'none', false],
    [{ ...keyed, extra: { security_profile: 'other' } }, 'none', false],
    [chosen, 'none', true],
    [publicClient, 'fapi2', true],
    [chosen, 'fapi2', true],
    [{ ...chosen, origin: 'resource-server' }, 'none', false],
    [{ ...keyed, origin: 'resource-server' }, 'fapi2', false],
  ] as const)
    t.equal(isProfiled(client, profile), expected, JSON.stringify([client.origin, client.extra, profile]))
})

t.test('RS256 is no algorithm of the profile', async (t) => {
  for (const name of ['PS256', 'ES256', 'EdDSA', 'Ed25519']) t.equal(isAccepted(name), true, name)
  for (const other of ['RS256', 'HS256', 'none', '', undefined, ['ES256']])
    t.equal(isAccepted(other), false, String(other))
  t.strictSame(signedFor(publicClient), ['RS256'])
  for (const [value, expected] of [
    ['RS256', ['ES256', 'RS256']],
    [7, ['ES256']],
  ] as const)
    t.strictSame(signedFor({ ...keyed, extra: { userinfo_signed_response_alg: value } }), expected)
})

t.test('codes of the profile last a minute, and its tokens have algorithms of it', async (t) => {
  t.strictSame(grantRule, {
    mostCodeSeconds: 60,
    keepsRefreshToken: true,
    thinIdToken: true,
    accessTokenAlgorithm: 'ES256',
    idTokenAlgorithms: ['ES256', 'EdDSA'],
  })
})

t.test('the metadata of such a server names one method, algorithms of the profile, and pushes', async (t) => {
  const methods = ['none', 'client_secret_basic', 'private_key_jwt']
  const unchanged = {
    issuer,
    scopes_supported: ['openid'],
    introspection_endpoint_auth_methods_supported: methods,
    other_token_endpoint_auth_methods_supported: methods,
    token_endpoint_auth_methods_supported_elsewhere: methods,
    _alg_values_supported_elsewhere: ['RS256'],
    other_alg_values_supported: 'RS256',
  }
  const members = {
    ...unchanged,
    token_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_methods_supported: methods,
    token_endpoint_auth_signing_alg_values_supported: ['RS256', 'PS256', 'ES256'],
    id_token_signing_alg_values_supported: ['RS256', 'EdDSA'],
    require_pushed_authorization_requests: false,
  }
  t.strictSame(narrowMetadata(members), {
    ...unchanged,
    token_endpoint_auth_methods_supported: ['private_key_jwt'],
    revocation_endpoint_auth_methods_supported: ['private_key_jwt'],
    token_endpoint_auth_signing_alg_values_supported: ['PS256', 'ES256'],
    id_token_signing_alg_values_supported: ['EdDSA'],
    require_pushed_authorization_requests: true,
  })
})

const own = { iss: keyed.id, aud: issuer }
const byAssertion = (alg: string, claims: object, client = keyed): Authenticated => ({
  client,
  proof: jwtOf(alg, claims),
  realm: { alwaysUnauthorized: false },
})

t.test('a client authenticates by an assertion of its own to this server alone', async (t) => {
  const found = (rule: string, text: string, received: string) => ({
    rule,
    found: text,
    stored: undefined,
    received,
  })
  t.strictSame(
    passedDuring(() => assertAuthentication(byAssertion('ES256', own), issuer)),
    [
      found('fapi2-5.3.2.1-confidential-clients', 'the client is confidential', 'private_key_jwt'),
      found('fapi2-5.3.2.1-client-authentication', 'the client authenticates by its own key', keyed.id),
      found('fapi2-5.3.2.1-assertion-audience', 'aud is the issuer', issuer),
      found('fapi2-5.4.1-algorithms', 'the algorithm of the assertion is one of the profile', 'ES256'),
    ],
  )
  const [method, audience] = ['fapi2-5.3.2.1-client-authentication', 'fapi2-5.3.2.1-assertion-audience']
  const byKey = 'FAPI 2.0: the client must authenticate by private_key_jwt, with a key of its own'
  const byAud = 'FAPI 2.0: aud must be the issuer, as a string'
  const secretClient: Client = { ...keyed, authenticationMethod: 'client_secret_basic' }
  const realm = { alwaysUnauthorized: false }
  const wrong: readonly [Authenticated, rule: string, message: string, received: unknown][] = [
    [
      { client: publicClient, proof: undefined, realm },
      'fapi2-5.3.2.1-confidential-clients',
      'FAPI 2.0: a public client gets no tokens',
      'none',
    ],
    [{ client: secretClient, proof: 'secret', realm }, method, byKey, 'client_secret_basic'],
    [byAssertion('ES256', own, secretClient), method, byKey, 'client_secret_basic'],
    [byAssertion('ES256', { ...own, iss: issuer }), method, byKey, issuer],
    [{ client: keyed, proof: undefined, realm }, method, byKey, undefined],
    [byAssertion('ES256', { ...own, aud: [issuer] }), audience, byAud, `["${issuer}"]`],
    [byAssertion('ES256', { iss: keyed.id }), audience, byAud, undefined],
    [
      byAssertion('RS256', own),
      'fapi2-5.4.1-algorithms',
      'FAPI 2.0: an assertion is signed with PS256, ES256 or EdDSA',
      'RS256',
    ],
  ]
  for (const [authenticated, rule, message, received] of wrong)
    t.throws(
      () => assertAuthentication(authenticated, issuer),
      { code: 'invalid_client', message, status: 400, headers: {}, detail: { rule, received, status: 400 } },
      message,
    )
})

t.test('introspection rejects a client with 401 and a challenge', async (t) => {
  const authenticated = { ...byAssertion('RS256', own), realm: { alwaysUnauthorized: true } }
  t.throws(() => assertAuthentication(authenticated, issuer), {
    code: 'invalid_client',
    status: 401,
    headers: { 'www-authenticate': 'Basic realm="lychgate"' },
    detail: { rule: 'fapi2-5.4.1-algorithms' },
  })
})

t.test('a request object that is pushed has an algorithm of the profile', async (t) => {
  const rule = 'fapi2-5.4.1-algorithms'
  const found = 'the request is signed with no other algorithm'
  for (const [parameters, received] of [
    [{ redirect_uri: 'https://app.example/cb' }, undefined],
    [{ request: jwtOf('PS256', {}) }, 'PS256'],
  ] as const) {
    t.strictSame(extraOfPush(parameters), { fapi2: true })
    t.strictSame(
      passedDuring(() => extraOfPush(parameters)),
      [{ rule, found, stored: undefined, received }],
    )
  }
  for (const [request, received] of [
    [jwtOf('RS256', {}), 'RS256'],
    ['no JWT', undefined],
  ] as const)
    t.throws(() => extraOfPush({ request }), {
      code: 'invalid_request',
      message: 'FAPI 2.0: a request object is signed with PS256, ES256 or EdDSA',
      detail: { rule, received },
    })
})

const pushedExtra = { fapi2: true }
const request = { redirect_uri: 'https://app.example/cb', code_challenge: 'c', scope: 'courses:read openid' }
const signed = (idToken: 'ES256' | 'RS256', userInfo?: string): Client => ({
  ...keyed,
  idTokenSignedResponseAlg: idToken,
  ...(userInfo !== undefined && { extra: { userinfo_signed_response_alg: userInfo } }),
})

t.test('a request is pushed, with its redirect URI and a code challenge', async (t) => {
  t.strictSame(
    passedDuring(() => assertRequest(keyed, pushedExtra, request)).map(({ rule, found }) => [rule, found]),
    [
      ['fapi2-5.3.2.2-require-par', 'the client pushed the request'],
      ['fapi2-5.3.2.2-redirect-uri-required', 'redirect_uri is present'],
      ['fapi2-5.3.2.2-pkce-s256', 'code_challenge is present'],
      ['rfc6749-3.3-scope-syntax', 'scope has a valid syntax'],
      ['fapi2-5.4.1-algorithms', 'ID Tokens have an algorithm of the profile'],
    ],
  )
  const push = 'FAPI 2.0: the client must push the request, and authenticate for that'
  for (const [extra, change, rule, message] of [
    [{}, {}, 'fapi2-5.3.2.2-require-par', push],
    [{ fapi2: 'true' }, {}, 'fapi2-5.3.2.2-require-par', push],
    [
      pushedExtra,
      { redirect_uri: undefined },
      'fapi2-5.3.2.2-redirect-uri-required',
      'FAPI 2.0: redirect_uri is missing',
    ],
    [
      pushedExtra,
      { code_challenge: undefined },
      'fapi2-5.3.2.2-pkce-s256',
      'FAPI 2.0: code_challenge is missing',
    ],
  ] as const)
    t.throws(
      () => assertRequest(keyed, extra, { ...request, ...change }),
      { code: 'invalid_request', message, detail: { rule } },
      message,
    )
})

t.test('a client with ID Tokens or UserInfo of RS256 cannot ask for openid', async (t) => {
  const withoutOpenid = { ...request, scope: 'courses:read' }
  for (const [client, parameters] of [
    [signed('ES256', 'EdDSA'), request],
    [signed('RS256', 'RS256'), withoutOpenid],
    [signed('RS256'), { ...request, scope: undefined }],
  ] as const)
    t.doesNotThrow(() => assertRequest(client, pushedExtra, parameters), String(parameters.scope))
  for (const client of [signed('RS256'), signed('ES256', 'RS256'), signed('RS256', 'ES256')])
    t.throws(() => assertRequest(client, pushedExtra, request), {
      code: 'unauthorized_client',
      message:
        'FAPI 2.0: ID Tokens or UserInfo of this client are signed with RS256 (id_token_signed_response_alg)',
      detail: { rule: 'fapi2-5.4.1-algorithms', stored: signedFor(client) },
    })
})

t.test('tokens are issued to a client that proves a key', async (t) => {
  const rule = 'fapi2-5.3.2.1-sender-constrained'
  const found = 'the tokens are bound to a key of the client'
  t.strictSame(
    passedDuring(() => assertBound({ jkt: 'a' })),
    [{ rule, found, stored: undefined, received: undefined }],
  )
  t.throws(() => assertBound(undefined), {
    code: 'invalid_dpop_proof',
    message: 'FAPI 2.0: tokens are bound to a key of the client; send a DPoP header',
    detail: { rule },
  })
})
