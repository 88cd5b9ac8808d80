/** RFC 9068: the contents of a JWT access token, and how the authorization server's own endpoints treat it. */
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import t from 'tap'
import {
  authorize,
  callApi,
  exchange,
  obtainCode,
  postAs,
  refresh,
  responseOf,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { alice } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, assertRejected, introspect, json, startFlow } from '../helpers/wire.ts'

const library = 'https://library.example/api'
const archive = 'https://archive.example'
const { server, client, agent, tokens } = await startFlow(t, {
  resources: [
    {
      identifier: library,
      name: 'Library',
      scopes: ['pages:read', 'pages:write', 'email'],
      tokenFormat: 'jwt',
      accessTokenSeconds: 600,
    },
    { identifier: archive, name: 'Archive', scopes: ['pages:read', 'posts:read'], tokenFormat: 'jwt' },
  ],
})
const metadata = await json(await fetch(`${server.issuer}/.well-known/oauth-authorization-server`))
const keys = createRemoteJWKSet(new URL(String(metadata['jwks_uri'])))
const resourceServer = await addClient(server, { resources: [library] })

/** The token as an API verifies it: by the published keys and nothing else. */
const verified = (token: string, audience = library) =>
  jwtVerify(token, keys, { issuer: String(metadata['issuer']), audience, typ: 'at+jwt' })

const both = { scope: 'pages:read pages:write', resource: library }

t.test(
  '[rfc9068-2.1-signed] [rfc9068-2.1-typ] [rfc9068-2.2-required-claims] [rfc9068-3-aud-from-resource] an access token for a JWT resource is an at+jwt of the published RS256 key with every claim, and its audience is exactly the resource',
  async (t) => {
    const before = server.now()
    const issued = await tokens(both)
    t.match(issued, { token_type: 'Bearer', expires_in: 600, scope: both.scope })
    const header = decodeProtectedHeader(issued.access_token)
    const { keys: published } = await json(await fetch(String(metadata['jwks_uri'])))
    const [key, ...others] = (published as { kid: string; alg: string }[]).filter(
      ({ kid }) => kid === header.kid,
    )
    t.equal(key?.alg, 'RS256', '[rfc9068-2.1-rs256-supported]')
    t.strictSame(others, [])
    t.equal(header.typ, 'at+jwt', '[rfc9068-2.1-typ]')
    t.strictSame(header, { alg: 'RS256', kid: key?.kid, typ: 'at+jwt' })
    const { payload } = await verified(issued.access_token)
    t.equal(payload.aud, library, '[rfc9068-3-aud-from-resource] and the signature verifies')
    t.equal(payload['scope'], both.scope, '[rfc9068-2.2.3-scope-claim]')
    const { iat = 0, exp, jti = '', auth_time: authTime, sub, ...rest } = payload
    t.strictSame(rest, {
      iss: metadata['issuer'],
      aud: library,
      client_id: client.id,
      scope: both.scope,
      acr: 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport',
      amr: ['pwd'],
    })
    const user = await server.deps.store.find('userByLogin', alice.username)
    t.equal(sub, user?.id)
    t.ok(Number.isInteger(iat) && iat >= before && iat <= server.now())
    t.equal(exp, iat + 600)
    t.ok(Number.isInteger(authTime) && Number(authTime) <= iat && Number(authTime) > iat - 60)
    t.match(jti, /^[\w-]{16}\.[\w-]{22}$/)
  },
)

t.test('[rfc9068-2.2-sub-semantics] sub is that of UserInfo and of the ID Token', async (t) => {
  const fields = { scope: 'openid pages:read', resource: [server.issuer, library] }
  const code = await obtainCode(server, client, { agent, fields })
  const own = (await (await exchange(server, client, code, { resource: server.issuer })).json()) as Tokens
  const response = await refresh(server, client, own.refresh_token, { resource: library })
  const { access_token: token, id_token: idToken } = (await response.json()) as Tokens
  const { sub } = await json(await callApi(server, '/api/oauth/userinfo', own.access_token))
  t.type(sub, 'string')
  t.equal((await verified(token)).payload.sub, sub)
  const hinted = await jwtVerify(idToken, keys, { issuer: server.issuer, audience: client.id })
  t.equal(hinted.payload.sub, sub)
  t.not(sub, client.id)
})

t.test(
  '[rfc9068-2.2.1-auth-claims-stable] [rfc9068-2.2-required-claims] a refresh issues a new JWT with its own jti and the same sign-in, with the requested narrower scope',
  async (t) => {
    const first = await tokens(both)
    server.advance(30)
    const response = await refresh(server, client, first.refresh_token, { scope: 'pages:read' })
    const second = (await response.json()) as Tokens
    const { payload: one } = await verified(first.access_token)
    const { payload: two } = await verified(second.access_token)
    t.not(one.jti, two.jti)
    t.equal(two['scope'], 'pages:read')
    t.ok((two.iat ?? 0) >= (one.iat ?? 0) + 30, 'issued later')
    t.type(one['auth_time'], 'number')
    for (const name of ['auth_time', 'acr', 'amr']) t.strictSame(two[name], one[name], name)
    const names = await Promise.all(Array.from({ length: 5 }, () => tokens(both)))
    const ids = await Promise.all(
      names.map(async ({ access_token: token }) => (await verified(token)).payload.jti),
    )
    t.equal(new Set(ids).size, 5, 'each token has another jti')
  },
)

