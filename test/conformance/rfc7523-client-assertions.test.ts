import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { remove } from '../../src/domain/decision.ts'
import {
  type AssertionAlgorithm,
  type AssertionChange,
  type ClientKey,
  makeClientKey,
  signAssertion,
  withAssertion,
} from '../helpers/assertions.ts'
import { type Fields, pkce, post } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startServer } from '../helpers/server.ts'
import { addClient, assertRejected, json } from '../helpers/wire.ts'

const server = await startServer(t, { fetch: { privateNetworks: ['127.0.0.0/8', '::1'] } })
const key = makeClientKey('ES256')
const tokenPath = '/api/oauth/token'
const asking = { grant_type: 'client_credentials' }

/** A client of an operator that has these keys. */
function add(keys: readonly ClientKey[], members: Readonly<Record<string, unknown>> = {}, to = server) {
  return addClient(to, {
    authenticationMethod: 'private_key_jwt',
    grantTypes: ['authorization_code', 'client_credentials'],
    scope: ['openid', 'courses:read'],
    description: { ...(keys.length > 0 && { jwks: { keys: keys.map(({ jwk }) => jwk) } }), ...members },
  })
}

const client = await add([key])

function assertionOf(change: AssertionChange = {}, id = client.id, by = key, of = server): string {
  return signAssertion(by, { id, issuer: of.issuer, now: of.now() }, change)
}

/** Asks for a token with this assertion. */
function ask(
  assertion = assertionOf(),
  fields: Fields = {},
  path = tokenPath,
  of = server,
): Promise<Response> {
  return post(of, path, { ...(path === tokenPath && asking), ...withAssertion(assertion), ...fields })
}

/** Asserts that an assertion is rejected, and that the log says by which rule. */
async function assertFails(t: Test, response: Response, rule: string, about: string, status = 400) {
  await assertRejected(t, response, 'invalid_client', status, about)
  const line = server.log.findLast((text) => text.includes('invalid_client'))
  t.match(line, `"${rule}"`, `${about}: ${rule}`)
}

t.test('[rfc7523-2.2-parameters] a client authenticates with a JWT that it signed, once', async (t) => {
  const assertion = assertionOf()
  const response = await ask(assertion)
  t.equal(response.status, 200)
  t.type((await json(response))['access_token'], 'string')
  await assertFails(t, await ask(assertion), 'rfc7523-3-jti-replay', '[rfc7523-3-jti-replay] the same again')
  t.equal((await ask(assertionOf(), { client_id: client.id })).status, 200, '[rfc7523-3-client-id-agrees]')
})

t.test('[rfc7523-2.2-parameters] anything but one assertion of the one type is rejected', async (t) => {
  const rule = 'rfc7523-2.2-parameters'
  const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
  const both = { client_assertion: undefined, client_assertion_type: undefined }
  for (const wrong of [undefined, 'jwt-bearer', `${type}2`, type.toUpperCase()])
    await assertFails(t, await ask(assertionOf(), { client_assertion_type: wrong }), rule, String(wrong))
  const [header, claims] = assertionOf().split('.')
  for (const wrong of [
    undefined,
    'x',
    'a.b.c',
    `${header}.${claims}.`,
    `${header}.${claims}`,
    `${assertionOf()}.x`,
  ])
    await assertFails(t, await ask('', { client_assertion: wrong }), rule, String(wrong).slice(0, 10))
  const latin1 = `${header}.${Buffer.from('{"sub":"\xe9"}', 'latin1').toString('base64url')}.AAAA`
  await assertFails(t, await ask(latin1), rule, 'not UTF-8')
  const repeated = { client_assertion: [assertionOf(), assertionOf()] }
  await assertRejected(t, await ask('', repeated), 'invalid_request', 400, 'two assertions')
  const alone = await post(server, tokenPath, { ...asking, ...both, client_id: client.id })
  await assertRejected(t, alone, 'invalid_client', 400, 'no assertion')
  const secret = { client_secret: 'a secret' }
  await assertRejected(t, await ask(assertionOf(), secret), 'invalid_request', 400, 'a secret as well')
})

