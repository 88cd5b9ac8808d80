import t from 'tap'
import { hashSecret } from '../../src/domain/secret.ts'
import { pushedRequestKind } from '../../src/specs/rfc9126-pushed-requests/rules.ts'
import {
  authorizationUrl,
  authorize,
  claimsOf,
  exchange,
  type Fields,
  type Issuer,
  pkce,
  postAs,
  register,
  responseOf,
  signInAndApprove,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, assertRejected, json } from '../helpers/wire.ts'

const server = await startServer(t)
const client = await register(server)
const path = '/api/oauth/par'

/** A push of a valid request; fields override or (undefined) omit. */
function push(of: TestClient = client, fields: Fields = {}, to: Issuer = server): Promise<Response> {
  return postAs(to, of, path, {
    response_type: 'code',
    client_id: of.method === 'client_secret_basic' ? undefined : of.id,
    redirect_uri: of.redirectUri,
    scope: 'openid',
    state: 'a-state',
    code_challenge: pkce('v'.repeat(43)).challenge,
    code_challenge_method: 'S256',
    ...fields,
  })
}

/** The reference to a pushed request. */
async function pushed(of: TestClient = client, fields: Fields = {}, to: Issuer = server): Promise<string> {
  const response = await push(of, fields, to)
  if (response.status !== 201)
    throw new Error(`the push responded ${response.status} ${await response.text()}`)
  return String((await json(response))['request_uri'])
}

/** The authorization request of a reference. */
function urlOf(
  requestUri: string,
  fields: Fields = {},
  of: TestClient = client,
  to: Issuer = server,
): string {
  const query = new URLSearchParams({ client_id: of.id, request_uri: requestUri })
  for (const [name, value] of Object.entries(fields)) {
    query.delete(name)
    if (value !== undefined) query.set(name, String(value))
  }
  return `${to.issuer}/oauth/authorize?${query}`
}

const open = (requestUri: string, agent = new UserAgent(server.issuer)) => agent.open(urlOf(requestUri))

t.test('[rfc9126-2.2-created] a push gets 201 with a reference that is not cached', async (t) => {
  const response = await push()
  t.equal(response.status, 201)
  t.match(response.headers.get('content-type'), /^application\/json/)
  t.equal(response.headers.get('cache-control'), 'no-store')
  const body = await json(response)
  t.strictSame(Object.keys(body).sort(), ['expires_in', 'request_uri'])
  t.match(body['request_uri'], /^urn:ietf:params:oauth:request_uri:[\w-]{43}$/)
  t.equal(body['expires_in'], 60)
  t.not((await json(await push()))['request_uri'], body['request_uri'], 'each push has its own')
})

t.test('[rfc9126-2-endpoint] the endpoint is published, and accepts only forms by POST', async (t) => {
  const metadata = await json(await fetch(`${server.issuer}/.well-known/oauth-authorization-server`))
  t.equal(metadata['pushed_authorization_request_endpoint'], server.issuer + path)
  const get = await fetch(server.issuer + path)
  t.equal(get.status, 405)
  t.match(get.headers.get('allow'), /POST/)
  const asJson = await fetch(server.issuer + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: client.id }),
  })
  await assertRejected(t, asJson, 'invalid_request', 415)
})

t.test(
  '[rfc9126-4-use] a reference stands for exactly the pushed request, and leads to tokens',
  async (t) => {
    const requestUri = await pushed(client, { scope: 'openid courses:read', nonce: 'n-1', state: 'pushed' })
    const agent = new UserAgent(server.issuer)
    // Other parameters of the browser do not count.
    const beside = { scope: 'openid grades:write', state: 'other', redirect_uri: 'https://evil.example/cb' }
    const landing = await agent.open(urlOf(requestUri, beside))
    t.equal(landing.at, 'page')
    const location = await signInAndApprove(agent, landing)
    t.equal(location.href.split('?')[0], client.redirectUri)
    t.equal(location.searchParams.get('state'), 'pushed')
    t.equal(location.searchParams.get('iss'), server.issuer)
    const tokens = (await json(
      await exchange(server, client, location.searchParams.get('code') ?? ''),
    )) as unknown as Tokens
    t.strictSame(tokens.scope.split(' ').sort(), ['courses:read', 'openid'])
    t.equal(claimsOf(tokens.id_token)['nonce'], 'n-1')
  },
)

t.test(
  '[rfc9126-4-one-time] a reference can be reloaded until one of its pages is submitted, and never again',
  async (t) => {
    const requestUri = await pushed()
    const [agent, other] = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
    await open(requestUri, agent)
    const reloaded = await open(requestUri, agent)
    const elsewhere = await open(requestUri, other)
    t.ok((await signInAndApprove(agent, reloaded)).searchParams.get('code'), 'the reloaded page works')
    const again = await open(requestUri, agent)
    t.equal(again.at === 'page' && again.page.status, 400)
    t.match(again.at === 'page' && again.page.html, /invalid_request_uri/)
    await t.rejects(
      signInAndApprove(other, elsewhere),
      /unexpected page 400/,
      'a page that was open does not',
    )
  },
)