t.test(
  '[rfc9068-5-distinct-aud] [rfc9068-2.2.3-scopes-meaningful] [rfc9068-3-no-ambiguous-token] each of two resources gets its own token with the scopes it supports, and no token is for both',
  async (t) => {
    const fields = { scope: 'pages:read pages:write posts:read', resource: [library, archive] }
    const code = await obtainCode(server, client, { agent, fields })
    await assertRejected(t, await exchange(server, client, code), 'invalid_target', 400, 'both at once')
    const first = (await (await exchange(server, client, code, { resource: library })).json()) as Tokens
    t.equal(first.scope, both.scope)
    t.match((await verified(first.access_token)).payload, { aud: library, scope: both.scope })
    const response = await refresh(server, client, first.refresh_token, { resource: archive })
    const second = (await response.json()) as Tokens
    t.match((await verified(second.access_token, archive)).payload, {
      aud: archive,
      scope: 'pages:read posts:read',
    })
    await t.rejects(verified(second.access_token), { code: 'ERR_JWT_CLAIM_VALIDATION_FAILED', claim: 'aud' })
    const ambiguous = await refresh(server, client, second.refresh_token)
    await assertRejected(t, ambiguous, 'invalid_target', 400, 'both at once, by refresh')
    const unknown = await refresh(server, client, second.refresh_token, {
      resource: library,
      scope: 'posts:read',
    })
    await assertRejected(t, unknown, 'invalid_target', 400, 'a scope only the other one knows')
    const kept = await refresh(server, client, second.refresh_token, { resource: library })
    t.equal(kept.status, 200, 'and nothing was used up')
  },
)

t.test(
  '[rfc9068-3-aud-default] without a resource the audience is the default one, never the client',
  async (t) => {
    const { access_token: opaque } = await tokens({ scope: 'pages:read' })
    t.match(opaque, /^lyc_access_/, "the service's own API is the default, and looks tokens up")
    t.match(await introspect(server, client, opaque), { active: true, aud: server.issuer })
    const code = await obtainCode(server, client, { agent, fields: both })
    const response = (await (await exchange(server, client, code)).json()) as Tokens
    const { payload } = await verified(response.access_token)
    t.equal(payload.aud, library, 'a token request without one means that of the authorization')
    t.not(payload.aud, client.id)
  },
)

t.test(
  '[rfc9068-6-privacy] an access token contains no name, email address or nonce, whatever was requested',
  async (t) => {
    const fields = {
      scope: 'openid email pages:read',
      resource: library,
      nonce: 'n',
      claims: JSON.stringify({ userinfo: { email: null, name: null }, id_token: { name: null } }),
    }
    const { access_token: token } = await tokens(fields)
    const { payload } = await verified(token)
    t.equal(payload['scope'], 'email pages:read', 'it may read the address, and does not have it')
    const known = ['iss', 'sub', 'aud', 'client_id', 'scope', 'iat', 'exp', 'auth_time', 'acr', 'amr', 'jti']
    t.strictSame(Object.keys(payload).sort(), known.sort())
    t.notMatch(JSON.stringify(payload), /alice|@/i)
  },
)

t.test('introspection returns the claims of a JWT, to its client and to its API', async (t) => {
  const { access_token: token } = await tokens(both)
  const { amr: _methods, ...claims } = (await verified(token)).payload
  for (const caller of [client, resourceServer]) {
    t.strictSame(await introspect(server, caller, token), { active: true, token_type: 'Bearer', ...claims })
  }
})

const ends: readonly [string, (of: TestClient, tokens: Tokens) => Promise<unknown>][] = [
  ['it is revoked', (of, { access_token: token }) => postAs(server, of, '/api/oauth/revoke', { token })],
  [
    'its refresh token is revoked',
    (of, { refresh_token: token }) => postAs(server, of, '/api/oauth/revoke', { token }),
  ],
  ['it expires', async () => server.advance(600)],
]
for (const [about, end] of ends) {
  t.test(`when ${about} a JWT is inactive at introspection, and others are not`, async (t) => {
    const [ended, other] = [
      await tokens(both),
      await tokens({ ...both, resource: archive, scope: 'pages:read' }),
    ]
    t.equal((await introspect(server, resourceServer, ended.access_token))['active'], true)
    await end(client, ended)
    for (const caller of [client, resourceServer]) {
      t.strictSame(await introspect(server, caller, ended.access_token), { active: false })
    }
    t.equal((await introspect(server, client, other.access_token))['active'], true)
  })
}

t.test('a JWT for another API, or an ID Token, is rejected here', async (t) => {
  const { access_token: token, id_token: idToken } = await tokens({ scope: 'openid pages:read' })
  await assertRejected(t, await callApi(server, '/api/pages', idToken), 'invalid_token', 401)
  t.equal((await callApi(server, '/api/pages', token)).status, 200)
  const signed = await tokens(both)
  await assertRejected(t, await callApi(server, '/api/pages', signed.access_token), 'invalid_token', 401)
  t.equal(decodeProtectedHeader(idToken).typ, 'JWT', 'no ID Token passes for an access token')
})

t.test('an OpenID Connect request for another API alone gets an ID Token that hashes the JWT', async (t) => {
  const issued = await tokens({ scope: 'openid pages:read', resource: library })
  t.equal(
    (await verified(issued.access_token)).payload['scope'],
    'pages:read',
    'openid belongs to the service',
  )
  const { payload } = await jwtVerify(issued.id_token, keys, { audience: client.id })
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(issued.access_token))
  t.equal(payload['at_hash'], Buffer.from(digest).subarray(0, 16).toString('base64url'))
})

t.test('[rfc9068-3-aud-from-resource] a resource that is not configured gets no tokens', async (t) => {
  const fields = { scope: 'pages:read', resource: 'https://elsewhere.example' }
  const rejected = await authorize(server, client, fields, new UserAgent(server.issuer))
  t.equal(responseOf(rejected)['error'], 'invalid_target')
})