t.test(
  '[rfc7523-3.2-error] [rfc7523-3-iss-sub] [rfc7523-3-aud] [rfc7523-3-client-id-agrees] a wrong claim is invalid_client, and the log has its rule',
  async (t) => {
    const wrong: readonly (readonly [string, NonNullable<AssertionChange['claims']>])[] = [
      ['rfc7523-3-iss-sub', { iss: undefined }],
      ['rfc7523-3-iss-sub', { iss: 'client_other' }],
      ['rfc7523-3-iss-sub', { iss: server.issuer }],
      ['rfc7523-3-iss-sub', { sub: undefined }],
      ['rfc7523-3-iss-sub', { sub: '' }],
      ['rfc7523-3-iss-sub', { sub: ['x'] }],
      ['rfc7523-3-iss-sub', { sub: 'a\u0000b' }],
      ['rfc7523-3-aud', { aud: undefined }],
      ['rfc7523-3-aud', { aud: 'https://other.example' }],
      ['rfc7523-3-aud', { aud: `${server.issuer}/` }],
      ['rfc7523-3-aud', { aud: [server.issuer] }],
      ['rfc7523-3-aud', { aud: [server.issuer, 'https://other.example'] }],
      ['rfc7523-3-aud', { aud: server.issuer + tokenPath }],
      ['rfc7523-3-jti-replay', { jti: undefined }],
      ['rfc7523-3-jti-replay', { jti: '' }],
      ['rfc7523-3-jti-replay', { jti: 7 }],
      ['rfc7523-3-jti-replay', { jti: 'j'.repeat(257) }],
    ]
    for (const [rule, claims] of wrong)
      await assertFails(
        t,
        await ask(assertionOf({ claims })),
        rule,
        `[${rule}] ${JSON.stringify(claims).slice(0, 60)}`,
      )
    const whyOf = async (aud: unknown) => {
      await ask(assertionOf({ claims: { aud } }))
      return server.log.findLast((text) => text.includes('invalid_client'))
    }
    t.match(await whyOf(server.issuer + tokenPath), 'lychgate client set --legacy-audience true accepts it')
    t.match(await whyOf([server.issuer]), 'lychgate client set --legacy-audience true accepts it')
    t.notMatch(await whyOf('https://other.example'), 'legacy-audience')
    const other = await ask(assertionOf(), { client_id: 'client_other' })
    await assertFails(t, other, 'rfc7523-3-client-id-agrees', '[rfc7523-3-client-id-agrees]')
    const late = await ask(assertionOf({ claims: { exp: server.now() - 60 } }))
    await assertRejected(t, late, 'invalid_client', 400, '[rfc7523-3.2-error]')
  },
)

t.test('[rfc7523-3-exp] [rfc7523-3-nbf-iat] ten seconds of skew are accepted, and no more', async (t) => {
  const now = server.now()
  for (const claims of [
    { exp: now - 8 },
    { exp: now + 600 },
    { nbf: now + 9 },
    { iat: now + 9 },
    { iat: undefined },
    { iat: 1 },
    { exp: now + 60.5 },
  ])
    t.equal((await ask(assertionOf({ claims }))).status, 200, JSON.stringify(claims))
  const wrong: readonly (readonly [string, NonNullable<AssertionChange['claims']>])[] = [
    ['rfc7523-3-exp', { exp: undefined }],
    ['rfc7523-3-exp', { exp: String(now + 60) }],
    ['rfc7523-3-exp', { exp: now - 61 }],
    ['rfc7523-3-exp', { exp: now - 11 }],
    ['rfc7523-3-exp', { exp: now + 700 }],
    ['rfc7523-3-exp', { exp: 1e300 }],
    ['rfc7523-3-nbf-iat', { nbf: now + 300 }],
    ['rfc7523-3-nbf-iat', { nbf: now + 61 }],
    ['rfc7523-3-nbf-iat', { iat: now + 61 }],
    ['rfc7523-3-nbf-iat', { iat: 'now' }],
  ]
  for (const [rule, claims] of wrong)
    await assertFails(t, await ask(assertionOf({ claims })), rule, `[${rule}] ${JSON.stringify(claims)}`)
})

t.test('[rfc7523-3-signature] only the registered key counts, by its own algorithm', async (t) => {
  const rule = 'rfc7523-3-signature'
  const stranger = makeClientKey('ES256')
  await assertFails(t, await ask(assertionOf({}, client.id, stranger)), rule, 'the key of another')
  await assertFails(t, await ask(assertionOf({ header: { kid: 'other' } })), rule, 'an unknown kid')
  await assertFails(t, await ask(assertionOf({ header: { kid: ['ES256'] } })), rule, 'kid is no string')
  t.equal((await ask(assertionOf({ header: { kid: undefined } }))).status, 200, 'kid may be left out of one')
  const both = await add([key, makeClientKey('ES256', 'second')])
  const nameless = assertionOf({ header: { kid: undefined } }, both.id)
  await assertFails(t, await ask(nameless), rule, 'kid chooses between several')
  const [header, claims, signature = ''] = assertionOf().split('.')
  const broken = Buffer.from(signature, 'base64url')
  broken.writeUInt8(broken.readUInt8(9) ^ 1, 9)
  await assertFails(t, await ask(`${header}.${claims}.${broken.toString('base64url')}`), rule, 'one bit')
  await assertFails(t, await ask(`${header}.${claims}.AAAA`), rule, 'too short')
  const later = Buffer.from(
    JSON.stringify({ ...JSON.parse(Buffer.from(claims ?? '', 'base64url').toString()), jti: 'x' }),
  )
  await assertFails(
    t,
    await ask(`${header}.${later.toString('base64url')}.${signature}`),
    rule,
    'other claims',
  )
})

