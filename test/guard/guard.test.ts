/** The guard in another application, on another address, with tokens it has to introspect. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import formbody from '@fastify/formbody'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { introspectedBy, protectedResourceMetadata, type Rejected } from '../../src/guard/guard.ts'
import { type Fields, obtainTokens, post, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { addResourceServer, callAt, startApi } from '../helpers/guarded-api.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const [notes, other] = [`http://127.0.0.1:${await freePort()}`, 'https://other.example/api']
const scopes = ['courses:read', 'courses:write']
const server = await startServer(t, {
  resources: [notes, other].map((identifier) => ({
    identifier,
    name: 'Notes',
    scopes,
    tokenFormat: 'opaque' as const,
  })),
})
const client = await register(server)
const { agent } = newUser(server)
const credentials = await addResourceServer(server, notes)
const verifyToken = introspectedBy(credentials)
await startApi(t, notes, { verifyToken, anonymous: 'allow' })

const tokens = (fields: Fields = {}) =>
  obtainTokens(server, client, {
    agent,
    fields: { scope: 'openid courses:read', resource: notes, ...fields },
  })
const metadataUrl = (resource: string) => `${resource}/.well-known/oauth-protected-resource`

/** A free port, with the same guard and other options. */
async function another(t: Test, options: Partial<Parameters<typeof startApi>[2]>): Promise<string> {
  const resource = `http://127.0.0.1:${await freePort()}`
  await startApi(t, resource, { verifyToken, anonymous: 'allow', ...options })
  return resource
}

t.test(
  '[service-2-resource-param-binds] [service-5-bearer-api-calls] a token for this API opens it',
  async (t) => {
    const { access_token: token } = await tokens()
    const { status, body } = await callAt(`${notes}/read`, token)
    t.equal(status, 200)
    const user = await server.deps.store.find('userByLogin', 'alice')
    const { clientId, sub, scope, audience } = body['caller'] as Record<string, unknown>
    t.strictSame([clientId, sub, scope, audience], [client.id, user?.id, ['courses:read'], [notes]])
    t.equal((await callAt(`${server.issuer}/api/courses`, token)).status, 401, 'and no other')
  },
)

for (const [about, fields] of [
  ['the API of the server', { resource: undefined }],
  ['another API', { resource: other }],
] as const) {
  t.test(`[rfc9700-2.3-rs-checks-audience] a token for ${about} is rejected`, async (t) => {
    const response = await callAt(`${notes}/read`, (await tokens(fields)).access_token)
    t.match(response, { status: 401, challenge: /error="invalid_token"/, body: { error: 'invalid_token' } })
  })
}

t.test('the guard checks the audience itself, whichever verifier is used', async (t) => {
  const access = { kind: 'user' as const, sub: 'alice', clientId: 'x', scope: scopes, audience: [other] }
  const resource = await another(t, { verifyToken: async () => access })
  t.match(await callAt(`${resource}/read`, 'token'), { status: 401, body: { error: 'invalid_token' } })
})

t.test(
  'the reason of a verifier that was written for an earlier version rejects the token, too',
  async (t) => {
    for (const reason of ['rejected', 'refused']) {
      // `as`: it had the other name.
      const verifier = async () => ({ [reason]: 'it has ended' }) as unknown as Rejected
      const resource = await another(t, { verifyToken: verifier })
      t.match(await callAt(`${resource}/read`, 'token'), { status: 401, body: { error: 'invalid_token' } })
    }
  },
)

t.test('a call without a token, with another scheme or with a token in the query is anonymous', async (t) => {
  const { access_token: token } = await tokens()
  for (const response of [
    await callAt(`${notes}/read`),
    await callAt(`${notes}/read`, undefined, { authorization: 'Basic YTpi' }),
    await callAt(`${notes}/read?access_token=${token}`),
  ]) {
    t.match(response, { status: 200, challenge: null, body: { caller: 'anonymous' } })
  }
})

t.test('[rfc6750-2.2-form-conditions] a token in a body is read only if formToken is set', async (t) => {
  const setUp = (app: FastifyInstance) => void app.register(formbody)
  const { access_token: token } = await tokens()
  for (const formToken of [undefined, true]) {
    const resource = await another(t, {
      setUp,
      verifyToken: async () => ({
        kind: 'user' as const,
        sub: 'alice',
        clientId: 'x',
        scope: scopes,
        audience: [resource],
      }),
      ...(formToken && { formToken }),
    })
    const body = new URLSearchParams({ access_token: token })
    const response = await (await fetch(`${resource}/read`, { method: 'POST', body })).json()
    t.match(response, { caller: formToken ? { sub: 'alice' } : 'anonymous' })
  }
})

