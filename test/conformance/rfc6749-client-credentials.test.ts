/** RFC 6749 §4.4: a client that an operator added gets tokens for itself, and what those are worth. */
import { createRemoteJWKSet, jwtVerify } from 'jose'
import t from 'tap'
import { remove, update } from '../../src/domain/decision.ts'
import type { OperatorClientRequest } from '../helpers/client-request.ts'
import { callApi, claimsOf, type Fields, post, postAs, register, type TestClient } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { addClient, assertRejected, challengeOf, introspect, json } from '../helpers/wire.ts'

const library = 'https://library.example/api'
const archive = 'https://archive.example'
const server = await startServer(t, {
  resources: [
    {
      identifier: library,
      name: 'Library',
      scopes: ['pages:read', 'pages:write'],
      tokenFormat: 'jwt',
      accessTokenSeconds: 600,
    },
    { identifier: archive, name: 'Archive', scopes: ['pages:read'], tokenFormat: 'jwt' },
  ],
})

/** A client that acts for itself. */
const addMachine = (request: Partial<OperatorClientRequest> = {}) =>
  addClient(server, {
    name: 'Nightly import',
    redirectUris: [],
    grantTypes: ['client_credentials'],
    scope: ['courses:read', 'courses:write', 'pages:read'],
    ...request,
  })
const machine = await addMachine()
const resourceServer = await addClient(server, { resources: [library, server.issuer] })

const ask = (fields: Fields = {}, client: TestClient = machine) =>
  postAs(server, client, '/api/oauth/token', { grant_type: 'client_credentials', ...fields })

async function obtain(
  fields: Fields = {},
  client: TestClient = machine,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await ask(fields, client)
  const body = await json(response)
  if (response.status !== 200)
    throw new Error(`the token endpoint responded ${response.status} ${JSON.stringify(body)}`)
  return body
}
const tokenFor = async (fields: Fields = {}, client: TestClient = machine) =>
  String((await obtain(fields, client))['access_token'])

t.test(
  '[rfc6749-4.4.3-access-token-response] a confidential client gets an access token for itself',
  async (t) => {
    const response = await ask()
    t.equal(response.status, 200)
    t.equal(response.headers.get('cache-control'), 'no-store')
    const body = await json(response)
    t.strictSame(Object.keys(body).sort(), ['access_token', 'expires_in', 'scope', 'token_type'])
    t.match(body, { token_type: 'Bearer', expires_in: server.deps.config.lifetimes.accessTokenSeconds })
    const called = await json(await callApi(server, '/api/courses', String(body['access_token'])))
    t.match(called, { caller: 'client', sub: machine.id, client_id: machine.id })
    t.not(await tokenFor(), body['access_token'], 'each response has a token of its own')
  },
)

t.test('[rfc6749-4.4.3-no-refresh-token] the response has no refresh token', async (t) => {
  const both = await addMachine({
    redirectUris: ['https://client.example/callback'],
    grantTypes: ['client_credentials', 'authorization_code', 'refresh_token'],
  })
  t.notOk('refresh_token' in (await obtain()))
  t.notOk('refresh_token' in (await obtain({}, both)), 'also for a client that may refresh')
})

t.test(
  '[rfc6749-4.4-client-credentials-confidential] public and self-registered clients get none',
  async (t) => {
    const registered = await register(server)
    await assertRejected(t, await ask({}, registered), 'unauthorized_client')
    const secretive = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
    await assertRejected(t, await ask({}, secretive), 'unauthorized_client', 400, 'with a secret')
    const response = await fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        redirect_uris: ['http://127.0.0.1/cb'],
        grant_types: ['authorization_code', 'client_credentials'],
        token_endpoint_auth_method: 'client_secret_basic',
      }),
    })
    await assertRejected(t, response, 'invalid_client_metadata', 400, 'asked for at registration')
    await t.rejects(addMachine({ authenticationMethod: 'none' }), { code: 'invalid_client_metadata' })
  },
)

t.test('[rfc6749-4.4.2-client-must-authenticate] without its secret the client gets nothing', async (t) => {
  await assertRejected(t, await ask({}, { ...machine, secret: 'wrong' }), 'invalid_client', 401)
  const nameOnly = await post(server, '/api/oauth/token', {
    grant_type: 'client_credentials',
    client_id: machine.id,
  })
  await assertRejected(t, nameOnly, 'invalid_client', 400, 'client_id alone')
})

