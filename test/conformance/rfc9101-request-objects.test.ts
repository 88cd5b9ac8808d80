/** Signed authorization requests, RFC 9101, by value, by reference and pushed. */
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { lockClient } from '../../src/clients/operator-client.ts'
import { declared } from '../../src/features.ts'
import {
  type AssertionAlgorithm,
  type ClientKey,
  makeClientKey,
  signAssertion,
} from '../helpers/assertions.ts'
import { assertErrorPage, assertErrorRedirect } from '../helpers/authorization.ts'
import { changeOperatorClient } from '../helpers/client-request.ts'
import {
  authorizationUrl,
  exchange,
  type Fields,
  postAs,
  register,
  responseOf,
  signInAndApprove,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { bareUrl, type RequestChange, signRequest } from '../helpers/request-objects.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, assertRejected, json } from '../helpers/wire.ts'

const server = await startServer(t, { mode: 'dev', nodes: 1 })
const key = makeClientKey('ES256')
const host = await startHost()
const callback = 'https://client.example/callback'

/** A client of an operator that has these keys. */
function add(keys: readonly ClientKey[], members: Readonly<Record<string, unknown>> = {}, to = server) {
  return addClient(to, {
    authenticationMethod: 'client_secret_post',
    description: { ...(keys.length > 0 && { jwks: { keys: keys.map(({ jwk }) => jwk) } }), ...members },
  })
}

const client = await add([key], { request_uris: [host.uri, host.other] })

/** Where clients keep their request objects. */
async function startHost() {
  const origin = `http://127.0.0.1:${await freePort()}`
  const state = { body: '', status: 200, headers: {}, requests: [] as string[] }
  const listener = createServer((request, response) => {
    state.requests.push(`${request.method} ${request.url}`)
    response.writeHead(state.status, { 'content-type': 'application/oauth-authz-req+jwt', ...state.headers })
    response.end(state.body)
  })
  await new Promise<void>((resolve) => listener.listen(Number(new URL(origin).port), '127.0.0.1', resolve))
  t.teardown(() => listener.close())
  return { state, uri: `${origin}/request.jwt`, other: `${origin}/other.jwt?a=b#fragment` }
}

function signed(change: RequestChange = {}, of = client, by = key, at = server): string {
  return signRequest(by, of, at, change)
}

/** The response to a request with `client_id` and these parameters alone. */
function ask(fields: Fields, of = client, agent = new UserAgent(server.issuer)): Promise<Response> {
  return agent.send(bareUrl(server, of, fields))
}

const outside = { redirect_uri: callback, state: 'outside' }

/** Asserts that a request object is rejected by redirect, and that the log says by which rule. */
async function assertFails(
  t: Test,
  request: string,
  rule: string,
  about: string,
  { error = 'invalid_request_object', state = 'outside', of = client } = {},
) {
  const response = await ask({ request, ...outside }, of)
  assertErrorRedirect(t, server, response, error, { to: callback, state, message: about })
  const line = server.log.findLast((text) => text.includes(error)) ?? ''
  t.match(line, `"${rule}"`, `${about}: ${rule}`)
}

t.test(
  '[rfc9101-6.3-only-object-params] a signed request leads to tokens, and nothing else counts',
  async (t) => {
    const agent = new UserAgent(server.issuer)
    const request = signed({ claims: { scope: 'openid courses:read', nonce: 'n-1', state: 'inside' } })
    const beside = { scope: 'openid grades:write', state: 'outside', redirect_uri: 'https://evil.example/cb' }
    const landing = await agent.open(bareUrl(server, client, { request, ...beside, response_type: 'token' }))
    const location = await signInAndApprove(agent, landing)
    t.equal(location.href.split('?')[0], callback)
    t.equal(location.searchParams.get('state'), 'inside')
    t.equal(location.searchParams.get('iss'), server.issuer)
    const response = await exchange(server, client, location.searchParams.get('code') ?? '')
    const tokens = (await response.json()) as Tokens
    t.strictSame(tokens.scope.split(' ').sort(), ['courses:read', 'openid'])
    const again = await ask({ request: signed(), ...beside }, client, agent)
    t.match(responseOf(again)['code'], /./, 'a remembered consent needs no page')
    const form = await agent.send(`${server.issuer}/oauth/authorize`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: client.id, request: signed() }),
    })
    t.match(responseOf(form)['code'], /./, 'by POST, too')
  },
)