t.test('[rfc7523-3-alg-registered] the header does not choose the algorithm', async (t) => {
  const rule = 'rfc7523-3-alg-registered'
  for (const alg of ['none', 'HS256', 'RS256', 'ES384', 'es256', undefined, ['ES256']])
    await assertFails(t, await ask(assertionOf({ header: { alg } })), rule, String(alg))
  // The public key as the secret of an HMAC, RFC 8725 §2.1.
  const rsa = makeClientKey('RS256')
  const confused = await add([rsa])
  const [, claims] = assertionOf({}, confused.id, rsa).split('.')
  const header = Buffer.from(JSON.stringify({ alg: 'HS256', kid: 'RS256' })).toString('base64url')
  const mac = createHmac('sha256', JSON.stringify(rsa.jwk)).update(`${header}.${claims}`).digest('base64url')
  await assertFails(t, await ask(`${header}.${claims}.${mac}`), rule, 'HMAC with the public key')
  const fixed = await add([rsa], { token_endpoint_auth_signing_alg: 'PS256' })
  await assertFails(t, await ask(assertionOf({}, fixed.id, rsa)), rule, 'another than the registered one')
  t.equal((await ask(assertionOf({}, fixed.id, { ...rsa, alg: 'PS256' }))).status, 200)
})

t.test('[rfc7523-3-valid-jwt] what could be read in two ways is rejected', async (t) => {
  const rule = 'rfc7523-3-valid-jwt'
  const stranger = makeClientKey('ES256')
  const headers = [
    { crit: ['b64'], b64: false },
    { crit: [] },
    { jwk: stranger.jwk },
    { jku: 'https://a.example' },
  ]
  for (const header of [
    ...headers,
    { x5u: 'https://a.example' },
    { x5c: [] },
    { zip: 'DEF' },
    { typ: 'at+jwt' },
    { typ: 1 },
  ])
    await assertFails(t, await ask(assertionOf({ header })), rule, JSON.stringify(header).slice(0, 40))
  for (const typ of ['JWT', 'jwt', 'client-authentication+jwt', 'application/client-authentication+jwt'])
    t.equal((await ask(assertionOf({ header: { typ } }))).status, 200, typ)
  const { id } = client
  const text = `{"iss":"${id}","sub":"${id}","aud":"https://a.example","aud":"${server.issuer}","exp":${server.now() + 60},"jti":"twice"}`
  await assertFails(t, await ask(assertionOf({ text })), 'rfc7523-2.2-parameters', 'a repeated member')
})

t.test(
  '[rfc7523-5-rs256] [rfc8414-2-auth-signing-algs] every algorithm of the metadata works, and kid says which key',
  async (t) => {
    const metadata = await json(await fetch(`${server.issuer}/.well-known/oauth-authorization-server`))
    const algorithms = [
      'ES256',
      'PS256',
      'RS256',
      'EdDSA',
      'Ed25519',
    ] as const satisfies readonly AssertionAlgorithm[]
    for (const endpoint of ['token', 'revocation', 'introspection']) {
      t.strictSame(
        metadata[`${endpoint}_endpoint_auth_signing_alg_values_supported`],
        algorithms,
        `[rfc8414-2-auth-signing-algs] ${endpoint}`,
      )
      t.ok(
        [metadata[`${endpoint}_endpoint_auth_methods_supported`]].flat().includes('private_key_jwt'),
        endpoint,
      )
    }
    for (const alg of algorithms) {
      const one = makeClientKey(alg)
      const by = await add([one], { token_endpoint_auth_signing_alg: alg })
      t.equal((await ask(assertionOf({}, by.id, one))).status, 200, `[rfc7523-5-rs256] ${alg}`)
    }
    const all = algorithms.map((alg) => makeClientKey(alg))
    const several = await add(all.map((one) => ({ ...one, jwk: { ...one.jwk, alg: one.alg } })))
    for (const one of all)
      t.equal((await ask(assertionOf({}, several.id, one))).status, 200, `one of several: ${one.alg}`)
    const [first = key] = all
    const nameless = assertionOf({ header: { kid: undefined } }, several.id, first)
    await assertFails(t, await ask(nameless), 'rfc7523-3-signature', 'kid is needed to choose')
  },
)

