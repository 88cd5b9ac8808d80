/**
 * The OpenID Foundation's certification plans whose clients register themselves: Dynamic OP, Back-Channel OP and 3rd
 * Party-Init OP, module by module, with the requests and the checks of the suite. The clients have an initial access token;
 * they authenticate by private_key_jwt with the token endpoint as `aud`, and without PKCE.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { initialTokenKind, mintInitialToken } from '../../src/domain/initial-token.ts'
import { makeClientKey, signAssertion, withAssertion } from '../helpers/assertions.ts'
import { callApi, type Fields, post, responseOf, signInAndApprove, type TestClient } from '../helpers/flow.ts'
import { startLogoutReceiver, verifyLogoutToken } from '../helpers/logout-receiver.ts'
import { callback } from '../helpers/openid-suite.ts'
import { bareUrl, signRequest } from '../helpers/request-objects.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, type Json, json } from '../helpers/wire.ts'

// A development server fetches from this computer.
const server = await startServer(t, { mode: 'dev', nodes: 1 })
const endpoint = `${server.issuer}/api/oauth/register`
const tokenEndpoint = `${server.issuer}/api/oauth/token`
const key = makeClientKey('RS256')
const initialToken = await mint()

async function mint(): Promise<string> {
  const request = {
    redirects: 'https',
    pkce: 'optional',
    uses: 1000,
    extra: { legacy_audience: true },
  } as const
  const { token, record } = mintInitialToken(request, Buffer.alloc(32, 1), 86_400, server.now())
  await server.deps.store.write(insert(initialTokenKind, record))
  return token
}

const discovered = () =>
  fetch(`${server.issuer}/.well-known/openid-configuration`).then(async (response) => json(response))
const publishedKeys = async () =>
  (await json(await fetch(`${server.issuer}/api/oauth/jwks`))) as unknown as JSONWebKeySet

function send(metadata: Json): Promise<Response> {
  return fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${initialToken}` },
    body: JSON.stringify({
      client_name: 'suite client',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: [callback],
      contacts: ['suite@example.com'],
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [key.jwk] },
      ...metadata,
    }),
  })
}

/** A client that registered itself. */
interface Registered extends TestClient {
  readonly information: Json
}

async function register(t: Test, metadata: Json = {}): Promise<Registered> {
  const response = await send(metadata)
  const information = await json(response)
  t.equal(response.status, 201, JSON.stringify(information))
  t.match(response.headers.get('content-type'), /^application\/json/)
  t.match(information, {
    client_id: String,
    registration_client_uri: String,
    registration_access_token: String,
  })
  const { client_id: id, client_secret: secret, redirect_uris: uris } = information
  const method = String(information['token_endpoint_auth_method'])
  const redirectUri = String((uris as string[])[0])
  return {
    id: String(id),
    method,
    redirectUri,
    information,
    ...(secret !== undefined && { secret: String(secret) }),
  }
}

const requestUrl = (client: TestClient, fields: Fields = {}) =>
  bareUrl(server, client, {
    response_type: 'code',
    redirect_uri: client.redirectUri,
    scope: 'openid',
    state: 'a-state',
    nonce: 'a-nonce',
    ...fields,
  })

async function authorized(
  client: TestClient,
  url = requestUrl(client),
  agent = new UserAgent(server.issuer),
) {
  return signInAndApprove(agent, await agent.open(url))
}

function tokenRequest(client: TestClient, fields: Fields, by = key, aud = tokenEndpoint): Promise<Response> {
  const about = { id: client.id, issuer: server.issuer, now: server.now() }
  return client.secret === undefined
    ? post(server, '/api/oauth/token', {
        ...fields,
        ...withAssertion(signAssertion(by, about, { claims: { aud } })),
      })
    : post(server, '/api/oauth/token', { ...fields, client_id: client.id }, basicOf(client))
}

const basicOf = ({ id, secret = '' }: TestClient) => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
})

/** Redeems the code of an authorization response, and checks the tokens. */
async function redeemed(t: Test, client: TestClient, location: URL, by = key, aud?: string): Promise<Json> {
  t.equal(location.searchParams.get('state'), 'a-state')
  const fields = {
    grant_type: 'authorization_code',
    code: String(location.searchParams.get('code')),
    redirect_uri: client.redirectUri,
  }
  const response = await tokenRequest(client, fields, by, aud)
  const tokens = await json(response)
  t.equal(response.status, 200, JSON.stringify(tokens))
  const { payload } = await jwtVerify(String(tokens['id_token']), createLocalJWKSet(await publishedKeys()), {
    issuer: server.issuer,
    audience: client.id,
    currentDate: new Date(server.now() * 1000),
  })
  t.equal(payload['nonce'], 'a-nonce')
  return tokens
}