t.test(
  '[rfc9101-6.2-signature] each algorithm verifies with a key of the client, and with no other',
  async (t) => {
    const rule = 'rfc9101-6.2-signature'
    for (const alg of ['ES256', 'PS256', 'RS256', 'EdDSA', 'Ed25519'] satisfies AssertionAlgorithm[]) {
      const own = makeClientKey(alg, 'own')
      const jwk = alg === 'PS256' ? { ...own.jwk, alg } : own.jwk
      const of = await add([{ ...own, jwk }], alg === 'EdDSA' ? {} : { request_object_signing_alg: alg })
      const response = await ask({ request: signed({}, of, own) }, of)
      t.match(response.headers.get('location'), /\/login\?interaction=/, alg)
      const foreign = makeClientKey(alg, 'own')
      await assertFails(t, signed({}, of, foreign), rule, `${alg}: the key of another`, { of })
    }
    const [header, claims, signature = ''] = signed().split('.')
    const other = signed({ claims: { scope: 'openid email' } }).split('.')[1]
    const flipped = (signature[0] === 'A' ? 'B' : 'A') + signature.slice(1)
    await assertFails(t, [header, claims, flipped].join('.'), rule, 'a changed signature')
    await assertFails(t, [header, other, signature].join('.'), rule, 'changed claims')
    await assertFails(t, signed({ header: { alg: 'RS256' } }), rule, 'alg of the header')
    await assertFails(t, signed({ header: { alg: 'none' } }), rule, 'none with a signature')
    await assertFails(t, signed({ header: { kid: 'other' } }), rule, 'an unknown kid')
    const [one, two] = [makeClientKey('RS256', 'one'), makeClientKey('RS256', 'two')]
    const several = await add([one, two], { request_object_signing_alg: 'PS256' })
    await assertFails(t, signed({}, several, one), rule, 'another algorithm than registered', { of: several })
    const ps256 = signed({}, several, { ...two, alg: 'PS256' })
    t.equal((await ask({ request: ps256 }, several)).status, 303)
    const without = await add([])
    await assertFails(t, signed({}, without), rule, 'a client without keys', { of: without })
    const registered = await register(server)
    const request = signed({}, registered)
    const loopback = { request, redirect_uri: registered.redirectUri, state: 'a-state' }
    const message = 'a client that registered itself has no keys'
    assertErrorRedirect(t, server, await ask(loopback, registered), 'invalid_request_object', { message })
  },
)

t.test(
  '[rfc9101-10.5-require-signed] [rfc9101-6.1-decryption] [rfc9101-4-signed-jwt] what is not one signed JWT is rejected',
  async (t) => {
    const [header, claims, signature] = signed().split('.')
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    await assertFails(
      t,
      `${none}.${claims}.`,
      'rfc9101-10.5-require-signed',
      '[rfc9101-10.5-require-signed] none',
    )
    const jwe = [header, 'a', 'b', 'c', 'd'].join('.')
    await assertFails(t, jwe, 'rfc9101-6.1-decryption', '[rfc9101-6.1-decryption] five parts')
    const rule = 'rfc9101-4-signed-jwt'
    for (const wrong of [
      'x',
      'a.b.c',
      `${header}.${claims}`,
      `${header}.${claims}.${signature}.x`,
      `${header}. .${signature}`,
    ])
      await assertFails(t, wrong, rule, `[${rule}] ${wrong.slice(0, 5)}`)
    const twice = JSON.stringify({ scope: 'openid' }).replace('{', '{"client_id":"a","client_id":"b",')
    await assertFails(t, signed({ text: twice }), rule, `[${rule}] a repeated member`)
    for (const name of ['crit', 'jwk', 'jku', 'x5u', 'x5c', 'b64', 'zip'])
      await assertFails(t, signed({ header: { [name]: ['b64'] } }), rule, `[${rule}] ${name}`, {
        state: 'a-state',
      })
  },
)