t.test(
  'where anonymous callers are challenged, the challenge has no error and names the metadata',
  async (t) => {
    const resource = await another(t, { anonymous: 'challenge' })
    const response = await callAt(`${resource}/read`)
    t.equal(response.status, 401)
    const bearer = `Bearer resource_metadata="${metadataUrl(resource)}"`
    t.equal(response.challenge, `${bearer}, DPoP algs="ES256 PS256 EdDSA Ed25519"`)
    t.match(await callAt(metadataUrl(resource)), { status: 200, body: { resource } })
  },
)

t.test('[rfc6750-3.1-insufficient-scope-403] the challenge names every scope that is needed', async (t) => {
  const { access_token: token } = await tokens()
  const response = await callAt(`${notes}/both`, token)
  t.match(response, { status: 403, body: { error: 'insufficient_scope', error_description: String } })
  t.match(response.challenge, /^Bearer error="insufficient_scope", .*scope="courses:read courses:write", /)
  t.ok(response.challenge?.endsWith(`resource_metadata="${metadataUrl(notes)}"`))
  t.equal((await callAt(`${notes}/read`, token)).status, 200)
})

const bad = [
  ['garbage', async () => 'garbage'],
  ['nothing', async () => ''],
  ['a refresh token', async () => (await tokens()).refresh_token],
  ['an ID Token', async () => (await tokens()).id_token],
] as const
for (const [about, make] of bad) {
  t.test(
    `[rfc6750-3.1-invalid-token-401] ${about} is rejected as access token, and the call is not treated as anonymous`,
    async (t) => {
      const response = await callAt(`${notes}/read`, await make())
      t.equal(response.status, 401)
      t.same(Object.keys(response.body), ['error', 'error_description'])
      t.match(response.body, { error: 'invalid_token', error_description: /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/ })
      t.match(
        response.challenge,
        /^Bearer error="invalid_token", error_description="[^"]+", resource_metadata="[^"]+"$/,
      )
      t.equal(response.headers.get('cache-control'), 'no-store')
    },
  )
}

t.test('an application with its own error handler sends the same errors', async (t) => {
  const resource = await another(t, {
    setUp: (app) => void app.setErrorHandler((_error, _request, reply) => reply.code(418).send('oops')),
  })
  t.match(await callAt(`${resource}/read`, 'garbage'), { status: 401, body: { error: 'invalid_token' } })
})

t.test('a revoked token is rejected by the next call', async (t) => {
  const { access_token: token } = await tokens()
  t.equal((await callAt(`${notes}/read`, token)).status, 200)
  t.equal((await post(server, '/api/oauth/revoke', { token, client_id: client.id })).status, 200)
  t.equal((await callAt(`${notes}/read`, token)).status, 401)
})

t.test('a resource server learns nothing about tokens for another API', async (t) => {
  const { access_token: token } = await tokens({ resource: other })
  t.equal(await verifyToken(token), undefined)
})

t.test('[rfc6750-3.1-invalid-request-400] two Authorization headers are rejected', async (t) => {
  const { access_token: token } = await tokens()
  const { hostname, port } = new URL(notes)
  const socket = connect(Number(port), hostname)
  const header = `authorization: Bearer ${token}\r\n`
  socket.end(`GET /read HTTP/1.1\r\nhost: ${hostname}\r\nconnection: close\r\n${header}${header}\r\n`)
  const response = await text(socket)
  t.match(response, /^HTTP\/1\.1 400 /)
  t.match(response, /"error":"invalid_request"/)
})

/** An authorization server with arbitrary responses. */
async function startResponding(t: Test, response: RequestListener): Promise<string> {
  const site = createServer(response).listen(0, '127.0.0.1')
  await once(site, 'listening')
  t.teardown(() => {
    site.closeAllConnections()
    site.close()
  })
  const address = site.address()
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
}

const active = { active: true, token_type: 'Bearer', sub: 'alice', client_id: 'x', scope: 'courses:read' }