const signedIn = async (t: Test, client: TestClient) => redeemed(t, client, await authorized(client))

/** Asserts that a request ends on a page of this server, and that the client gets nothing. */
async function assertPage(t: Test, url: string): Promise<string> {
  const response = await new UserAgent(server.issuer).send(url)
  t.equal(response.status, 400)
  t.equal(response.headers.get('location'), null)
  return response.text()
}

/** A web server of the suite, for what a client publishes. */
async function startHost(t: Test, contentType: string) {
  const state = { body: '' }
  const listener = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': contentType }).end(state.body)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  const address = listener.address()
  return { state, origin: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}` }
}

t.test('oidcc-idtoken-rs256: an ID Token by RS256 names its key', async (t) => {
  const client = await register(t, { id_token_signed_response_alg: 'RS256' })
  const header = decodeProtectedHeader(String((await signedIn(t, client))['id_token']))
  t.match(header, { alg: 'RS256', kid: String })
})

t.test('oidcc-idtoken-unsigned: none is not offered, and cannot be registered', async (t) => {
  const { id_token_signing_alg_values_supported: offered } = await discovered()
  t.notOk((offered as string[]).includes('none'))
  await assertRejected(t, await send({ id_token_signed_response_alg: 'none' }), 'invalid_client_metadata')
})

t.test('oidcc-userinfo-rs256: UserInfo is a JWT by RS256 for a client that registers so', async (t) => {
  t.ok(((await discovered())['userinfo_signing_alg_values_supported'] as string[]).includes('RS256'))
  const client = await register(t, { userinfo_signed_response_alg: 'RS256' })
  const { access_token: token } = await signedIn(t, client)
  const response = await callApi(server, '/api/oauth/userinfo', String(token))
  t.match(response.headers.get('content-type'), /^application\/jwt/)
  const { payload } = await jwtVerify(await response.text(), createLocalJWKSet(await publishedKeys()), {
    issuer: server.issuer,
    audience: client.id,
    algorithms: ['RS256'],
    currentDate: new Date(server.now() * 1000),
  })
  t.match(payload.sub, /./)
  t.notOk('nonce' in payload)
})

t.test('oidcc-ensure-redirect-uri-in-authorization-request: a page says that it is missing', async (t) => {
  const client = await register(t, { redirect_uris: [callback, `${callback}2`] })
  t.match(await assertPage(t, requestUrl(client, { redirect_uri: undefined })), 'redirect_uri')
})

t.test('oidcc-redirect-uri-query-OK: the query of a redirect URI is kept', async (t) => {
  const redirectUri = `${callback}?foo=bar`
  const client = await register(t, { redirect_uris: [redirectUri] })
  const location = await authorized(client)
  t.equal(location.searchParams.get('foo'), 'bar')
  await redeemed(t, client, location)
})

for (const [name, registered, sent] of [
  ['oidcc-redirect-uri-query-mismatch', `${callback}?foo=bar`, `${callback}?foo=baz`],
  ['oidcc-redirect-uri-query-added', callback, `${callback}?foo=bar`],
] as const)
  t.test(`${name}: a page says that the redirect URI is not registered`, async (t) => {
    const client = await register(t, { redirect_uris: [registered] })
    await assertPage(t, requestUrl(client, { redirect_uri: sent }))
  })

t.test('oidcc-redirect-uri-regfrag: a redirect URI with a fragment is not registered', async (t) => {
  await assertRejected(t, await send({ redirect_uris: [`${callback}#fragment`] }), 'invalid_redirect_uri')
})

t.test('oidcc-server: a client that registers itself gets tokens, and UserInfo', async (t) => {
  const client = await register(t)
  const { access_token: token } = await signedIn(t, client)
  const response = await callApi(server, '/api/oauth/userinfo', String(token))
  t.match(await json(response), { sub: /./ })
})