t.test(
  '[rfc9101-4-iss-aud] [rfc9101-5-client-id-in-query] [rfc9101-10.3-nested-forbidden] [rfc9101-10.8-explicit-type] a wrong claim is rejected',
  async (t) => {
    const wrong: readonly (readonly [string, RequestChange])[] = [
      ['rfc9101-4-iss-aud', { claims: { iss: 'client_other' } }],
      ['rfc9101-4-iss-aud', { claims: { iss: server.issuer } }],
      ['rfc9101-4-iss-aud', { claims: { aud: undefined } }],
      ['rfc9101-4-iss-aud', { claims: { aud: 'https://other.example' } }],
      ['rfc9101-4-iss-aud', { claims: { aud: `${server.issuer}/` } }],
      ['rfc9101-4-iss-aud', { claims: { aud: ['https://other.example'] } }],
      ['rfc9101-5-client-id-in-query', { claims: { client_id: undefined } }],
      ['rfc9101-5-client-id-in-query', { claims: { client_id: 'client_other' } }],
      ['rfc9101-10.3-nested-forbidden', { claims: { request: 'eyJ.eyJ.x' } }],
      ['rfc9101-10.3-nested-forbidden', { claims: { request_uri: host.uri } }],
      ['rfc9101-10.3-nested-forbidden', { claims: { request: '' } }],
      ['rfc9101-10.8-explicit-type', { header: { typ: 'client-authentication+jwt' } }],
      ['rfc9101-10.8-explicit-type', { header: { typ: 'at+jwt' } }],
      ['rfc9101-10.8-explicit-type', { header: { typ: 1 } }],
      ['rfc9101-10.8-explicit-type', { claims: { sub: client.id } }],
    ]
    for (const [rule, change] of wrong) {
      const about = `[${rule}] ${JSON.stringify(change).slice(0, 70)}`
      await assertFails(t, signed(change), rule, about, { state: 'a-state' })
    }
    for (const change of [
      { claims: { iss: undefined } },
      { claims: { aud: ['https://other.example', server.issuer] } },
      { header: { typ: undefined } },
      { header: { typ: 'JWT' } },
      { header: { typ: 'application/oauth-authz-req+jwt' } },
      { claims: { sub: 'somebody', jti: 'j', unknown: { a: [] } } },
    ]) {
      const response = await ask({ request: signed(change) })
      t.match(response.headers.get('location'), /\/login\?interaction=/, JSON.stringify(change))
    }
    // An assertion by which the client authenticates is no request.
    const now = server.now()
    const assertion = signAssertion(key, { id: client.id, issuer: server.issuer, now })
    await assertFails(t, assertion, 'rfc9101-5-client-id-in-query', 'a client assertion', {
      state: '',
      of: client,
    })
  },
)

t.test(
  '[rfc9101-4-exp-nbf] the time of a request object is bounded, and the clocks may differ by ten seconds',
  async (t) => {
    const now = server.now()
    const wrong = [
      { exp: now - 11 },
      { exp: now + 3620 },
      { exp: '1' },
      { exp: null },
      { nbf: now + 20 },
      { nbf: now - 3620 },
      { nbf: 'now' },
      { iat: now + 20 },
      { iat: {} },
    ]
    for (const claims of wrong)
      await assertFails(t, signed({ claims }), 'rfc9101-4-exp-nbf', JSON.stringify(claims), {
        state: 'a-state',
      })
    for (const claims of [
      { exp: now - 5 },
      { exp: now + 3600 },
      { nbf: now - 3600 },
      { nbf: now + 5, iat: now + 5 },
      { exp: undefined, nbf: undefined, iat: undefined },
      { iat: 1 },
    ]) {
      const response = await ask({ request: signed({ claims }) })
      t.match(response.headers.get('location'), /\/login\?interaction=/, JSON.stringify(claims))
    }
  },
)

