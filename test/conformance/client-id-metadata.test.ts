/** Clients that are known by the URL of their metadata document (draft-ietf-oauth-client-id-metadata-document). */
import t, { type Test } from 'tap'
import { deniedDocumentKind } from '../../src/domain/client-document.ts'
import { insert, remove } from '../../src/domain/decision.ts'
import { makeClientKey, signAssertion, withAssertion } from '../helpers/assertions.ts'
import { pageOf } from '../helpers/authorization.ts'
import {
  authorizationUrl,
  authorize,
  callApi,
  exchange,
  type Fields,
  obtainCode,
  obtainTokens,
  post,
  refresh,
  responseOf,
  type TestClient,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { type Published, startStandInDocuments, webRedirect } from '../helpers/stand-in-documents.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, introspect, json } from '../helpers/wire.ts'
import { enter, offered, press, textOf } from '../pages/account/sections.ts'

const server = await startServer(t, {
  mode: 'dev',
  nodes: 1,
  fetch: { timeoutSeconds: 1, perOriginPerMinute: 500, perNetworkPerMinute: 500 },
})
const site = await startStandInDocuments(t)
const password = { username: 'alice', password: 'alice-in-tests' }
const minute = 60

/** Asserts that the browser gets an error page, and that the log names the rule. */
async function assertPage(t: Test, client: TestClient, rule: string, about: string, fields: Fields = {}) {
  const response = await authorize(server, client, fields)
  t.equal(response.status, 400, `${about}: an error page`)
  t.equal(response.headers.get('location'), null, `${about}: no redirect`)
  t.match(response.headers.get('content-type'), /^text\/html/)
  const line = server.log.findLast((text) => text.includes('invalid_client')) ?? ''
  t.match(line, `"${rule}"`, `${about}: ${rule}`)
}

/** Asserts that the authorization request is accepted. */
async function assertAccepted(t: Test, client: TestClient, about: string, fields: Fields = {}) {
  const response = await authorize(server, client, fields)
  t.equal(response.status, 303, `${about}: ${response.status === 303 ? '' : await response.text()}`)
  t.match(response.headers.get('location'), /\/login\?interaction=/, about)
}

/** How often the document was fetched. */
function fetchesOf({ id }: TestClient): number {
  return site.requests.filter((path) => site.origin + path === id).length
}

/** The consent page of a new request in a browser that is signed in, or undefined if none is shown. */
async function consentOf(client: TestClient, agent: UserAgent, fields: Fields = {}) {
  const landing = await agent.open(authorizationUrl(server, client, fields))
  if (landing.at === 'redirect') return undefined
  const { page } = landing
  const isSignIn = page.forms[0]?.fields.some(({ name }) => name === 'password')
  return isSignIn ? pageOf(await agent.submit(page, password)) : page
}

t.test(
  '[rfc6749-3.1.2.3-simple-string-match] only a loopback redirect is said to have a port that may differ',
  async (t) => {
    const web = site.publish({ redirect_uris: ['https://app.example/cb'] }).client
    const native = site.publish({ redirect_uris: ['http://127.0.0.1:51004/cb'] }).client
    const rows = [
      [web, 'https://app.example:8443/cb', false],
      [web, 'http://127.0.0.1:51004/cb', false],
      [native, 'https://app.example/cb', false],
      [native, 'http://127.0.0.1:51004/other', true],
    ] as const
    for (const [by, redirect, isSaid] of rows) {
      const response = await authorize(server, by, { redirect_uri: redirect })
      t.equal(response.status, 400, redirect)
      t.equal(response.headers.get('location'), null, `${redirect}: no redirect`)
      const html = await response.text()
      t.match(html, 'redirect_uri is not registered for this client')
      t.equal(html.includes('only its port may differ'), isSaid, redirect)
    }
    const otherPort = await authorize(server, native, { redirect_uri: 'http://127.0.0.1:9/cb' })
    t.equal(otherPort.status, 303, 'and it may')
  },
)

t.test(
  '[mcp-overview-cimd] [cimd-4-fetch] [cimd-5-advertise] a URL is a client: its document is fetched, and tokens are issued to it',
  async (t) => {
    for (const name of ['oauth-authorization-server', 'openid-configuration']) {
      const metadata = await json(await fetch(`${server.issuer}/.well-known/${name}`))
      t.equal(metadata['client_id_metadata_document_supported'], true, `[cimd-5-advertise] ${name}`)
    }
    const { client } = site.publish({
      grant_types: ['authorization_code', 'refresh_token', 'urn:example:other'],
      response_types: ['code', 'id_token'],
      tool_calls: { unknown: true },
      application_type: 'web',
    })
    const tokens = await obtainTokens(server, client)
    t.ok(tokens.access_token, '[mcp-overview-cimd] nothing was registered')
    t.equal(fetchesOf(client), 1, '[cimd-4-fetch] one GET')
    t.match(await introspect(server, client, tokens.access_token), { active: true, client_id: client.id })
    const renewed = await refresh(server, client, tokens.refresh_token)
    t.equal(renewed.status, 200)
    const { access_token: token } = await json(renewed)
    t.equal(
      (await post(server, '/api/oauth/revoke', { token: String(token), client_id: client.id })).status,
      200,
    )
    t.equal(fetchesOf(client), 1, 'and nothing is fetched for tokens')
  },
)

t.test(
  '[cimd-3-client-id-url] a URL that is no client_id is rejected before anything is fetched',
  async (t) => {
    const { origin } = site
    const host = new URL(origin).host
    const before = site.requests.length
    for (const id of [
      'http://client.example/client.json',
      'https://client.example',
      'https://client.example?a=b',
      'https://client.example/a/../client.json',
      'https://client.example/./client.json',
      'https://client.example/a/%2e%2E/client.json',
      'https://client.example/a/.%2e/client.json',
      'https://client.example/client/..',
      'https://client.example/client.json#x',
      'https://client.example/client.json#',
      'https://user:secret@client.example/client.json',
      'https://user@client.example/client.json',
      'https://client.example\\@evil.example/client.json',
      'https://client.example/cli ent.json',
      'https://client.example/%zz',
      'https:///client.json',
      'https://client.example:0/client.json',
      'https://client.example:99999/client.json',
      `https://client.example/${'a'.repeat(2048)}`,
      `http://user@${host}/client.json`,
      `http://${host}`,
      `${origin}/a/../clients/1.json`,
      `${origin}/clients/1.json#x`,
      `${origin.replace('127.0.0.1', '127.1')}/clients/1.json`,
    ])
      await assertPage(
        t,
        { id, method: 'none', redirectUri: webRedirect },
        'cimd-3-client-id-url',
        id.slice(0, 80),
      )
    t.equal(site.requests.length, before, 'nothing is fetched')
    for (const path of [
      '/with/a.dot/and..two/c.json',
      '/port-and-query?v=2',
      '/.well-known/c.json',
      '/a~b%20c',
    ])
      await assertAccepted(t, site.publish({}, path).client, path)
    await assertAccepted(t, site.publish({}, '/').client, '[cimd-3-root-path] a bare slash')
    const rootless = { id: origin, method: 'none', redirectUri: webRedirect }
    await assertPage(t, rootless, 'cimd-3-client-id-url', '[cimd-3-root-path] the same without it')
  },
)

t.test(
  '[cimd-4-status-200-only] [cimd-4-no-redirects] [cimd-4.3-fetch-failure] [cimd-4.4-no-cache-errors] a document that cannot be fetched ends the request, and is fetched again at once',
  async (t) => {
    const there = site.publish({})
    for (const [status, rule, headers] of [
      [201, 'cimd-4-status-200-only'],
      [204, 'cimd-4-status-200-only'],
      [404, 'cimd-4-status-200-only'],
      [500, 'cimd-4-status-200-only'],
      [301, 'cimd-4-no-redirects', { location: there.client.id }],
      [302, 'cimd-4-no-redirects', { location: there.client.id }],
      [307, 'cimd-4-no-redirects', { location: there.client.id }],
    ] as const) {
      const { client, document } = site.publish({})
      Object.assign(document, { status, headers: { 'cache-control': 'max-age=3600', ...headers } })
      await assertPage(t, client, rule, `[${rule}] ${status}`)
      t.equal(await server.deps.store.find('client', client.id), undefined, 'nothing is stored')
      Object.assign(document, { status: 200, headers: {} })
      // What does not exist is looked for once a minute: see unknown-documents.test.ts.
      if (status === 404) server.advance(minute)
      await assertAccepted(t, client, `[cimd-4.4-no-cache-errors] 200 after ${status}`)
      t.equal(fetchesOf(client), 2)
    }
    t.equal(fetchesOf(there.client), 0, '[cimd-4-no-redirects]')
    const { client, document } = site.publish({})
    document.silent = true
    await assertPage(t, client, 'cimd-4.3-fetch-failure', '[cimd-4.3-fetch-failure] no response in time')
    document.silent = false
    await assertAccepted(t, client, '[cimd-4.4-no-cache-errors] a response after none')
    const nowhere = { ...client, id: 'http://127.0.0.1:9/client.json' }
    await assertPage(t, nowhere, 'cimd-4.3-fetch-failure', '[cimd-4.3-fetch-failure] no server')
  },
)

t.test(
  '[cimd-4.1-client-id-equals-url] [cimd-4.1-json-document] [cimd-4.1-no-shared-secrets] [cimd-6.6-size-limit] a document that breaks a rule is no client, and is not kept',
  async (t) => {
    const wrong: [string, string, (published: Published & { body: Record<string, unknown> }) => void][] = [
      ['cimd-4.1-client-id-equals-url', 'a slash more', ({ body }) => (body['client_id'] += '/')],
      [
        'cimd-4.1-client-id-equals-url',
        'another case',
        ({ body }) => (body['client_id'] = String(body['client_id']).replace('http', 'HTTP')),
      ],
      [
        'cimd-4.1-client-id-equals-url',
        'another name of the host',
        ({ body }) => (body['client_id'] = String(body['client_id']).replace('127.0.0.1', 'localhost')),
      ],
      ['cimd-4.1-client-id-equals-url', 'no client_id', ({ body }) => delete body['client_id']],
      ['cimd-4.1-client-id-equals-url', 'a list', ({ body }) => (body['client_id'] = [body['client_id']])],
      ['cimd-4.1-json-document', 'HTML', ({ headers }) => (headers['content-type'] = 'text/html')],
      [
        'cimd-4.1-json-document',
        'text',
        ({ headers }) => (headers['content-type'] = 'text/plain; x=application/json'),
      ],
      [
        'cimd-4.1-json-document',
        'JSON lines',
        ({ headers }) => (headers['content-type'] = 'application/jsonl'),
      ],
      [
        'cimd-4.1-json-document',
        'an array',
        (published) => (published.text = JSON.stringify([published.body])),
      ],
      ['cimd-4.1-json-document', 'null', (published) => (published.text = 'null')],
      ['cimd-4.1-json-document', 'nothing', (published) => (published.text = '')],
      [
        'cimd-4.1-json-document',
        'a member twice',
        (published) => (published.text = JSON.stringify(published.body).replace('{', '{"client_name":"x",')),
      ],
      [
        'cimd-4.1-json-document',
        'not UTF-8',
        (published) =>
          (published.text = Buffer.from(JSON.stringify({ ...published.body, client_name: 'é' }), 'latin1')),
      ],
      ['cimd-4.1-no-shared-secrets', 'a secret', ({ body }) => (body['client_secret'] = 'x')],
      ['cimd-4.1-no-shared-secrets', 'no secret', ({ body }) => (body['client_secret'] = null)],
      ['cimd-4.1-no-shared-secrets', 'when it expires', ({ body }) => (body['client_secret_expires_at'] = 0)],
      ...[
        'client_secret_post',
        'client_secret_basic',
        'client_secret_jwt',
        'tls_client_auth',
        ['none'],
        7,
      ].map((method): (typeof wrong)[number] => [
        'cimd-4.1-no-shared-secrets',
        `the method ${method}`,
        ({ body }) => (body['token_endpoint_auth_method'] = method),
      ]),
      ['cimd-4.1-json-document', 'no redirect URIs', ({ body }) => delete body['redirect_uris']],
      ['cimd-4.1-json-document', 'a text of them', ({ body }) => (body['redirect_uris'] = webRedirect)],
      [
        'cimd-4.1-json-document',
        'none that can be used',
        ({ body }) =>
          (body['redirect_uris'] = [
            'app:/callback',
            'http://client.example/',
            'javascript:x',
            `${webRedirect}?code=1`,
          ]),
      ],
      [
        'rfc7591-3.2.2-invalid-client-metadata',
        'a deceptive name',
        ({ body }) => (body['client_name'] = 'A\u202eB'),
      ],
      ['rfc7591-2-uri-members-valid', 'a script', ({ body }) => (body['client_uri'] = 'javascript:alert(1)')],
      [
        'rfc7523-2.2-registration',
        'no keys',
        ({ body }) => (body['token_endpoint_auth_method'] = 'private_key_jwt'),
      ],
      [
        'rfc7591-3.2.2-invalid-client-metadata',
        'a private key',
        ({ body }) => {
          body['token_endpoint_auth_method'] = 'private_key_jwt'
          body['jwks'] = { keys: [{ ...makeClientKey().jwk, d: 'AQAB' }] }
        },
      ],
      ['cimd-6.6-size-limit', 'more than 5 kB', ({ body }) => (body['padding'] = 'a'.repeat(5120))],
    ]
    for (const [rule, about, change] of wrong) {
      const { client, document } = site.publish({})
      const published = document as Published & { body: Record<string, unknown> }
      const right = structuredClone(published)
      change(published)
      await assertPage(t, client, rule, `[${rule}] ${about}`)
      t.equal(await server.deps.store.find('client', client.id), undefined, `${about}: nothing is stored`)
      Object.assign(published, { text: undefined, ...right })
      await assertAccepted(t, client, `${about}: corrected`)
    }
    for (const type of [
      'application/json; charset=utf-8',
      'application/oauth-client+json',
      'Application/JSON',
    ]) {
      const { client, document } = site.publish({ padding: 'a'.repeat(4800) })
      document.headers['content-type'] = type
      await assertAccepted(t, client, type)
    }
  },
)

t.test(
  '[cimd-4.4-cache] a document is fetched again when it is no longer fresh, within bounds',
  async (t) => {
    for (const [headers, fresh] of [
      [{ 'cache-control': 'max-age=1200' }, 1200],
      [{ 'cache-control': 'max-age=1200', age: '600' }, 600],
      [{ 'cache-control': 'max-age=60' }, 300],
      [{ 'cache-control': 'no-store' }, 300],
      [{}, 300],
      [{ 'cache-control': 'max-age=9999999' }, 86_400],
    ] as const) {
      const about = JSON.stringify(headers)
      const { client, document } = site.publish({})
      document.headers = { ...headers }
      await assertAccepted(t, client, about)
      server.advance(fresh - 10)
      await assertAccepted(t, client, about)
      t.equal(fetchesOf(client), 1, `${about}: fresh`)
      server.advance(20)
      await assertAccepted(t, client, about)
      t.equal(fetchesOf(client), 2, `${about}: fetched again`)
    }
    const { client, document } = site.publish({})
    document.headers = { 'cache-control': 'max-age=600' }
    await Promise.all(Array.from({ length: 8 }, () => assertAccepted(t, client, 'at once')))
    t.equal(fetchesOf(client), 1, 'requests at the same time fetch once')
    server.advance(601)
    document.status = 500
    await assertPage(
      t,
      client,
      'cimd-4-status-200-only',
      'a document that is not fresh is no client for a new request',
    )
  },
)

t.test(
  '[cimd-4.5-redirect-from-document] redirects go where the document says, with any port on loopback',
  async (t) => {
    const loopback = 'http://127.0.0.1/callback'
    const { client } = site.publish({
      redirect_uris: [webRedirect, loopback, 'http://localhost:33418/', 'app.example:/callback'],
    })
    for (const redirectUri of [
      webRedirect,
      'http://127.0.0.1:1024/callback',
      'http://localhost:5/',
      loopback,
    ])
      await assertAccepted(t, client, redirectUri, { redirect_uri: redirectUri })
    for (const redirectUri of [
      `${webRedirect}/`,
      'https://client.example:8443/callback',
      'https://evil.example/callback',
      'http://127.0.0.1:1024/other',
      'http://[::1]:1024/callback',
      'http://localhost:1024/callback',
      'app.example:/callback',
    ]) {
      const response = await authorize(server, client, { redirect_uri: redirectUri })
      t.equal(response.status, 400, redirectUri)
      t.equal(response.headers.get('location'), null)
    }
    const { client: narrow } = site.publish({ scope: 'openid courses:read unknown:scope' })
    const httpResponse = responseOf(await authorize(server, narrow, { scope: 'openid orders:read' }))
    t.equal(httpResponse['error'], 'invalid_scope', 'the scope of the document is a limit')
  },
)

t.test('[cimd-6.2-key-auth] a client with keys authenticates by them', async (t) => {
  const key = makeClientKey('ES256', 'first')
  const other = makeClientKey('ES256', 'second')
  const { client, document } = site.publish({
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [key.jwk] },
  })
  const proof = (by = key) =>
    withAssertion(signAssertion(by, { id: client.id, issuer: server.issuer, now: server.now() }))
  const code = await obtainCode(server, client)
  await assertRejected(t, await exchange(server, client, code), 'invalid_client')
  await assertRejected(t, await exchange(server, client, code, proof(other)), 'invalid_client')
  const response = await exchange(server, client, code, proof())
  t.equal(response.status, 200)
  const { refresh_token: token } = await json(response)
  const fetched = fetchesOf(client)
  const body = document.body as Record<string, unknown>
  document.body = { ...body, jwks: { keys: [other.jwk] } }
  server.advance(301)
  await assertRejected(t, await refresh(server, client, String(token), proof()), 'invalid_client')
  t.equal(fetchesOf(client), fetched + 1, 'the keys are those of the document')
  server.advance(301)
  document.status = 500
  const renewed = await refresh(server, client, String(token), proof(other))
  t.equal(renewed.status, 200, 'and those of before while it cannot be fetched')
  server.advance(86_400)
  const { refresh_token: next } = await json(renewed)
  await assertRejected(t, await refresh(server, client, String(next), proof(other)), 'invalid_client')
})