t.test('oidcc-registration-logo-uri, -policy-uri, -tos-uri: users see them', async (t) => {
  const [policy, tos] = ['https://suite.example/policy', 'https://suite.example/tos']
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==',
    'base64',
  )
  const logos = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'image/png' }).end(png)
  })
  logos.listen(0, '127.0.0.1')
  await once(logos, 'listening')
  t.teardown(() => logos.close())
  const address = logos.address()
  const logo = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/logo.png`
  const client = await register(t, { logo_uri: logo, policy_uri: policy, tos_uri: tos })
  const agent = new UserAgent(server.issuer)
  const pages: string[] = []
  const send = agent.send.bind(agent)
  agent.send = async (...args: Parameters<typeof send>) => {
    const response = await send(...args)
    if (response.status === 200) pages.push(await response.clone().text())
    return response
  }
  await authorized(client, requestUrl(client), agent)
  for (const uri of [policy, tos])
    t.ok(
      pages.some((page) => page.includes(`href="${uri}"`)),
      uri,
    )
  const [, source = ''] = /<img[^>]+src="([^"]*logo[^"]*)"/.exec(pages.join('')) ?? []
  t.match(source, /./, 'the logo is an image of the page')
  const image = await agent.send(new URL(source.replaceAll('&amp;', '&'), server.issuer).href)
  t.equal(image.status, 200)
  t.match(image.headers.get('content-type'), 'image/png')
})

t.test('oidcc-registration-jwks-uri: the keys of a client are fetched', async (t) => {
  const host = await startHost(t, 'application/json')
  host.state.body = JSON.stringify({ keys: [key.jwk] })
  await signedIn(t, await register(t, { jwks: undefined, jwks_uri: `${host.origin}/jwks` }))
})

t.test('oidcc-registration-sector-uri, -sector-bad: pairwise subjects are not offered', async (t) => {
  t.notOk(((await discovered())['subject_types_supported'] as string[]).includes('pairwise'))
})

t.test('oidcc-server-rotate-keys: a new key is published, and the old one stays', async (t) => {
  const before = (await publishedKeys()).keys.map(({ kid }) => kid)
  const other = await startServer(t)
  t.ok(before.length > 0)
  const kids = async () =>
    ((await json(await fetch(`${other.issuer}/api/oauth/jwks`))) as unknown as JSONWebKeySet).keys.map(
      ({ kid }) => kid,
    )
  const old = await kids()
  let now = old
  for (let day = 0; day < 400 && now.every((kid) => old.includes(kid)); day++) {
    other.advance(86_400)
    await other.maintain()
    now = await kids()
  }
  t.ok(now.length > old.length, 'a new key')
  t.strictSame(
    old.filter((kid) => !now.includes(kid)),
    [],
    'the old ones are still there',
  )
})

t.test('oidcc-refresh-token-rp-key-rotation: a client refreshes by its next key', async (t) => {
  const host = await startHost(t, 'application/json')
  host.state.body = JSON.stringify({ keys: [key.jwk] })
  const client = await register(t, {
    jwks: undefined,
    jwks_uri: `${host.origin}/jwks`,
    grant_types: ['authorization_code', 'refresh_token'],
  })
  const url = requestUrl(client, { scope: 'openid offline_access', prompt: 'consent' })
  const { refresh_token: token } = await redeemed(t, client, await authorized(client, url))
  const next = makeClientKey('RS256', 'next')
  host.state.body = JSON.stringify({ keys: [next.jwk] })
  server.advance(61)
  const response = await tokenRequest(
    client,
    { grant_type: 'refresh_token', refresh_token: String(token) },
    next,
  )
  t.equal(response.status, 200)
})

t.test('oidcc-request-uri-unsigned: unsigned request objects are not offered', async (t) => {
  const { request_object_signing_alg_values_supported: offered } = await discovered()
  t.notOk((offered as string[]).includes('none'))
})

t.test('oidcc-request-uri-signed-rs256: a registered request_uri is fetched', async (t) => {
  const metadata = await discovered()
  t.ok((metadata['request_object_signing_alg_values_supported'] as string[]).includes('RS256'))
  t.equal(metadata['request_uri_parameter_supported'], true)
  const host = await startHost(t, 'application/oauth-authz-req+jwt')
  const uri = `${host.origin}/request.jwt`
  const client = await register(t, { request_uris: [uri], request_object_signing_alg: 'RS256' })
  const claims = {
    ...Object.fromEntries(new URL(requestUrl(client)).searchParams),
    code_challenge: undefined,
    code_challenge_method: undefined,
  }
  host.state.body = signRequest(key, client, server, { claims })
  const outside = { response_type: 'code', scope: 'openid', request_uri: uri }
  await redeemed(t, client, await authorized(client, bareUrl(server, client, outside)))
})

t.test('oidcc-ensure-request-object-with-redirect-uri: the one of the request object counts', async (t) => {
  const client = await register(t, { request_object_signing_alg: 'RS256' })
  const claims = {
    ...Object.fromEntries(new URL(requestUrl(client)).searchParams),
    code_challenge: undefined,
    code_challenge_method: undefined,
  }
  const request = signRequest(key, client, server, { claims })
  const url = requestUrl(client, { redirect_uri: `${callback}/bad`, request })
  await redeemed(t, client, await authorized(client, url))
})

t.test('oidcc-refresh-token: a refresh token is used, by its client alone', async (t) => {
  const grantTypes = { grant_types: ['authorization_code', 'refresh_token'] }
  const [client, other] = [await register(t, grantTypes), await register(t, grantTypes)]
  const url = requestUrl(client, { scope: 'openid offline_access', prompt: 'consent' })
  const { refresh_token: token } = await redeemed(t, client, await authorized(client, url))
  const refresh = { grant_type: 'refresh_token', refresh_token: String(token) }
  await assertRejected(t, await tokenRequest(other, refresh), 'invalid_grant')
  const response = await tokenRequest(client, refresh)
  t.equal(response.status, 200)
  t.match(response.headers.get('cache-control'), 'no-store')
})

t.test('oidcc-ensure-client-assertion-with-iss-aud-succeeds: aud may be the issuer', async (t) => {
  const client = await register(t)
  await redeemed(t, client, await authorized(client), key, server.issuer)
})

const withSecret = { token_endpoint_auth_method: 'client_secret_basic', jwks: undefined }

t.test('oidcc-backchannel-logout-discovery-endpoint-verification', async (t) => {
  t.match(await discovered(), {
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    end_session_endpoint: String,
  })
})

t.test('oidcc-backchannel-rp-initiated-logout: the client gets a logout token', async (t) => {
  const receiver = await startLogoutReceiver(t)
  const goodbye = 'https://suite.example/test/a/lychgate/post_logout_redirect'
  const client = await register(t, {
    ...withSecret,
    backchannel_logout_uri: receiver.uri,
    backchannel_logout_session_required: true,
    post_logout_redirect_uris: [goodbye],
  })
  const agent = new UserAgent(server.issuer)
  const tokens = await redeemed(t, client, await authorized(client, requestUrl(client), agent))
  const idToken = String(tokens['id_token'])
  const query = new URLSearchParams({
    id_token_hint: idToken,
    post_logout_redirect_uri: goodbye,
    state: 'logout-state',
  })
  let landing = await agent.open(`${server.issuer}/oauth/logout?${query}`)
  if (landing.at === 'page') landing = await agent.submit(landing.page, {})
  const location = landing.at === 'redirect' ? landing.location : undefined
  t.equal(location?.href, `${goodbye}?state=logout-state`)
  const currentDate = new Date(server.now() * 1000)
  const { claims } = await verifyLogoutToken(server, client, await receiver.next(), { currentDate })
  const { payload } = await jwtVerify(idToken, createLocalJWKSet(await publishedKeys()), { currentDate })
  t.equal(claims.sub, payload.sub)
  t.equal(claims['sid'], payload['sid'])
  const silent = await agent.send(requestUrl(client, { prompt: 'none' }))
  t.match(responseOf(silent), { error: 'login_required' }, 'the session is over')
})

t.test('oidcc-3rd_party-init-login: initiate_login_uri is kept and returned', async (t) => {
  const uri = 'https://suite.example/initiate-login'
  const { information } = await register(t, { ...withSecret, initiate_login_uri: uri })
  t.equal(information['initiate_login_uri'], uri)
  const response = await fetch(String(information['registration_client_uri']), {
    headers: { authorization: `Bearer ${information['registration_access_token']}` },
  })
  t.equal(response.status, 200)
  t.equal((await json(response))['initiate_login_uri'], uri)
})

t.test('oidcc-3rd_party-init-login-nohttps: it must be https', async (t) => {
  const response = await send({ ...withSecret, initiate_login_uri: 'http://suite.example/initiate-login' })
  await assertRejected(t, response, 'invalid_client_metadata')
})