t.test(
  '[rfc9101-4-parameters] parameters are texts, numbers, claims as an object, and a list of resources',
  async (t) => {
    const agent = new UserAgent(server.issuer)
    await signInAndApprove(agent, await agent.open(bareUrl(server, client, { request: signed() })))
    server.advance(100)
    const accepted = {
      claims: { id_token: { auth_time: { essential: true } } },
      resource: [server.issuer],
      max_age: 1000,
      nonce: '',
      registered_by_nobody: ['a', 1],
    }
    t.match(responseOf(await ask({ request: signed({ claims: accepted }) }, client, agent))['code'], /./)
    const old = await ask({ request: signed({ claims: { max_age: 10 } }) }, client, agent)
    t.match(old.headers.get('location'), /\/login/, 'a number counts')
    const about = await ask(
      { request: signed({ claims: { claims: { id_token: { sub: { value: 'x' } } } } }) },
      client,
      agent,
    )
    t.match(about.headers.get('location'), /\/login/, 'and so does an object')
    const wrong = [
      { client_id: [client.id] },
      { scope: ['openid'] },
      { scope: { openid: true } },
      { state: true },
      { state: null },
      { nonce: 'a\u0000b' },
      { nonce: 'n'.repeat(8193) },
      { resource: [] },
      { resource: [1] },
      { claims: 7, max_age: [] },
      { unknown: '\ud800' },
      { deep: JSON.parse('['.repeat(20) + ']'.repeat(20)) },
      Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`m${index}`, 1])),
    ]
    for (const claims of wrong) {
      const name = JSON.stringify(claims).slice(0, 40)
      const response = await agent.send(`${server.issuer}/oauth/authorize`, {
        method: 'POST',
        body: new URLSearchParams({ client_id: client.id, ...outside, request: signed({ claims }) }),
      })
      if (name.includes('nnnn')) t.equal(response.status, 400, 'limits.parameterBytes of the request itself')
      else
        assertErrorRedirect(t, server, response, 'invalid_request_object', {
          to: callback,
          state: 'outside',
          message: name,
        })
    }
    const other = await ask({ request: signed({ claims: { registration: {} } }) })
    t.equal(responseOf(other)['error'], 'registration_not_supported')
    t.equal(
      responseOf(await ask({ request: signed({ claims: { code_challenge: undefined } }) }))['error'],
      'invalid_request',
    )
    t.equal(
      responseOf(await ask({ request: signed({ claims: { scope: 'nope' } }) }))['error'],
      'invalid_scope',
    )
  },
)

t.test(
  '[rfc9101-5-not-both] request and request_uri exclude each other, and neither is repeated',
  async (t) => {
    host.state.body = signed()
    const both = { request: signed(), request_uri: host.uri, ...outside }
    assertErrorRedirect(t, server, await ask(both), 'invalid_request', { to: callback, state: 'outside' })
    const pushed = { ...both, request_uri: 'urn:ietf:params:oauth:request_uri:x' }
    assertErrorRedirect(t, server, await ask(pushed), 'invalid_request', { to: callback, state: 'outside' })
    const twice = { ...outside, request: [signed(), signed()] }
    assertErrorRedirect(t, server, await ask(twice), 'invalid_request', { to: callback, state: 'outside' })
    t.strictSame(host.state.requests, [], 'nothing was fetched')
  },
)

t.test('an error is a page as long as no registered redirect URI is known', async (t) => {
  const request = `${signed().slice(0, -4)}AAAA`
  for (const redirectUri of ['https://evil.example/cb', `${callback}/`, `${callback}?a=b`]) {
    const query = { request, redirect_uri: redirectUri, state: 's' }
    await assertErrorPage(t, await ask(query), 'invalid_request_object', redirectUri)
  }
  // What is inside does not count before the signature is verified, whatever it says.
  const foreign = makeClientKey('ES256')
  const inside = signed({ claims: { redirect_uri: 'https://evil.example/cb' } }, client, foreign)
  await assertErrorPage(t, await ask({ request: inside, scope: 'openid' }), 'invalid_request_object')
  // A signed redirect URI must be registered, too.
  const own = signed({ claims: { redirect_uri: 'https://evil.example/cb' } })
  await assertErrorPage(t, await ask({ request: own, ...outside }), 'invalid_request')
  for (const id of [undefined, 'client_unknown']) {
    const response = await ask({ request: signed(), client_id: id, ...outside })
    t.equal(response.status, 400)
    t.equal(response.headers.get('location'), null)
  }
})