t.test(
  '[cimd-4.1-no-shared-secrets] [cimd-6.2-key-auth] a client that offers several methods uses one that this server has, and its key if it has one',
  async (t) => {
    const key = makeClientKey('RS256', 'first')
    const jwks = { keys: [key.jwk] }
    const both = ['none', 'private_key_jwt']
    for (const [about, members, isPublic] of [
      // As ChatGPT publishes it.
      ['it prefers keys', { token_endpoint_auth_method: 'private_key_jwt', jwks }, false],
      ['it prefers none, and has a key', { token_endpoint_auth_method: 'none', jwks }, false],
      ['it prefers nothing, and has a key', { jwks }, false],
      ['it prefers what this server does not have', { token_endpoint_auth_method: 'tls_client_auth' }, true],
      ['it prefers nothing', {}, true],
      [
        'it offers a secret, too',
        { token_endpoint_auth_methods_supported: ['client_secret_basic', 'none'] },
        true,
      ],
    ] as const) {
      const { client } = site.publish({ token_endpoint_auth_methods_supported: both, ...members })
      const code = await obtainCode(server, client)
      const bare = await exchange(server, client, code)
      if (isPublic) t.equal(bare.status, 200, `[sep3149-specification-intersection] ${about}`)
      else await assertRejected(t, bare, 'invalid_client', 400, `[sep3149-security-no-downgrade] ${about}`)
      if (isPublic) continue
      const assertion = { id: client.id, issuer: server.issuer, now: server.now() }
      t.equal(
        (await exchange(server, client, code, withAssertion(signAssertion(key, assertion)))).status,
        200,
      )
    }
    const { client: keyed } = site.publish({
      token_endpoint_auth_methods_supported: ['private_key_jwt'],
      jwks,
    })
    await assertRejected(t, await exchange(server, keyed, await obtainCode(server, keyed)), 'invalid_client')
    for (const members of [
      { token_endpoint_auth_method: 'client_secret_basic', token_endpoint_auth_methods_supported: both },
      { token_endpoint_auth_methods_supported: ['client_secret_basic'] },
      { token_endpoint_auth_method: 'tls_client_auth', token_endpoint_auth_methods_supported: 'none' },
    ])
      await assertPage(
        t,
        site.publish(members).client,
        'cimd-4.1-no-shared-secrets',
        `[cimd-4.1-no-shared-secrets] ${JSON.stringify(members)}`,
      )
  },
)