const responses: readonly [string, number, unknown][] = [
  ['is complete', 200, active],
  ['writes the token type in lower case', 200, { ...active, token_type: 'bearer' }],
  ['has no token type, as for a refresh token', 401, { ...active, token_type: undefined }],
  ['has another token type', 401, { ...active, token_type: 'DPoP' }],
  ['has a sub that is a number', 401, { ...active, sub: 7 }],
  ['names no client', 401, { ...active, client_id: undefined }],
  ['is active in words', 401, { ...active, active: 'true' }],
  ['is null', 401, null],
  ['names no audience', 401, { ...active, aud: undefined }],
]
for (const [about, status, httpResponse] of responses) {
  t.test(`an introspection that ${about} makes the API respond ${status}`, async (t) => {
    const resource = `http://127.0.0.1:${await freePort()}`
    const body = JSON.stringify(httpResponse === null ? null : { aud: resource, ...(httpResponse as object) })
    const endpoint = await startResponding(t, (_request, response) => response.end(body))
    const verifyToken = introspectedBy({ ...credentials, endpoint })
    await startApi(t, resource, { verifyToken, anonymous: 'allow' })
    t.equal((await callAt(`${resource}/read`, 'token')).status, status)
  })
}

/** Responds correctly, but only at another URL: a token is not forwarded to another address. */
const redirecting: RequestListener = ({ url }, response) => {
  if (url === '/elsewhere') response.end(JSON.stringify({ ...active, aud: 'anything' }))
  else response.writeHead(307, { location: '/elsewhere' }).end()
}
const failures: readonly [string, RequestListener][] = [
  ['fails', (_request, response) => response.writeHead(500).end()],
  ['responds with something else', (_request, response) => response.end('<html>')],
  ['redirects', redirecting],
  ['does not respond', () => {}],
  ['hangs up', (_request, response) => response.destroy()],
]
for (const [about, response] of failures) {
  t.test(
    `when the authorization server ${about} the API responds 503 and treats no call as anonymous`,
    async (t) => {
      const endpoint = await startResponding(t, response)
      const asking = introspectedBy({ ...credentials, endpoint, timeoutMilliseconds: 200 })
      const resource = await another(t, { verifyToken: asking })
      const { access_token: token } = await tokens()
      const rejected = await callAt(`${resource}/read`, token)
      t.match(rejected, { status: 503, challenge: null, body: { error: 'temporarily_unavailable' } })
      t.equal(rejected.headers.get('retry-after'), '1')
      t.match(await callAt(`${resource}/read`), { status: 200, body: { caller: 'anonymous' } })
    },
  )
}

t.test('wrong credentials of the resource server make the API respond 503', async (t) => {
  const resource = await another(t, {
    verifyToken: introspectedBy({ ...credentials, clientSecret: 'wrong' }),
  })
  t.match(await callAt(`${resource}/read`, (await tokens()).access_token), { status: 503 })
})

t.test(
  'an unexpected error of a verifier goes to the application, and the call is not anonymous',
  async (t) => {
    const verifyToken = () => Promise.reject(new Error('secret detail'))
    const response = await callAt(`${await another(t, { verifyToken })}/read`, 'token')
    t.equal(response.status, 500)
    t.equal(response.body['caller'], undefined)
  },
)

t.test(
  '[rfc9728-3-path-insertion] an API with a path publishes its metadata after the well-known string',
  async (t) => {
    const app = Fastify()
    t.teardown(() => app.close())
    const resource = 'https://api.example/v1'
    const options = { resource, authorizationServers: [server.issuer] }
    await app.register(protectedResourceMetadata, options)
    const url = `${await app.listen({ port: 0, host: '127.0.0.1' })}/.well-known/oauth-protected-resource/v1`
    const { status, headers, body } = await callAt(url)
    t.equal(status, 200)
    t.match(headers.get('content-type'), /^application\/json/)
    t.equal(headers.get('cache-control'), 'public, max-age=300')
    t.equal(headers.get('access-control-allow-origin'), '*')
    t.strictSame(body, {
      resource,
      authorization_servers: [server.issuer],
      bearer_methods_supported: ['header'],
    })
    const again = await callAt(url, undefined, { 'if-none-match': String(headers.get('etag')) })
    t.equal(again.status, 304)
    await t.rejects(
      async () => void (await Fastify().register(protectedResourceMetadata, { ...options, prefix: '/x' })),
      { message: /without a prefix/ },
    )
  },
)
