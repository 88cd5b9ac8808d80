/**
 * The modules of the plan "FAPI2SP OP" of the OpenID suite (FAPI 2.0 Security Profile Final; private_key_jwt, DPoP, unsigned
 * requests, plain responses), each with the requests and the checks of the suite. The variants have a test file each.
 */
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { type AssertionChange, type ClientKey, makeClientKey, withAssertion } from '../helpers/assertions.ts'
import { claimsOf, type Fields, responseOf, signInAndApprove } from '../helpers/flow.ts'
import {
  addProfiled,
  ask,
  asking,
  assertionOf,
  authorized,
  browserAt,
  codeOf,
  dpopKey,
  type Party,
  parPath,
  proofFor,
  push,
  redemption,
  refreshing,
  requestOf,
  urlOf,
} from '../helpers/profiled-clients.ts'
import { signProof, thumbprintOf, tokenPath } from '../helpers/proofs.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { type Json, json } from '../helpers/wire.ts'

export type Variant = 'plain_oauth' | 'openid_connect' | 'client_credentials'

const prefix = 'fapi2-security-profile-final'

/** Tests the modules of a variant. */
export async function fapi2Plan(variant: Variant): Promise<void> {
  const server = await startServer(t, { profile: 'fapi2' })
  const [one, two] = [await addProfiled(server), await addProfiled(server, 'PS256')]
  const isOpenid = variant === 'openid_connect'
  const scope = { scope: isOpenid ? 'openid courses:read' : 'courses:read' }
  const api = `${server.issuer}/api/courses`
  const other = makeClientKey('ES256')

  const module = (name: string, test: (t: Test) => Promise<void>) => void t.test(`${prefix}-${name}`, test)
  const ofUsers = (name: string, test: (t: Test) => Promise<void>) =>
    variant === 'client_credentials' ? undefined : module(name, test)
  const ofOpenid = (name: string, test: (t: Test) => Promise<void>) =>
    isOpenid ? module(name, test) : undefined

  const pushed = (by: Party, fields: Fields = {}, proofs: readonly string[] = []) =>
    push(by, { ...scope, ...fields }, proofs)
  const responded = (by: Party, fields: Fields = {}, proofs: readonly string[] = []) =>
    authorized(by, { ...scope, ...fields }, proofs)
  const code = (by: Party, fields: Fields = {}, proofs: readonly string[] = []) =>
    codeOf(by, { ...scope, ...fields }, proofs)
  const narrow = { ...asking, scope: 'courses:read' }
  /** The token request of the variant, before it is sent. */
  const request = async (by: Party = one, fields: Fields = {}): Promise<Fields> =>
    variant === 'client_credentials' ? narrow : redemption(by, await code(by, fields))
  const tokens = async (by: Party = one, fields: Fields = {}): Promise<Json> => {
    const response = await ask(by, await request(by, fields))
    if (response.status !== 200) throw new Error(await response.text())
    return json(response)
  }

  interface Call {
    readonly proofs?: readonly string[]
    readonly scheme?: string
    readonly url?: string
    readonly header?: string
  }
  const proofOf = (token: string, what: AssertionChange = {}, by: ClientKey = dpopKey, url = api) =>
    signProof(by, { method: 'GET', url, now: server.now(), token }, what)
  const call = (
    token: string,
    { proofs = [proofOf(token)], scheme = 'DPoP', url = api, header = 'dpop' }: Call = {},
  ) => {
    const headers = new Headers({ authorization: `${scheme} ${token}` })
    for (const proof of proofs) headers.append(header, proof)
    return fetch(url, { headers })
  }
  const tokenOf = (given: Json) => String(given['access_token'])
  const isError = async (t: Test, response: Response, errors: readonly string[], about = 'an error') => {
    t.ok(response.status === 400 || response.status === 401, `${about}: ${response.status}`)
    t.match(response.headers.get('content-type'), /^application\/json/, about)
    const { error } = await json(response)
    t.ok(errors.includes(String(error)), `${about}: ${error}`)
  }
  /** The error of a request that is pushed, or else of the authorization endpoint. */
  const notPushed = async (t: Test, fields: Fields, errors: readonly string[]) =>
    isError(t, await pushed(one, fields), errors)
  const withClaims = (claims: Json, by = one) => withAssertion(assertionOf(by, { claims }))

  module('discovery-end-point-verification', async (t) => {
    const kind = isOpenid ? 'openid-configuration' : 'oauth-authorization-server'
    const metadata = await json(await fetch(`${server.issuer}/.well-known/${kind}`))
    t.equal(metadata['issuer'], server.issuer)
    t.match(metadata, {
      authorization_response_iss_parameter_supported: true,
      require_pushed_authorization_requests: true,
      token_endpoint: String,
      authorization_endpoint: String,
      jwks_uri: String,
      pushed_authorization_request_endpoint: String,
    })
    const has = (name: string, value: string) =>
      t.ok((metadata[name] as string[]).includes(value), `${name}: ${value}`)
    has('response_types_supported', 'code')
    has(
      'grant_types_supported',
      variant === 'client_credentials' ? 'client_credentials' : 'authorization_code',
    )
    has('token_endpoint_auth_methods_supported', 'private_key_jwt')
    has('code_challenge_methods_supported', 'S256')
    has('dpop_signing_alg_values_supported', 'ES256')
    for (const name of [
      'dpop_signing_alg_values_supported',
      'token_endpoint_auth_signing_alg_values_supported',
    ])
      for (const alg of metadata[name] as string[]) t.match(alg, /^(?:PS256|ES256|EdDSA|Ed25519)$/, name)
    if (!isOpenid) return
    has('scopes_supported', 'openid')
    has('subject_types_supported', 'public')
  })

  module('happy-flow', async (t) => {
    for (const by of [one, two]) {
      // The second client names the key of its code by dpop_jkt alone, and has a nonce of 43 characters.
      const more =
        by === two ? { dpop_jkt: thumbprintOf(dpopKey), ...(isOpenid && { nonce: 'n'.repeat(43) }) } : {}
      const given = await tokens(by, more)
      t.match(given, { token_type: 'DPoP', access_token: /./, expires_in: Number })
      t.equal(typeof given['id_token'], isOpenid ? 'string' : 'undefined')
      const token = tokenOf(given)
      t.equal((await call(token)).status, 200)
      const inQuery = await fetch(`${api}?access_token=${token}`)
      t.notMatch(await inQuery.text(), '"caller":"user"', 'a token in the query is none')
      for (const headers of [
        { accept: 'application/json;charset=utf-8' },
        { 'x-fapi-customer-ip-address': '2001:db8::1' },
      ])
        t.equal(
          (
            await fetch(api, {
              headers: { ...headers, authorization: `DPoP ${token}`, dpop: proofOf(token) },
            })
          ).status,
          200,
        )
    }
    if (!isOpenid) return
    const nonce = 'a-nonce'
    const claims = claimsOf(String((await tokens(one, { nonce }))['id_token']))
    t.match(claims, { iss: server.issuer, aud: one.client.id, nonce, sub: /./ })
  })

  ofUsers('user-rejects-authentication', async (t) => {
    const user = newUser(server)
    const careful = await addProfiled(server, 'ES256', {}, { consent: 'always' })
    const { request_uri: uri } = await json(await pushed(careful))
    const location = await user.deny(urlOf(careful, { request_uri: String(uri) }))
    t.match(Object.fromEntries(location.searchParams), {
      error: 'access_denied',
      state: 'a-state',
      iss: server.issuer,
    })
  })

  ofUsers('ensure-authorization-request-without-state-success', async (t) => {
    const location = await responded(one, { state: undefined })
    t.match(location.searchParams.get('code'), /./)
    t.equal(location.searchParams.get('state'), null)
  })

  ofOpenid('ensure-authorization-request-without-nonce-success', async (t) => {
    const { id_token: jws } = await tokens(one)
    t.notOk('nonce' in claimsOf(String(jws)))
  })

  for (const [name, length] of [
    ['ensure-authorization-request-with-64-char-nonce-success', 64],
    ['ensure-authorization-request-with-long-nonce', 384],
  ] as const)
    ofOpenid(name, async (t) => {
      const nonce = 'n'.repeat(length)
      t.equal(claimsOf(String((await tokens(one, { nonce }))['id_token']))['nonce'], nonce)
    })

  ofUsers('ensure-other-scope-order-succeeds', async (t) => {
    const reversed = scope.scope.split(' ').reverse().join(' ')
    t.match(await tokens(one, { scope: reversed }), { token_type: 'DPoP' })
  })

  ofOpenid('test-claims-parameter-identity-claims', async (t) => {
    const claims = {
      userinfo: { name: null, unknown_claim: { essential: true } },
      id_token: { sub: null, other: null },
    }
    const given = await tokens(one, { claims: JSON.stringify(claims) })
    t.match(claimsOf(String(given['id_token'])), { sub: /./ })
    const url = `${server.issuer}/api/oauth/userinfo`
    const proofs = [proofOf(tokenOf(given), {}, dpopKey, url)]
    const info = await call(tokenOf(given), { url, proofs })
    t.equal(info.status, 200)
    t.match(await json(info), { sub: /./ })
  })

  module('access-token-type-header-case-sensitivity', async (t) => {
    const token = tokenOf(await tokens())
    for (const scheme of ['dpop', 'DPOP', 'DpOp'])
      t.equal((await call(token, { scheme })).status, 200, scheme)
  })

  module('check-dpop-proof-nbf-exp', async (t) => {
    const claims = { nbf: server.now(), exp: server.now() + 300 }
    const response = await ask(one, await request(), tokenPath, [proofFor(server, tokenPath, { claims })])
    const token = tokenOf(await json(response))
    t.equal((await call(token, { proofs: [proofOf(token, { claims })] })).status, 200)
  })

  for (const [name, seconds] of [
    ['ensure-dpopproof-with-iat-10seconds-before-succeeds', -10],
    ['ensure-dpopproof-with-iat-10seconds-after-succeeds', 10],
  ] as const)
    module(name, async (t) => {
      const claims = { iat: server.now() + seconds }
      const at = (path: string) => [proofFor(server, path, { claims: { ...claims } })]
      const sent =
        variant === 'client_credentials' ? narrow : redemption(one, await code(one, {}, at(parPath)))
      const response = await ask(one, sent, tokenPath, at(tokenPath))
      t.equal(response.status, 200)
      const token = tokenOf(await json(response))
      t.equal((await call(token, { proofs: [proofOf(token, { claims })] })).status, 200)
    })

  ofUsers('ensure-mismatched-dpop-jkt-fails', async (t) => {
    const response = await pushed(one, { dpop_jkt: thumbprintOf(other) }, [proofFor(server, parPath)])
    await isError(t, response, ['invalid_request', 'invalid_dpop_proof'])
  })

  ofUsers('ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt', async (t) => {
    const bound = await code(one, {}, [proofFor(server, parPath)])
    const proofs = [proofFor(server, tokenPath, {}, other)]
    const response = await ask(one, redemption(one, bound), tokenPath, proofs)
    await isError(t, response, ['invalid_grant', 'invalid_dpop_proof'])
  })

  ofUsers('ensure-token-endpoint-fails-with-mismatched-dpop-jkt', async (t) => {
    const bound = await code(one, { dpop_jkt: thumbprintOf(other) })
    await isError(t, await ask(one, redemption(one, bound)), ['invalid_grant', 'invalid_dpop_proof'])
  })

  ofUsers('ensure-dpopproof-at-par-endpoint-binding-success', async (t) => {
    const bound = await code(one, {}, [proofFor(server, parPath)])
    t.equal((await ask(one, redemption(one, bound))).status, 200)
  })

  ofUsers('ensure-dpop-auth-code-binding-success', async (t) => {
    const bound = await code(one, { dpop_jkt: thumbprintOf(dpopKey) }, [proofFor(server, parPath)])
    t.equal((await ask(one, redemption(one, bound))).status, 200)
  })

  /** Opens a pushed request with more parameters in the URL. */
  async function opened(fields: Fields, url: Fields): Promise<URL> {
    const { request_uri: uri } = await json(await pushed(one, fields))
    const agent = browserAt(server)
    return signInAndApprove(agent, await agent.open(urlOf(one, { ...url, request_uri: String(uri) })))
  }

  ofOpenid('ensure-different-nonce-inside-and-outside-request-object', async (t) => {
    const location = await opened({ nonce: 'inside' }, { nonce: 'outside' })
    const response = await ask(one, redemption(one, String(location.searchParams.get('code'))))
    t.equal(claimsOf(String((await json(response))['id_token']))['nonce'], 'inside')
  })

  ofUsers('ensure-different-state-inside-and-outside-request-object', async (t) => {
    const location = await opened({ state: 'inside' }, { state: 'outside' })
    t.equal(location.searchParams.get('state'), 'inside')
    t.match(location.searchParams.get('code'), /./)
  })

  ofUsers('ensure-authorization-request-with-long-state', async (t) => {
    const state = 's'.repeat(1000)
    const location = await responded(one, { state })
    t.equal(location.searchParams.get('state'), state)
  })

  ofUsers('state-only-outside-request-object-not-used', async (t) => {
    const location = await opened({ state: undefined }, { state: 'outside' })
    t.equal(location.searchParams.get('state'), null)
  })

  for (const name of [
    'ensure-request-object-without-redirect-uri-fails',
    'ensure-redirect-uri-in-authorization-request',
  ])
    ofUsers(name, async (t) => notPushed(t, { redirect_uri: undefined }, ['invalid_request']))

  ofUsers('plain-fapi-tolerate-unregistered-redirect-uri', async (t) => {
    await notPushed(t, { redirect_uri: `${one.client.redirectUri}/unregistered` }, [
      'invalid_request',
      'invalid_redirect_uri',
    ])
  })

  ofUsers('ensure-unsigned-authorization-request-without-using-par-fails', async (t) => {
    const response = await new UserAgent(server.issuer).send(urlOf(one, { ...requestOf(one), ...scope }))
    t.match(responseOf(response), { error: 'invalid_request', state: 'a-state', iss: server.issuer })
  })

  for (const [name, type] of [
    ['ensure-response-type-code-idtoken-fails', 'code id_token'],
    ['ensure-response-type-token-fails', 'token'],
  ] as const)
    ofUsers(name, async (t) =>
      notPushed(t, { response_type: type }, [
        'invalid_request',
        'unsupported_response_type',
        'unauthorized_client',
      ]),
    )

  module('ensure-client-id-in-token-endpoint', async (t) => {
    const sent = await request()
    // The client_id of the second client, with an assertion about it by the key of the first one.
    const mixed = { client: two.client, key: one.key, of: server }
    await isError(t, await ask(mixed, sent), ['invalid_client', 'invalid_grant'])
    t.equal((await ask(one, sent)).status, 200, 'nothing was used up')
  })

  module('ensure-holder-of-key-required', async (t) => {
    await isError(t, await ask(one, await request(), tokenPath, []), [
      'invalid_request',
      'invalid_dpop_proof',
      'invalid_grant',
    ])
  })

  ofUsers('ensure-authorization-code-is-bound-to-client', async (t) => {
    const mine = await code(one)
    await isError(t, await ask(two, redemption(two, mine)), ['invalid_grant'])
  })

  ofUsers('attempt-reuse-authorization-code-after-one-second', async (t) => {
    const sent = await request()
    const token = tokenOf(await json(await ask(one, sent)))
    server.advance(1)
    await isError(t, await ask(one, sent), ['invalid_grant'])
    t.equal((await call(token)).status, 401, 'the token is revoked')
  })

  ofUsers('ensure-token-endpoint-fails-with-expired-auth-code', async (t) => {
    const sent = await request()
    server.advance(61)
    await isError(t, await ask(one, sent), ['invalid_grant'])
  })

  module('ensure-signed-client-assertion-with-RS256-fails', async (t) => {
    const rsa = await addProfiled(server, 'RS256')
    const sent = variant === 'client_credentials' ? narrow : redemption(rsa, 'x')
    await isError(t, await ask(rsa, sent), ['invalid_client'])
    const forged = { ...one, key: { ...rsa.key, jwk: { ...rsa.key.jwk, kid: one.key.jwk['kid'] } } }
    await isError(t, await ask(forged, await request()), ['invalid_client'])
  })

  module('ensure-client-assertion-in-token-endpoint', async (t) => {
    const none = { client_assertion: undefined, client_assertion_type: undefined }
    await isError(t, await ask(one, { ...(await request()), ...none }), ['invalid_client', 'invalid_request'])
  })

  for (const [name, change] of [
    ['ensure-client-assertion-with-exp-is-5-minutes-in-past-fails', () => ({ exp: server.now() - 300 })],
    ['ensure-client-assertion-with-wrong-aud-fails', () => ({ aud: 'https://other.example/' })],
    ['ensure-client-assertion-with-no-sub-fails', () => ({ sub: undefined })],
  ] as const)
    module(name, async (t) => {
      const sent = await request()
      await isError(t, await ask(one, { ...sent, ...withClaims(change()) }), ['invalid_client'])
      t.equal((await ask(one, sent)).status, 200, 'by a correct one')
    })

  module('dpop-negative-tests', async (t) => {
    const token = tokenOf(await tokens())
    t.equal((await call(token, { header: 'DPOP' })).status, 200, 'a header field in capitals')
    const { jwk } = dpopKey
    const whole = proofOf(token)
    const [header = '', claims = '', signature = ''] = proofOf(token).split('.')
    const text = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const { kid: _, ...bare } = jwk
    const privateJwk = dpopKey.privateKey.export({ format: 'jwk' })
    const now = server.now()
    const without = (name: string) => proofOf(token, { claims: { [name]: undefined } })
    const bad: Record<string, readonly string[]> = {
      'more than one header': [whole, proofOf(token)],
      'not a JWT': [`${header}.${claims}`],
      'no typ': [proofOf(token, { header: { typ: undefined } })],
      'no alg': [`${text({ typ: 'dpop+jwt', jwk: bare })}.${claims}.${signature}`],
      'no jwk': [proofOf(token, { header: { jwk: undefined } })],
      ...Object.fromEntries(
        ['jti', 'htm', 'htu', 'iat', 'ath'].map((name) => [`no ${name}`, [without(name)]]),
      ),
      'another typ': [proofOf(token, { header: { typ: 'jwt' } })],
      RS256: [proofOf(token, {}, makeClientKey('RS256'))],
      none: [`${text({ typ: 'dpop+jwt', alg: 'none', jwk: bare })}.${claims}.`],
      'another signature': [`${header}.${claims}.${'A'.repeat(86)}`],
      'a private key': [proofOf(token, { header: { jwk: privateJwk } })],
      'another htm': [proofOf(token, { claims: { htm: 'PUT' } })],
      'another htu': [proofOf(token, { claims: { htu: 'https://example.com/' } })],
      'iat of the future': [proofOf(token, { claims: { iat: now + 3600 } })],
      'iat of the past': [proofOf(token, { claims: { iat: now - 3600 } })],
      'another ath': [
        proofOf(token, { claims: { ath: createHash('sha256').update('x').digest('base64url') } }),
      ],
      'another key': [proofOf(token, {}, other)],
      'no proof': [],
    }
    for (const [about, proofs] of Object.entries(bad)) {
      const response = await call(token, { proofs })
      t.ok([400, 401].includes(response.status), `${about}: ${response.status}`)
      t.match(response.headers.get('www-authenticate'), /^DPoP /, about)
    }
    const asBearer = await call(token, { proofs: [], scheme: 'Bearer' })
    t.equal(asBearer.status, 401, 'as a bearer token')
    const fixed = { claims: { jti: 'a fixed jti' } }
    t.equal((await call(token, { proofs: [proofOf(token, fixed)] })).status, 200, 'the first use of a jti')
    t.equal((await call(token, { proofs: [proofOf(token, fixed)] })).status, 401, 'the second use of a jti')
    const host = new URL(api)
    for (const [about, what] of Object.entries<AssertionChange>({
      'htu with query and fragment': { claims: { htu: `${api}?a=b#c` } },
      'htu in capitals': { claims: { htu: api.replace(host.origin, host.origin.toUpperCase()) } },
      'unknown members': { header: { extra: 1 }, claims: { extra: { a: 1 } } },
    }))
      t.equal((await call(token, { proofs: [proofOf(token, what)] })).status, 200, about)
    t.equal((await call(token, { url: `${api}?dummy1=lorem` })).status, 200, 'a URL with a query')
    t.equal((await call(token)).status, 200, 'a correct proof still works')
  })

  ofUsers('refresh-token', async (t) => {
    for (const by of [one, two]) {
      const given = await tokens(by)
      const again = async (fields: Fields = {}) =>
        json(await ask(by, { ...refreshing(given), ...scope, ...fields }))
      server.advance(1)
      const next = await again()
      t.match(next, { token_type: 'DPoP', access_token: /./ })
      t.equal(next['refresh_token'], given['refresh_token'], 'it is not rotated')
      t.not(next['access_token'], given['access_token'])
      t.equal((await call(tokenOf(next))).status, 200)
      if (isOpenid) {
        const [before, after] = [given, next].map((one) => claimsOf(String(one['id_token'])))
        for (const name of ['iss', 'sub', 'aud', 'azp', 'auth_time'])
          t.strictSame(after?.[name], before?.[name], name)
      } else t.notOk('id_token' in next)
      const none = { client_assertion: undefined, client_assertion_type: undefined }
      await isError(t, await ask(by, { ...refreshing(given), ...none }), [
        'invalid_client',
        'invalid_request',
      ])
      await isError(t, await ask(by, refreshing(given), tokenPath, []), [
        'invalid_request',
        'invalid_dpop_proof',
        'invalid_grant',
      ])
      await isError(
        t,
        await ask(by === one ? two : one, refreshing(given)),
        ['invalid_grant'],
        'another client',
      )
    }
  })

  ofUsers('par-ensure-reused-request-uri-prior-to-auth-completion-succeeds', async (t) => {
    const { request_uri: uri } = await json(await pushed(one))
    const url = urlOf(one, { request_uri: String(uri) })
    const agent = new UserAgent(server.issuer)
    const first = await agent.open(url)
    t.equal(first.at, 'page', 'no sign-in yet')
    const location = await signInAndApprove(agent, await agent.open(url))
    t.match(location.searchParams.get('code'), /./)
  })

  ofUsers('par-attempt-reuse-request_uri', async (t) => {
    const { request_uri: uri } = await json(await pushed(one))
    const url = urlOf(one, { request_uri: String(uri) })
    const agent = browserAt(server)
    t.match((await signInAndApprove(agent, await agent.open(url))).searchParams.get('code'), /./)
    await noCode(t, url, 'a second time')
  })

  /** Asserts that a reference gives no code: an error page or an error response. */
  async function noCode(t: Test, url: string, about: string): Promise<void> {
    const response = await browserAt(server).send(url)
    const location = response.headers.get('location')
    if (location === null) t.equal(response.status, 400, about)
    else t.match(responseOf(response), { error: /^invalid_request(?:_uri)?$/ }, about)
  }

  ofUsers('par-attempt-to-use-expired-request_uri', async (t) => {
    const { request_uri: uri, expires_in: seconds } = await json(await pushed(one))
    t.ok(Number(seconds) < 600)
    server.advance(Number(seconds) + 1)
    await noCode(t, urlOf(one, { request_uri: String(uri) }), 'expired')
  })

  ofUsers('par-attempt-to-use-request_uri-for-different-client', async (t) => {
    const { request_uri: uri } = await json(await pushed(one))
    await noCode(t, urlOf(two, { request_uri: String(uri) }), 'of another client')
  })

  ofUsers('par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted', async (t) => {
    const times = { nbf: server.now() + 8, iat: server.now() + 8 }
    t.equal((await pushed(one, withClaims(times))).status, 201)
  })

  ofUsers('par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails', async (t) => {
    const at = server.now() + 70
    await notPushed(t, withClaims({ nbf: at, iat: at, exp: at + 60 }), ['invalid_request', 'invalid_client'])
  })

  ofUsers('par-authorization-request-containing-request_uri-form-param', async (t) => {
    const uri = 'urn:ietf:params:oauth:request_uri:random'
    await notPushed(t, { request_uri: uri }, [
      'invalid_request',
      'invalid_request_uri',
      'invalid_request_object',
    ])
  })

  ofUsers('par-attempt-invalid-http-method', async (t) => {
    const response = await fetch(server.issuer + parPath, { method: 'PUT' })
    t.ok(response.status >= 400 && response.status < 500, String(response.status))
  })

  ofUsers('par-ensure-pkce-required', async (t) =>
    notPushed(t, { code_challenge: undefined, code_challenge_method: undefined }, ['invalid_request']),
  )

  ofUsers('par-plain-pkce-rejected', async (t) =>
    notPushed(t, { code_challenge: 'v'.repeat(43), code_challenge_method: 'plain' }, ['invalid_request']),
  )

  ofUsers('ensure-pkce-code-verifier-required', async (t) => {
    await isError(t, await ask(one, { ...(await request()), code_verifier: undefined }), ['invalid_grant'])
  })

  ofUsers('incorrect-pkce-code-verifier-rejected', async (t) => {
    await isError(t, await ask(one, { ...(await request()), code_verifier: 'x'.repeat(43) }), [
      'invalid_grant',
    ])
  })

  ofUsers('par-without-duplicate-parameters', async (t) => {
    const location = await responded(one)
    t.match(location.searchParams.get('code'), /./, 'client_id and request_uri suffice')
  })

  for (const [name, aud] of [
    ['par-test-array-as-audience-fails', [server.issuer]],
    ['par-test-par-endpoint-url-as-audience-fails', server.issuer + parPath],
    ['par-test-token-endpoint-url-as-audience-fails', server.issuer + tokenPath],
  ] as const)
    ofUsers(name, async (t) => notPushed(t, withClaims({ aud }), ['invalid_request', 'invalid_client']))
}