t.test('[cimd-6.2-key-auth] empty members of a key are absent, and a private one is not', async (t) => {
  const key = makeClientKey('ES256', 'first')
  const dotNet = { alg: null, d: null, k: null, n: null, oth: [], key_ops: [], x5c: [], x5u: null }
  const publish = (more: object) =>
    site.publish({
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [{ ...key.jwk, ...more }] },
    }).client
  for (const more of [{ alg: null }, { d: null }, { key_ops: [], x5c: [] }, dotNet]) {
    const client = publish(more)
    const assertion = signAssertion(key, { id: client.id, issuer: server.issuer, now: server.now() })
    const code = await obtainCode(server, client)
    const response = await exchange(server, client, code, withAssertion(assertion))
    t.equal(response.status, 200, JSON.stringify(more))
  }
  for (const more of [{ d: '' }, { d: 'AQAB' }, { ...dotNet, k: 'AQAB' }]) {
    const response = await authorize(server, publish(more))
    t.equal(response.status, 400, JSON.stringify(more))
    t.match(await response.text(), 'has a private or symmetric key')
  }
})

t.test('[cimd-6.2-key-auth] keys at a URL are fetched by the same rules', async (t) => {
  const key = makeClientKey('EdDSA', 'first')
  const keys = site.publish({}, '/keys.json')
  keys.document.body = { keys: [key.jwk] }
  const { client } = site.publish({
    token_endpoint_auth_method: 'private_key_jwt',
    jwks_uri: keys.client.id,
  })
  const code = await obtainCode(server, client)
  const proof = withAssertion(signAssertion(key, { id: client.id, issuer: server.issuer, now: server.now() }))
  t.equal((await exchange(server, client, code, proof)).status, 200)
})