t.test('a user who denies the request ends its reference, too', async (t) => {
  const requestUri = await pushed()
  const agent = new UserAgent(server.issuer)
  await signInAndApprove(agent, await open(await pushed(), agent))
  const landing = await open(requestUri, agent)
  if (landing.at !== 'page') throw new Error('no page')
  const denied = await agent.submit(landing.page, { decision: 'deny' })
  t.equal(denied.at === 'redirect' && denied.location.searchParams.get('error'), 'access_denied')
  const again = await open(requestUri, agent)
  t.equal(again.at === 'page' && again.page.status, 400)
})

t.test('a request that needs no page uses its reference up', async (t) => {
  const operatorClient = await addClient(server)
  const agent = new UserAgent(server.issuer)
  await signInAndApprove(agent, await open(await pushed(), agent))
  const requestUri = await pushed(operatorClient)
  const url = urlOf(requestUri, {}, operatorClient)
  t.ok(responseOf(await agent.send(url))['code'])
  t.equal((await agent.send(url)).status, 400)
  // Two browsers at once: only one gets a code for the reference.
  const second = urlOf(await pushed(operatorClient), {}, operatorClient)
  const responses = await Promise.all([agent.send(second), agent.send(second), agent.send(second)])
  const codes = responses.filter(
    ({ status, headers }) => status === 303 && /[?&]code=/.test(headers.get('location') ?? ''),
  )
  t.equal(codes.length, 1)
})

t.test(
  '[rfc9126-4-one-time] an expired reference is rejected; a page opened before can be completed',
  async (t) => {
    const [late, opened] = [await pushed(), await pushed()]
    const agent = new UserAgent(server.issuer)
    server.advance(59)
    const landing = await open(opened, agent)
    server.advance(1)
    const expired = await open(late)
    t.equal(expired.at === 'page' && expired.page.status, 400)
    t.match(expired.at === 'page' && expired.page.html, /invalid_request_uri/)
    server.advance(600)
    t.ok((await signInAndApprove(agent, landing)).searchParams.get('code'))
  },
)

t.test('[rfc9126-2-client-auth-as-token] clients authenticate as at the token endpoint', async (t) => {
  for (const method of ['client_secret_basic', 'client_secret_post']) {
    const confidential = await register(server, { token_endpoint_auth_method: method })
    t.equal((await push(confidential)).status, 201, method)
    const impostor = { ...confidential, secret: 'wrong' }
    await assertRejected(t, await push(impostor), 'invalid_client', method.endsWith('basic') ? 401 : 400)
    const { secret: _, ...nameOnly } = { ...confidential, method: 'none' }
    await assertRejected(t, await push(nameOnly, { client_id: confidential.id }), 'invalid_client', 400)
    const requestUri = await pushed(confidential)
    const record = await server.deps.store.find(pushedRequestKind, hashSecret(requestUri))
    t.match(record?.parameters, { client_id: confidential.id, state: 'a-state' })
    t.notOk('client_secret' in (record?.parameters ?? {}), 'what authenticated the client is not stored')
  }
  await assertRejected(t, await push({ ...client, id: 'nobody' }), 'invalid_client', 400)
  await assertRejected(t, await push(client, { client_id: undefined }), 'invalid_request')
})

t.test('[rfc9126-2.2-unguessable-and-bound] a reference belongs to the client that pushed it', async (t) => {
  const other = await register(server)
  const requestUri = await pushed()
  for (const url of [
    urlOf(requestUri, {}, other),
    urlOf(requestUri, { client_id: undefined }),
    urlOf(`${requestUri}x`),
    urlOf('urn:ietf:params:oauth:request_uri:guess'),
  ]) {
    const response = await new UserAgent(server.issuer).send(url)
    t.equal(response.status, 400)
    t.equal(response.headers.get('location'), null)
  }
  const landing = await open(requestUri)
  t.equal(landing.at, 'page', 'and still works for it')
  t.equal(landing.at === 'page' && landing.page.status, 200)
})

t.test('[rfc9126-2.1-reject-request-uri] a request with a request_uri cannot be pushed', async (t) => {
  for (const requestUri of [await pushed(), 'urn:x', 'https://client.example/request.jwt'])
    await assertRejected(t, await push(client, { request_uri: requestUri }), 'invalid_request')
})