t.test(
  '[rfc9101-5.2.3-fetch] [rfc9101-10.4-ssrf-dos] [oidc-core-15.2-request-uri] a registered request_uri is fetched, and no other',
  async (t) => {
    const { state } = host
    state.body = `${signed({ claims: { state: 'fetched' } })}\n`
    const agent = new UserAgent(server.issuer)
    const location = await signInAndApprove(
      agent,
      await agent.open(bareUrl(server, client, { request_uri: host.uri })),
    )
    t.equal(location.searchParams.get('state'), 'fetched', '[rfc9101-5.2.3-fetch]')
    t.strictSame(state.requests, ['GET /request.jwt'])
    state.body = signed({ claims: { state: 'changed' } })
    t.equal(responseOf(await ask({ request_uri: host.uri }, client, agent))['state'], 'changed', 'each time')
    t.match(
      responseOf(await ask({ request_uri: host.other }, client, agent))['code'],
      /./,
      'with query and fragment',
    )
    t.strictSame(state.requests.splice(0), ['GET /request.jwt', 'GET /request.jwt', 'GET /other.jwt?a=b'])
    const failed = async (uri: string, rule: string, about: string) => {
      const response = await ask({ request_uri: uri, ...outside })
      assertErrorRedirect(t, server, response, 'invalid_request_uri', {
        to: callback,
        state: 'outside',
        message: about,
      })
      t.match(
        server.log.findLast((text) => text.includes('invalid_request_uri')),
        `"${rule}"`,
        about,
      )
    }
    for (const uri of [
      `${host.uri}?x`,
      `${host.uri}#x`,
      host.other.replace(/#.*/, ''),
      'https://evil.example/',
      'urn:x',
      'x',
      'file:///etc/passwd',
    ])
      await failed(uri, 'rfc9101-10.4-ssrf-dos', `[rfc9101-10.4-ssrf-dos] ${uri}`)
    t.strictSame(state.requests, [], 'nothing else was fetched')
    const rule = 'rfc9101-5.2.3-fetch'
    for (const [change, about] of [
      [{ status: 404 }, 'not found'],
      [{ status: 302, headers: { location: host.other } }, '[rfc9101-10.4-ssrf-dos] a redirect'],
      [{ headers: { 'content-encoding': 'gzip' } }, 'compressed'],
      [{ body: 'x'.repeat(70_000) }, '[rfc9101-10.4-ssrf-dos] too large'],
    ] as const) {
      Object.assign(state, { status: 200, headers: {} }, change)
      await failed(host.uri, rule, about)
    }
    Object.assign(state, { status: 200, headers: {}, body: 'no JWT' })
    const response = await ask({ request_uri: host.uri, ...outside })
    assertErrorRedirect(t, server, response, 'invalid_request_object', { to: callback, state: 'outside' })
    state.requests.length = 0
    const { store, clock, config } = server.deps
    await store.transact('client', client.id, (found) => lockClient(found, { by: 'operator', at: clock() }))
    t.equal((await ask({ request_uri: host.uri })).status, 400, 'a locked client')
    t.strictSame(state.requests, [], 'nothing is fetched for it')
    const known = { declared, scopes: [], resources: [config.issuer] }
    await store.transact('client', client.id, (found) => {
      if (found === undefined) throw new Error('the client is stored')
      const { lockedAt: _, ...unlocked } = found
      return changeOperatorClient(unlocked, { name: 'Unlocked' }, known, { by: 'operator', at: clock() })
    })
  },
)

t.test('[rfc9101-10.4-ssrf-dos] a server fetches nothing from its own network', async (t) => {
  const strict = await startServer(t, { nodes: 1 })
  const uri = 'https://127.0.0.1:1/request.jwt'
  const of = await add([key], { request_uris: [uri] }, strict)
  const response = await new UserAgent(strict.issuer).send(
    bareUrl(strict, of, { request_uri: uri, ...outside }),
  )
  assertErrorRedirect(t, strict, response, 'invalid_request_uri', { to: callback, state: 'outside' })
  t.match(strict.log.join(''), /fetch\.privateNetworks/)
})

t.test('[rfc9126-3-request-object] a request object is pushed, and its content is what counts', async (t) => {
  const push = (fields: Fields, of: TestClient = client) => postAs(server, of, '/api/oauth/par', fields)
  const response = await push({
    request: signed({ claims: { state: 'pushed' } }),
    state: 'outside',
    scope: 'nope',
  })
  t.equal(response.status, 201)
  const { request_uri: requestUri } = await json(response)
  const agent = new UserAgent(server.issuer)
  const landing = await agent.open(bareUrl(server, client, { request_uri: String(requestUri) }))
  t.equal((await signInAndApprove(agent, landing)).searchParams.get('state'), 'pushed')
  const wrong: readonly (readonly [Fields, string])[] = [
    [{ request: `${signed().slice(0, -4)}AAAA` }, 'invalid_request_object'],
    [{ request: signed({ claims: { client_id: 'client_other' } }) }, 'invalid_request_object'],
    [{ request: signed({ claims: { redirect_uri: 'https://evil.example/cb' } }) }, 'invalid_request'],
    [{ request: signed({ claims: { scope: 'nope' } }) }, 'invalid_scope'],
    [{ request: signed(), request_uri: host.uri }, 'invalid_request'],
    [{ request_uri: host.uri }, 'invalid_request'],
  ]
  for (const [fields, error] of wrong) await assertRejected(t, await push(fields), error)
  const other = await add([makeClientKey('ES256')])
  await assertRejected(
    t,
    await push({ request: signed() }, other),
    'invalid_request_object',
    400,
    'of another client',
  )
})

t.test('[rfc9101-10.5-require-signed] a client or a server may accept signed requests only', async (t) => {
  const rule = '[rfc9101-10.5-require-signed]'
  const strict = await add([key], { require_signed_request_object: true })
  const plain = await new UserAgent(server.issuer).send(authorizationUrl(server, strict))
  assertErrorRedirect(t, server, plain, 'invalid_request', { to: callback, message: rule })
  const parameters = Object.fromEntries(new URL(authorizationUrl(server, strict)).searchParams)
  await assertRejected(t, await postAs(server, strict, '/api/oauth/par', parameters), 'invalid_request')
  const pushed = await postAs(server, strict, '/api/oauth/par', { request: signed({}, strict) })
  const { request_uri: requestUri } = await json(pushed)
  for (const fields of [{ request: signed({}, strict) }, { request_uri: String(requestUri) }])
    t.match((await ask(fields, strict)).headers.get('location'), /\/login\?interaction=/, rule)
  const whole = await startServer(t, { requestObjects: { required: 'on' } })
  const metadata = await json(await fetch(`${whole.issuer}/.well-known/openid-configuration`))
  t.equal(metadata['require_signed_request_object'], true)
  const any = await add([key], {}, whole)
  const rejected = await new UserAgent(whole.issuer).send(authorizationUrl(whole, any))
  assertErrorRedirect(t, whole, rejected, 'invalid_request', { to: callback })
  const opened = await new UserAgent(whole.issuer).send(
    bareUrl(whole, any, { request: signed({}, any, key, whole) }),
  )
  t.match(opened.headers.get('location'), /\/login\?interaction=/)
})

t.test(
  '[rfc9101-10.5-metadata] [oidc-reg-2-request-uris] [oidc-reg-2-request-object-signing-alg] metadata and registration say what is supported',
  async (t) => {
    const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
    const supported = {
      request_parameter_supported: true,
      request_uri_parameter_supported: true,
      require_request_uri_registration: true,
      require_signed_request_object: false,
    }
    t.match(metadata, supported, '[rfc9101-10.5-metadata]')
    const algorithms = metadata['request_object_signing_alg_values_supported'] as string[]
    t.strictSame([...algorithms].sort(), ['ES256', 'Ed25519', 'EdDSA', 'PS256', 'RS256'])
    const invalid = { code: 'invalid_client_metadata' }
    for (const uris of [
      'https://a.example',
      ['http://a.example/r'],
      [''],
      [7],
      ['x'],
      ['https://u@a.example/r'],
      Array(21).fill('https://a.example/r'),
    ])
      await t.rejects(
        add([key], { request_uris: uris }),
        invalid,
        `[oidc-reg-2-request-uris] ${JSON.stringify(uris).slice(0, 30)}`,
      )
    for (const alg of ['none', 'HS256', 'RS512'])
      await t.rejects(
        add([key], { request_object_signing_alg: alg }),
        invalid,
        `[oidc-reg-2-request-object-signing-alg] ${alg}`,
      )
    t.ok(await add([key], { request_uris: [], request_object_signing_alg: '' }))
  },
)