t.test(
  '[cimd-6.5-ssrf] [cimd-6.5-inner-urls] a server in production connects to public addresses only, and by https',
  async (t) => {
    const strict = await startServer(t, { nodes: 1, clientDocuments: { mode: 'any' } })
    const before = site.requests.length
    for (const id of [
      'https://10.0.0.1/client.json',
      'https://169.254.169.254/latest/meta-data',
      'https://127.0.0.1/client.json',
      'https://localhost/client.json',
      'https://[::1]/client.json',
      'https://[::ffff:127.0.0.1]/client.json',
      'https://0x7f.1/client.json',
      `https://${new URL(site.origin).host}/client.json`,
    ]) {
      const response = await authorize(strict, { id, method: 'none', redirectUri: webRedirect })
      t.equal(response.status, 400, id)
      const line = strict.log.findLast((text) => text.includes('invalid_client')) ?? ''
      t.match(line, '"cimd-6.5-ssrf"', `[cimd-6.5-ssrf] ${id}`)
    }
    const plain = { ...site.publish({}).client }
    t.equal((await authorize(strict, plain)).status, 400)
    t.match(
      strict.log.findLast((text) => text.includes('invalid_client')),
      '"cimd-3-client-id-url"',
    )
    t.equal(site.requests.length, before, 'no connection')
  },
)