t.test(
  '[rfc9126-2.1-validate-as-authorize] [rfc9126-2.3-error-format] a push is validated as an authorization request, and its errors are JSON',
  async (t) => {
    const faults: [Fields, string][] = [
      [{ redirect_uri: 'http://127.0.0.1/other' }, 'invalid_request'],
      [{ scope: 'openid nope' }, 'invalid_scope'],
      [{ code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
      [{ code_challenge_method: 'plain' }, 'invalid_request'],
      [{ response_type: 'token' }, 'unsupported_response_type'],
      [{ resource: 'https://unknown.example' }, 'invalid_target'],
      [{ request: 'eyJ.eyJ.x' }, 'invalid_request_object'],
      [{ response_mode: 'fragment' }, 'invalid_request'],
      [{ state: ['a', 'b'] }, 'invalid_request'],
    ]
    for (const [fields, error] of faults) {
      const about = `[rfc9126-2.1-validate-as-authorize] ${error}`
      await assertRejected(t, await push(client, fields), error, 400, about)
    }
    const { status } = await push(client, { prompt: 'none' })
    t.equal(status, 201, '[rfc9126-2.3-error-format] no error about the user')
    const tokens = await tokensOf()
    const claims = JSON.stringify({ id_token: { sub: { value: 'somebody-else' } } })
    await assertRejected(t, await push(client, { id_token_hint: tokens.id_token, claims }), 'invalid_request')
    const large = await push(client, { state: 's'.repeat(20_000) })
    await assertRejected(t, large, 'invalid_request', 413, '[rfc9126-2.3-error-format]')
  },
)

async function tokensOf(): Promise<Tokens> {
  const agent = new UserAgent(server.issuer)
  const location = await signInAndApprove(agent, await open(await pushed(), agent))
  return (await (await exchange(server, client, location.searchParams.get('code') ?? '')).json()) as Tokens
}

t.test('[rfc9126-4-revalidate] a request is validated again when its reference is used', async (t) => {
  const changing = await addClient(server, { redirectUris: ['https://a.example/cb'] })
  const requestUri = await pushed(changing)
  const gone = await pushed(changing)
  const stored = await server.deps.store.find('client', changing.id)
  if (stored === undefined) throw new Error('the client is stored')
  await server.deps.store.write({
    op: 'update',
    kind: 'client',
    record: { ...stored, redirectUris: ['https://b.example/cb'] },
  })
  const moved = await new UserAgent(server.issuer).send(urlOf(requestUri, {}, changing))
  t.equal(moved.status, 400, 'the redirect URI is not registered any more')
  await server.deps.store.write({ op: 'delete', kind: 'client', key: changing.id })
  const removed = await new UserAgent(server.issuer).send(urlOf(gone, {}, changing))
  t.equal(removed.status, 400, 'the client does not exist any more')
  t.equal(removed.headers.get('location'), null)
})

t.test(
  '[rfc9126-7.2-new-redirects-authenticated] a redirect URI must be registered, whichever client pushes it',
  async (t) => {
    const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
    for (const each of [client, confidential]) {
      const redirectUri = 'http://127.0.0.1:51004/unregistered'
      await assertRejected(t, await push(each, { redirect_uri: redirectUri }), 'invalid_request')
    }
  },
)

t.test(
  '[rfc9126-5-require-par] a client that registered to push must not send parameters directly',
  async (t) => {
    const metadata = { require_pushed_authorization_requests: true }
    const pushing = await register(server, metadata)
    const direct = responseOf(await authorize(server, pushing))
    t.equal(direct['error'], 'invalid_request')
    t.equal(direct['state'], 'a-state')
    const response = await new UserAgent(server.issuer).send(urlOf(await pushed(pushing), {}, pushing))
    t.match(response.headers.get('location'), /\/login\?interaction=/)
    await t.rejects(
      register(server, { require_pushed_authorization_requests: 'yes' }),
      /invalid_client_metadata/,
    )
  },
)

t.test(
  '[rfc9126-5-require-par] a server that requires pushes advertises it, and accepts nothing else',
  async (t) => {
    const strict = await startServer(t, { pushedRequests: { required: 'on', seconds: 5 } })
    const metadata = await json(await fetch(`${strict.issuer}/.well-known/openid-configuration`))
    t.equal(metadata['require_pushed_authorization_requests'], true)
    const any = await register(strict)
    t.equal(responseOf(await authorize(strict, any))['error'], 'invalid_request')
    const response = await push(any, {}, strict)
    const { request_uri: requestUri, expires_in: seconds } = await json(response)
    t.equal(seconds, 5)
    const opened = await new UserAgent(strict.issuer).send(urlOf(String(requestUri), {}, any, strict))
    t.match(opened.headers.get('location'), /\/login\?interaction=/)
  },
)

t.test(
  '[rfc9126-5-par-independent-metadata] pushed requests work for a client that may send no other request_uri',
  async (t) => {
    const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
    t.equal(metadata['require_request_uri_registration'], true)
    t.equal(metadata['require_pushed_authorization_requests'], false)
    const foreign = authorizationUrl(server, client, { request_uri: 'https://client.example/request.jwt' })
    const response = await new UserAgent(server.issuer).send(foreign)
    t.equal(responseOf(response)['error'], 'invalid_request_uri')
    const landing = await open(await pushed())
    t.equal(landing.at === 'page' && landing.page.status, 200)
  },
)