t.test(
  '[rfc9126-2-assertion-audience] a client with legacy_audience may name an endpoint, or a list',
  async (t) => {
    const legacy = await add([key], { legacy_audience: true })
    const par = '/api/oauth/par'
    const request = {
      response_type: 'code',
      redirect_uri: legacy.redirectUri,
      code_challenge: pkce('v'.repeat(43)).challenge,
      code_challenge_method: 'S256',
    }
    const { issuer } = server
    const audiences = [
      issuer,
      issuer + tokenPath,
      issuer + par,
      [issuer + par, 'https://other.example'],
      [issuer],
    ]
    for (const aud of audiences) {
      const pushed = await ask(assertionOf({ claims: { aud } }, legacy.id), request, par)
      t.equal(pushed.status, 201, `[rfc9126-2-assertion-audience] ${JSON.stringify(aud)}`)
      t.equal((await ask(assertionOf({ claims: { aud } }, legacy.id))).status, 200, JSON.stringify(aud))
    }
    for (const aud of ['https://other.example', [], `${issuer}${par}/`, { aud: issuer }, [[issuer]]])
      await assertFails(
        t,
        await ask(assertionOf({ claims: { aud } }, legacy.id)),
        'rfc7523-3-aud',
        JSON.stringify(aud),
      )
    const strict = await ask(assertionOf({ claims: { aud: issuer + par } }), request, par)
    await assertFails(t, strict, 'rfc7523-3-aud', 'without legacy_audience the issuer alone')
    t.equal((await ask(assertionOf(), request, par)).status, 201)
  },
)

t.test(
  '[rfc7523-3-aud] the response to an endpoint as audience names the option, and tells nothing about the client',
  async (t) => {
    const clients = {
      'that must name the issuer': client.id,
      'that may name an endpoint, with a key of another': (
        await add([makeClientKey('ES256')], { legacy_audience: true })
      ).id,
      'that has a secret': (await addClient(server, { authenticationMethod: 'client_secret_basic' })).id,
      'that does not exist': 'client_unknown',
    }
    const bodyOf = async (id: string, aud: unknown) => {
      const response = await ask(assertionOf({ claims: { aud } }, id))
      t.equal(response.status, 400)
      return json(response)
    }
    const failed = 'client authentication failed'
    const advice = 'aud is not the issuer alone (lychgate client set --legacy-audience true accepts it)'
    for (const [which, id] of Object.entries(clients)) {
      for (const aud of [server.issuer + tokenPath, [server.issuer], [server.issuer + tokenPath]])
        t.strictSame(
          await bodyOf(id, aud),
          { error: 'invalid_client', error_description: `${failed}: ${advice}` },
          `${which}: ${aud}`,
        )
      const other = await bodyOf(id, 'https://other.example')
      t.equal(other['error_description'], failed, `${which}: an audience that nothing accepts`)
    }
  },
)

t.test('[rfc7523-2.2-parameters] assertions work wherever clients authenticate', async (t) => {
  const token = String((await json(await ask()))['access_token'])
  const introspected = await ask(assertionOf(), { token }, '/api/oauth/introspect')
  t.match(await json(introspected), { active: true, client_id: client.id })
  const wrong = assertionOf({ claims: { aud: 'https://other.example' } })
  const unknown = await ask(wrong, { token }, '/api/oauth/introspect')
  await assertFails(t, unknown, 'rfc7523-3-aud', 'RFC 7662 section 2.3: 401', 401)
  const garbage = await ask('x', { token }, '/api/oauth/introspect')
  await assertFails(t, garbage, 'rfc7523-2.2-parameters', 'RFC 7662 section 2.3: 401', 401)
  await assertFails(t, await ask(wrong, { token }, '/api/oauth/revoke'), 'rfc7523-3-aud', 'revocation')
  t.equal((await ask(assertionOf(), { token }, '/api/oauth/revoke')).status, 200)
  t.strictSame(await json(await ask(assertionOf(), { token }, '/api/oauth/introspect')), { active: false })
})