t.test('which documents are accepted is decided by the settings', async (t) => {
  const listed = await startServer(t, { nodes: 1 })
  const metadata = await json(await fetch(`${listed.issuer}/.well-known/oauth-authorization-server`))
  t.equal(metadata['client_id_metadata_document_supported'], true)
  for (const id of ['https://client.example/client.json', 'https://claude.ai.evil.example/client.json']) {
    const client = { id, method: 'none', redirectUri: webRedirect }
    t.equal((await authorize(listed, client)).status, 400)
    const line = listed.log.findLast((text) => text.includes('invalid_client')) ?? ''
    t.match(line, '"lychgate-client-document-allowed"', id)
    await assertRejected(t, await exchange(listed, client, 'x'), 'invalid_client')
  }
  const { client } = site.publish({})
  for (const [settings, status] of [
    [{ mode: 'allow-list', allowed: [client.id] }, 303],
    [{ mode: 'allow-list', allowed: [new URL(client.id).host] }, 303],
    [{ mode: 'allow-list', allowed: ['127.0.0.1', `${client.id}/`, site.origin] }, 400],
    [{ mode: 'off', allowed: [client.id] }, 400],
  ] as const) {
    const choosy = await startServer(t, {
      mode: 'dev',
      nodes: 1,
      clientDocuments: { ...settings, allowed: [...settings.allowed] },
    })
    t.equal((await authorize(choosy, client)).status, status, JSON.stringify(settings))
    await choosy.close()
  }
})

