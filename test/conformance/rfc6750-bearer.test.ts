import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { callApi, postAs, refresh, type Tokens } from '../helpers/flow.ts'
import { assertRejected, challengeOf, json, startFlow } from '../helpers/wire.ts'

const lessons = 'https://lessons.example/api'
const { server, client, tokens } = await startFlow(t, {
  resources: [{ identifier: lessons, name: 'Lessons', scopes: ['courses:read'], tokenFormat: 'opaque' }],
})
const api = `${server.issuer}/api/courses`
const resourceMetadata = `${server.issuer}/.well-known/oauth-protected-resource`
const { access_token: token } = await tokens({ scope: 'openid courses:read' })

/** Asserts the response to a bad token that RFC 6750 §3.1 defines: 401 with exactly one challenge. */
async function assertInvalid(t: Test, response: Response, about: string): Promise<void> {
  const { scheme, params } = challengeOf(response)
  t.equal(scheme, 'Bearer', `[rfc6750-3-bearer-scheme-and-param] ${about}`)
  const challenges = response.headers.get('www-authenticate')?.match(/(^|, )[A-Za-z]+ [a-z_]+=/g)
  t.equal(challenges?.length, 1, `[rfc6750-3-params-once] one challenge: ${about}`)
  const once = ['error', 'error_description', 'resource_metadata']
  t.strictSame(Object.keys(params).sort(), once, `[rfc6750-3-params-once] ${about}`)
  t.equal(params['error'], 'invalid_token', `[rfc6750-3-error-attribute] ${about}`)
  t.equal(params['resource_metadata'], resourceMetadata, `[rfc9728-5.1-resource-metadata-param] ${about}`)
  const characters = /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/
  t.match(params['error_description'], characters, `[rfc6750-3-charset] ${about}`)
  await assertRejected(t, response, 'invalid_token', 401, `[service-7-invalid-token-401] ${about}`)
}

t.test(
  '[service-5-bearer-api-calls] [rfc6750-2.1-header-supported] [oauth21-5.1.1-scheme-case-insensitive] a token in the header gives its user access, in any case of the scheme',
  async (t) => {
    const user = await server.deps.store.find('userByLogin', 'alice')
    for (const header of ['Bearer ', 'bearer ', 'BEARER ', 'bEaReR ', 'Bearer   ']) {
      const response = await fetch(api, { headers: { authorization: header + token } })
      const clause =
        header === 'Bearer ' ? '[rfc6750-2.1-header-supported]' : '[oauth21-5.1.1-scheme-case-insensitive]'
      t.equal(response.status, 200, `${clause} ${header}`)
      t.equal(response.headers.get('cache-control'), 'no-store')
      t.strictSame(
        await json(response),
        {
          area: 'courses',
          operation: 'read',
          caller: 'user',
          sub: user?.id,
          client_id: client.id,
          scope: 'openid courses:read',
        },
        '[service-5-bearer-api-calls]',
      )
    }
  },
)

t.test(
  '[service-5-no-token-anonymous] [oauth21-5.1-query-token-ignored] [rfc6750-2.3-query-discouraged] a call without a bearer token is anonymous and not challenged',
  async (t) => {
    const form = new URLSearchParams({ access_token: token })
    const calls: [string, RequestInit][] = [
      ['', {}],
      ['', { method: 'POST' }],
      ['', { method: 'DELETE' }],
      [`?access_token=${token}`, {}],
      [`?access_token=${token}`, { method: 'POST' }],
      ['', { headers: { authorization: `Basic ${btoa('alice:alice-in-tests')}` } }],
      ['', { headers: { authorization: '' } }],
      ['', { headers: { authorization: token } }],
      ['', { headers: { authorization: `Bearerx ${token}` } }],
      ['', { headers: { authorization: `Token Bearer ${token}` } }],
      ['', { headers: { cookie: `access_token=${token}` } }],
    ]
    for (const [query, init] of calls) {
      const response = await fetch(api + query, init)
      const clause = query === '' ? '[service-5-no-token-anonymous]' : '[oauth21-5.1-query-token-ignored]'
      t.equal(response.status, 200, `${clause} ${JSON.stringify(init)}`)
      t.equal(response.headers.get('www-authenticate'), null, clause)
      const { caller, ...rest } = await json(response)
      t.equal(caller, 'anonymous', clause)
      t.strictSame(Object.keys(rest), ['area', 'operation'])
    }
    const inForm = await fetch(api, { method: 'POST', body: form })
    await assertRejected(t, inForm, 'invalid_request', 415, 'the form field is no token here')
  },
)