t.test('a client that has another method, or is unknown, cannot use an assertion', async (t) => {
  const method = 'oidc-core-9-registered-method-enforced'
  const other = await addClient(server, {
    authenticationMethod: 'client_secret_post',
    description: { jwks: { keys: [key.jwk] } },
  })
  await assertFails(t, await ask(assertionOf({}, other.id)), method, 'client_secret_post')
  await assertRejected(t, await ask(assertionOf({}, 'client_nobody')), 'invalid_client', 400, 'unknown')
  const gone = await add([key])
  await server.deps.store.write(remove('client', gone.id))
  await assertRejected(t, await ask(assertionOf({}, gone.id)), 'invalid_client', 400, 'removed')
  const byId = await post(server, tokenPath, { ...asking, client_id: client.id, client_secret: 'x' })
  await assertRejected(t, byId, 'invalid_client', 400, 'a secret in place of an assertion')
})

t.test('[rfc7523-3-jti-replay] of 20 requests with one assertion, one is accepted', async (t) => {
  const assertion = assertionOf()
  const responses = await Promise.all(Array.from({ length: 20 }, () => ask(assertion)))
  t.equal(responses.filter(({ status }) => status === 200).length, 1)
  const same = { claims: { jti: 'the same' } }
  t.equal((await ask(assertionOf(same))).status, 200)
  t.equal(
    (await ask(assertionOf({ claims: { ...same.claims, iat: 1 } }))).status,
    400,
    'also another assertion',
  )
  const second = await add([key])
  t.equal((await ask(assertionOf(same, second.id))).status, 200, 'each client has its own')
})

t.test('[rfc7523-2.2-registration] an operator registers public keys that fit', async (t) => {
  const invalid = { code: 'invalid_client_metadata' }
  const { privateKey, jwk } = key
  for (const [members, about] of [
    [{}, 'no keys'],
    [{ jwks: { keys: [] } }, 'an empty set'],
    [{ jwks: { keys: [privateKey.export({ format: 'jwk' })] } }, 'a private key'],
    [{ jwks: { keys: [jwk] }, jwks_uri: 'https://a.example/keys' }, '[rfc7591-2-jwks-exclusive]'],
    [{ jwks: { keys: [jwk] }, token_endpoint_auth_signing_alg: 'RS256' }, 'a key of another type'],
    [{ jwks: { keys: [jwk] }, token_endpoint_auth_signing_alg: 'HS256' }, 'HMAC'],
    [{ jwks_uri: 'http://a.example/keys' }, 'no https'],
  ] as const)
    await t.rejects(add([], members), invalid, about)
  const response = await fetch(`${server.issuer}/api/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      redirect_uris: ['http://127.0.0.1/cb'],
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [jwk] },
    }),
  })
  t.equal(response.status, 400)
  t.equal((await json(response))['error'], 'invalid_client_metadata', 'open registration does not have it')
})

t.test('[rfc7523-3-signature] keys are fetched from jwks_uri, and again for an unknown kid', async (t) => {
  const development = await startServer(t, { mode: 'dev', nodes: 1 })
  const state = { keys: [key.jwk], status: 200, requests: 0 }
  const keys = createServer((_request, response) => {
    state.requests++
    response.writeHead(state.status, { 'content-type': 'application/json', 'cache-control': 'max-age=600' })
    response.end(JSON.stringify({ keys: state.keys }))
  })
  const port = await freePort()
  await new Promise<void>((resolve) => keys.listen(port, '127.0.0.1', resolve))
  t.teardown(() => keys.close())
  const fetched = await add([], { jwks_uri: `http://127.0.0.1:${port}/keys` }, development)
  const of = (by: ClientKey) => ask(assertionOf({}, fetched.id, by, development), {}, tokenPath, development)
  t.equal((await of(key)).status, 200)
  t.equal((await of(key)).status, 200)
  t.equal(state.requests, 1)
  const next = makeClientKey('ES256', 'next')
  state.keys = [next.jwk]
  t.equal((await of(next)).status, 400, 'not within a minute')
  development.advance(61)
  t.equal((await of(next)).status, 200)
  t.equal((await of(key)).status, 400, 'a key that was taken out')
  state.status = 500
  development.advance(700)
  t.equal((await of(next)).status, 200, 'while the fetch fails')
  development.advance(86_400)
  t.equal((await of(next)).status, 400, 'until the ceiling')
})

t.test('a server fetches no keys from loopback', async (t) => {
  const strict = await startServer(t, { nodes: 1 })
  const by = await add([], { jwks_uri: 'https://127.0.0.1:1/keys' }, strict)
  await assertRejected(
    t,
    await ask(assertionOf({}, by.id, key, strict), {}, tokenPath, strict),
    'invalid_client',
    400,
    'loopback',
  )
  t.match(strict.log.join(''), /fetch\.privateNetworks/)
})