t.test(
  'installs of one client are listed by redirect host and time, and each is disconnected alone',
  async (t) => {
    const { host } = new URL(site.origin)
    const { client } = site.publish({
      client_name: 'Terminal Agent',
      redirect_uris: [webRedirect, 'http://127.0.0.1/callback'],
    })
    const agent = new UserAgent(server.issuer)
    const install = async (redirectUri: string) => {
      server.advance(10 * minute)
      const at = { ...client, redirectUri }
      return obtainTokens(server, at, { agent, fields: { scope: 'openid courses:read' } })
    }
    const laptop = await install('http://127.0.0.1:4001/callback')
    const desktop = await install('http://127.0.0.1:4002/callback')
    const web = await install(webRedirect)
    const page = await enter(server, agent, '/apps')
    t.match(textOf(page), `Terminal Agent It belongs to ${host}.`)
    t.match(
      textOf(page),
      /client\.example.*127\.0\.0\.1:4002.*10 minutes ago.*127\.0\.0\.1:4001.*20 minutes ago/,
    )
    const [, , first = ''] = offered(page, 'grant')
    await press(agent, page, 'grant', first)
    await assertRejected(t, await refresh(server, client, laptop.refresh_token), 'invalid_grant')
    t.equal((await callApi(server, '/api/courses', laptop.access_token)).status, 401)
    for (const tokens of [desktop, web]) {
      t.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 200, 'the others stay')
      t.equal((await refresh(server, client, tokens.refresh_token)).status, 200)
    }
    await press(agent, await enter(server, agent, '/apps'), 'client', client.id)
    for (const tokens of [desktop, web])
      t.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 401, 'all end together')
  },
)