t.test(
  '[service-7-invalid-token-401] [rfc6750-2.1-credentials-syntax] [rfc6750-3-params-once] [rfc9728-5.1-resource-metadata-param] any other text after Bearer is 401 with one challenge, and never anonymous',
  async (t) => {
    const malformed = [
      'Bearer',
      'Bearer ',
      'bearer',
      'Bearer\t',
      `Bearer\t${token}`,
      'Bearer a b',
      `Bearer ${token} ${token}`,
      `Bearer ${token},`,
      `Bearer "${token}"`,
      `Bearer ${token}, Basic YTpi`,
      'Bearer "',
      'Bearer \\',
      'Bearer <script>',
      'Bearer garbage',
      'Bearer eyJhbGciOiJub25lIn0.e30.',
      `Bearer ${'x'.repeat(9000)}`,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token}A`,
      `Bearer ${token}=`,
      `Bearer ${token.slice(11)}`,
      `Bearer ${token.toUpperCase()}`,
      `Bearer ${Buffer.from('å').toString('latin1')}`,
    ]
    for (const authorization of malformed) {
      for (const method of ['GET', 'POST']) {
        const response = await fetch(api, { method, headers: { authorization } })
        t.equal(response.status, 401, `[rfc6750-2.1-credentials-syntax] ${authorization.slice(0, 30)}`)
        await assertInvalid(t, response, `${method} ${authorization.slice(0, 30)}`)
      }
    }
    const found = await fetch(resourceMetadata)
    t.equal(found.status, 200, '[service-5-invalid-token-points-to-prm] the metadata is there')
    const head = await fetch(api, { method: 'HEAD', headers: { authorization: 'Bearer x' } })
    t.equal(head.status, 401)
  },
)

t.test(
  '[rfc6750-3.1-invalid-token-401] [rfc9700-2.3-rs-checks-audience] [service-7-invalid-token-401] revoked tokens, tokens for another API and other kinds of tokens are rejected',
  async (t) => {
    const scope = 'openid courses:read'
    const live = await tokens({ scope })
    const revoked = await tokens({ scope })
    await postAs(server, client, '/api/oauth/revoke', { token: revoked.access_token })
    const bound = await tokens({ scope: 'courses:read', resource: lessons })
    const table = {
      revoked: revoked.access_token,
      'for another API': bound.access_token,
      'a refresh token': live.refresh_token,
      'an ID Token': live.id_token,
    }
    for (const [about, bad] of Object.entries(table)) {
      await assertInvalid(t, await callApi(server, '/api/courses', bad), about)
    }
    t.equal((await callApi(server, '/api/courses', live.access_token)).status, 200)
    const both = await tokens({ scope: 'courses:read', resource: [lessons, server.issuer] })
    t.equal((await callApi(server, '/api/courses', both.access_token)).status, 200)
  },
)

t.test(
  '[service-7-insufficient-scope-403] [service-5-insufficient-scope-points-to-prm] [service-5-scope-read-write-split] [rfc6750-3.1-insufficient-scope-403] a token allows what its scope names, and 403 names the missing scope',
  async (t) => {
    const { access_token: read } = await tokens({ scope: 'courses:read' })
    const { access_token: write } = await tokens({ scope: 'courses:write' })
    const allowed: [string, string][] = [
      [read, 'GET'],
      [read, 'HEAD'],
      [write, 'POST'],
      [write, 'PUT'],
      [write, 'PATCH'],
      [write, 'DELETE'],
    ]
    for (const [bearer, method] of allowed) {
      t.equal((await callApi(server, '/api/courses', bearer, { method })).status, 200, method)
    }
    const rejected: [string, string, string, string][] = [
      [read, 'POST', '/api/courses', 'courses:write'],
      [read, 'DELETE', '/api/courses', 'courses:write'],
      [write, 'GET', '/api/courses', 'courses:read'],
      [read, 'GET', '/api/events', 'events:read'],
      [write, 'POST', '/api/storage', 'storage:write'],
    ]
    for (const [bearer, method, path, scope] of rejected) {
      const response = await callApi(server, path, bearer, { method })
      const { scheme, params } = challengeOf(response)
      t.equal(scheme, 'Bearer', '[rfc6750-3-challenge-on-refusal]')
      const { error_description: description, ...rest } = params
      t.strictSame(rest, { error: 'insufficient_scope', scope, resource_metadata: resourceMetadata })
      t.equal(rest['resource_metadata'], resourceMetadata, '[service-5-insufficient-scope-points-to-prm]')
      t.match(description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/, '[rfc6750-3-charset]')
      const about = `[service-7-insufficient-scope-403] ${method} ${path}`
      await assertRejected(t, response, 'insufficient_scope', 403, about)
    }
  },
)

t.test(
  '[service-5-scope-read-write-split] every area of the scope table has its calls and no others',
  async (t) => {
    const all = server.deps.config.scopes.filter(({ name }) => name.includes(':')).map(({ name }) => name)
    const areas = [...new Set(all.map((name) => name.split(':')[0] ?? ''))]
    t.equal(areas.length, 20)
    const { access_token: every } = await tokens({ scope: all.join(' ') })
    const { access_token: other } = await tokens({ scope: 'openid' })
    for (const area of areas) {
      for (const [method, operation] of [
        ['GET', 'read'],
        ['POST', 'write'],
      ] as const) {
        const served = all.includes(`${area}:${operation}`)
        const anonymous = await callApi(server, `/api/${area}`, undefined, { method })
        t.equal(anonymous.status, served ? 200 : 405, `${method} ${area}`)
        if (!served) continue
        t.match(await json(anonymous), { area, operation, caller: 'anonymous' })
        const called = await callApi(server, `/api/${area}`, every, { method })
        t.match(await json(called), { area, operation, caller: 'user' })
        const rejected = await callApi(server, `/api/${area}`, other, { method })
        t.equal(challengeOf(rejected).params['scope'], `${area}:${operation}`)
      }
    }
  },
)

t.test(
  '[rfc6750-3.1-invalid-request-400] [rfc6750-2-one-method] two Authorization headers are 400, and the API is not called',
  async (t) => {
    const response = await raw(
      `GET /api/courses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
    )
    t.match(response, /^HTTP\/1\.1 400 /)
    t.equal(response.match(/^www-authenticate: Bearer error="invalid_request"/gim)?.length, 1)
    t.match(response, '{"error":"invalid_request"')
    t.notMatch(response, '"caller":"user"')
    const bytes = await raw(
      'GET /api/courses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \u00e5\u00ff\r\nConnection: close\r\n\r\n',
    )
    t.match(bytes, /^HTTP\/1\.1 401 /, 'bytes beyond ASCII are an invalid token')
    t.match(bytes, '{"error":"invalid_token"')
  },
)