t.test('[rfc6749-4.4.2-scope-preapproved] scope is what the operator allowed, or a part of it', async (t) => {
  t.equal((await obtain())['scope'], 'courses:read courses:write pages:read')
  t.equal((await obtain({ scope: 'courses:read' }))['scope'], 'courses:read')
  await assertRejected(t, await ask({ scope: 'students:read' }), 'invalid_scope')
  await assertRejected(t, await ask({ scope: 'courses:read students:read' }), 'invalid_scope')
  await assertRejected(t, await ask({ scope: 'courses:read"' }), 'invalid_scope')
  const broad = await addMachine({ scope: ['openid', 'email', 'courses:read'] })
  t.equal((await obtain({}, broad))['scope'], 'courses:read', 'scopes about a user are left out')
  await assertRejected(t, await ask({ scope: 'openid courses:read' }, broad), 'invalid_scope', 400, 'openid')
  await t.rejects(addMachine({ scope: [] }), { code: 'invalid_client_metadata' })
})

t.test('[rfc8707-2.2-not-granted] resource is one that the operator allowed', async (t) => {
  const bound = await addMachine({ resources: [library] })
  t.equal(claimsOf(await tokenFor({}, bound))['aud'], library, 'the only one is the default')
  await assertRejected(t, await ask({ resource: archive }, bound), 'invalid_target')
  await assertRejected(t, await ask({ resource: server.issuer }, bound), 'invalid_target')
  await assertRejected(t, await ask({ resource: 'https://unknown.example' }), 'invalid_target')
  t.equal(
    claimsOf(await tokenFor({ resource: archive }))['aud'],
    archive,
    'a client without a list may name any',
  )
})

t.test('[rfc9068-2.2-sub-semantics] the client is the subject of a JWT, and no user signed in', async (t) => {
  const metadata = await json(await fetch(`${server.issuer}/.well-known/oauth-authorization-server`))
  const keys = createRemoteJWKSet(new URL(String(metadata['jwks_uri'])))
  const token = await tokenFor({ resource: library })
  const { payload } = await jwtVerify(token, keys, {
    issuer: String(metadata['issuer']),
    audience: library,
    typ: 'at+jwt',
  })
  t.match(payload, { sub: machine.id, client_id: machine.id, scope: 'pages:read' })
  for (const about of ['auth_time', 'acr', 'amr']) t.notOk(about in payload, about)
  t.match(await introspect(server, resourceServer, token), {
    active: true,
    sub: machine.id,
    client_id: machine.id,
    aud: library,
  })
})

t.test('UserInfo rejects the token: there is no user', async (t) => {
  const response = await callApi(server, '/api/oauth/userinfo', await tokenFor())
  t.equal(response.status, 403)
  t.match(challengeOf(response), {
    scheme: 'Bearer',
    params: { error: 'insufficient_scope', scope: 'openid' },
  })
})

t.test('a revoked token, a removed client and a removed grant type end at once', async (t) => {
  const isActive = async (token: string) => (await introspect(server, resourceServer, token))['active']
  const [one, other] = [await tokenFor(), await tokenFor()]
  t.equal(await isActive(one), true)
  t.equal((await postAs(server, machine, '/api/oauth/revoke', { token: one })).status, 200)
  t.strictSame([await isActive(one), await isActive(other)], [false, true], 'only the revoked one')
  const gone = await addMachine()
  const jwt = await tokenFor({ resource: library }, gone)
  const opaque = await tokenFor({}, gone)
  await server.deps.store.write(remove('client', gone.id))
  t.strictSame([await isActive(jwt), await isActive(opaque)], [false, false])
  t.equal((await callApi(server, '/api/courses', opaque)).status, 401)
  await assertRejected(t, await ask({}, gone), 'invalid_client', 401)
  const changed = await addMachine()
  const stored = await server.deps.store.find('client', changed.id)
  t.ok(stored)
  if (stored) await server.deps.store.write(update('client', { ...stored, grantTypes: [] }))
  await assertRejected(t, await ask({}, changed), 'unauthorized_client')
})

t.test(
  '[rfc6749-4.4.2-client-must-authenticate] a client that is removed in the meantime gets nothing',
  async (t) => {
    const { store } = server.deps
    const gone = await addMachine()
    const transact = store.transact.bind(store)
    t.intercept(store, 'transact', {
      value: async (...all: Parameters<typeof transact>) => {
        await store.write(remove('client', gone.id))
        return transact(...all)
      },
    })
    const response = await ask({}, gone)
    t.equal(response.status, 401)
    t.equal((await json(response))['error'], 'invalid_client')
  },
)

t.test('an issue is in the audit log, without a user', async (t) => {
  const own = await addMachine()
  await obtain({ scope: 'courses:read' }, own)
  const [event] = await server.deps.store.audit({ since: 0, clientId: own.id, limit: 1 })
  t.match(event, { name: 'grant', by: 'client', clientId: own.id, facts: { scope: 'courses:read' } })
  t.notOk(event && 'userId' in event)
})