t.test('a pushed request is as good, and a denied or locked client gets nothing more', async (t) => {
  const { client } = site.publish({})
  const push = () =>
    post(server, '/api/oauth/par', {
      client_id: client.id,
      redirect_uri: webRedirect,
      response_type: 'code',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
      scope: 'openid',
    })
  const pushed = await push()
  t.equal(pushed.status, 201)
  const { request_uri: requestUri } = await json(pushed)
  const query = new URLSearchParams({ client_id: client.id, request_uri: String(requestUri) })
  const opened = await fetch(`${server.issuer}/oauth/authorize?${query}`, { redirect: 'manual' })
  t.match(opened.headers.get('location'), /\/login\?interaction=/)
  const tokens = await obtainTokens(server, client)
  const denied = { id: client.id, deniedAt: server.now() }
  await server.deps.store.write(insert(deniedDocumentKind, denied))
  await assertPage(t, client, 'lychgate-client-document-denied', 'denied')
  await assertRejected(t, await push(), 'invalid_client')
  await assertRejected(t, await refresh(server, client, tokens.refresh_token), 'invalid_client')
  await server.deps.store.write(remove(deniedDocumentKind, client.id))
  t.equal((await push()).status, 201, 'and is accepted again')
})

t.test(
  '[cimd-6.4-show-hostname] the consent page shows the host, and warns of loopback; it asks again when the terms change',
  async (t) => {
    const { host } = new URL(site.origin)
    const { client, document } = site.publish({ redirect_uris: [webRedirect, 'http://127.0.0.1/callback'] })
    const agent = new UserAgent(server.issuer)
    const first = await consentOf(client, agent, { scope: 'openid courses:read' })
    t.match(first && textOf(first), `This app belongs to ${host}.`, '[cimd-6.4-show-hostname]')
    t.notMatch(first && textOf(first), 'This app named itself')
    t.equal(first && (await agent.submit(first, { decision: 'approve' })).at, 'redirect')
    t.equal(await consentOf(client, agent, { scope: 'openid courses:read' }), undefined, 'it is remembered')
    const wider = await consentOf(client, agent, { scope: 'openid courses:read courses:write' })
    t.match(wider && textOf(wider), 'You connected this app before', 'a wider scope asks for the difference')
    const loopback = { redirect_uri: 'http://127.0.0.1:3000/callback', scope: 'openid courses:read' }
    for (const about of ['the first time', 'and every time']) {
      const here = await consentOf(client, agent, loopback)
      t.match(
        here && textOf(here),
        `This app says that it belongs to ${host}. Any program on this computer can say so.`,
      )
      t.equal(here && (await agent.submit(here, { decision: 'approve' })).at, 'redirect', about)
    }
    const body = document.body as Record<string, unknown>
    const refreshed = async (members: Record<string, unknown>) => {
      document.body = { ...body, ...members }
      server.advance(5 * minute + 1)
      return consentOf(client, agent, { scope: 'openid courses:read' })
    }
    t.equal(await refreshed({ client_name: 'Another name' }), undefined, 'a name is not what consent is for')
    const other = [webRedirect, 'http://127.0.0.1/callback', 'https://client.example/other']
    const again = await refreshed({ redirect_uris: other })
    t.ok(again, 'other redirect URIs ask again')
    t.notMatch(again && textOf(again), 'You connected this app before', 'for everything')
    t.equal(again && (await agent.submit(again, { decision: 'approve' })).at, 'redirect')
    t.equal(await refreshed({ redirect_uris: other }), undefined)
    const key = makeClientKey('ES256', 'first')
    const keyed = { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key.jwk] } }
    t.ok(await refreshed({ redirect_uris: other, ...keyed }), 'keys ask again')
  },
)

t.test('a document gives no scope that only an operator gives', async (t) => {
  const { client } = site.publish({ scope: 'openid admin:users:read' })
  const lacks = await authorize(server, client, { scope: 'openid admin:users:read' })
  t.match(lacks.headers.get('location'), 'error=invalid_scope')
  await assertAccepted(t, client, 'the others', { scope: 'openid' })
  const { client: other } = site.publish({})
  t.match(
    (await authorize(server, other, { scope: 'admin:users:read' })).headers.get('location'),
    'error=invalid_scope',
  )
  const stored = await server.deps.store.find('client', client.id)
  t.strictSame(stored?.scope ?? ['openid'], ['openid'])
})