t.test(
  '[rfc9728-3.3-resource-matches-request] the challenge leads to the metadata of the API that sent it',
  async (t) => {
    const { params } = challengeOf(await callApi(server, '/api/courses', 'garbage'))
    const found = await json(await fetch(String(params['resource_metadata'])))
    t.equal(found['resource'], server.issuer)
    t.ok(api.startsWith(`${found['resource']}/`), 'the resource is the base of every call')
    t.strictSame(found['authorization_servers'], [server.issuer])
  },
)

t.test(
  '[service-7-invalid-token-401] [rfc6750-3.1-invalid-token-401] an expired token is rejected, and does not fall back to anonymous',
  async (t) => {
    const { access_token: early, refresh_token: refreshToken } = await tokens({ scope: 'courses:read' })
    t.equal((await callApi(server, '/api/courses', early)).status, 200)
    server.advance(server.deps.config.lifetimes.accessTokenSeconds)
    await assertInvalid(t, await callApi(server, '/api/courses', early), 'expired')
    const later = (await (await refresh(server, client, refreshToken)).json()) as Tokens
    t.equal((await callApi(server, '/api/courses', later.access_token)).status, 200)
  },
)

/** One request, byte for byte. */
function raw(request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.issuer).port), 'localhost')
    let response = ''
    socket.setEncoding('latin1').on('data', (chunk) => {
      response += chunk
    })
    socket.on('end', () => resolve(response)).on('error', reject)
    socket.write(request, 'latin1')
  })
}
