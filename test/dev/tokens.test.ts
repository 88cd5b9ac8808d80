import t from 'tap'
import { makeClientKey } from '../helpers/assertions.ts'
import { callApi, claimsOf, postAs, refresh, type TestClient } from '../helpers/flow.ts'
import { signProof } from '../helpers/proofs.ts'
import { startServer } from '../helpers/server.ts'
import { addClient, json } from '../helpers/wire.ts'

const api = {
  identifier: 'https://api.example.test',
  name: 'API',
  scopes: ['courses:read'],
  tokenFormat: 'jwt' as const,
}
const server = await startServer(t, { mode: 'dev', resources: [api] })

interface Minted {
  readonly access_token: string
  readonly refresh_token: string
  readonly id_token: string
  readonly scope: string
  readonly expires_in: number
  readonly sub: string
  readonly client_id: string
  readonly issued_at: number
  readonly expires_at: number
}

async function order(body: Record<string, unknown>, status = 200): Promise<Minted> {
  const response = await fetch(`${server.issuer}/_dev/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const minted = (await response.json()) as Minted
  t.equal(response.status, status, JSON.stringify(minted))
  return minted
}

const clientOf = ({ client_id: id }: Minted): TestClient => ({ id, method: 'none', redirectUri: '' })

async function introspect(minted: Minted): Promise<Record<string, unknown>> {
  const fields = { token: minted.access_token }
  const response = await postAs(server, clientOf(minted), '/api/oauth/introspect', fields)
  return (await response.json()) as Record<string, unknown>
}

t.test('tokens are issued for a user, by user name, address or sub', async (t) => {
  const { sub } = await order({ user: 'alice' })
  for (const user of ['Alice', 'alice@example.test', sub]) t.equal((await order({ user })).sub, sub)
  t.match(await order({ user: 'nobody' }, 400), { error_description: 'unknown user' })
})

t.test('they are real: they open the API, and can be refreshed, introspected and revoked', async (t) => {
  const minted = await order({ user: 'alice', scope: 'openid courses:read', nonce: 'n-1' })
  t.equal(minted.scope, 'openid courses:read')
  t.match(claimsOf(minted.id_token), { sub: minted.sub, aud: minted.client_id, nonce: 'n-1' })
  t.equal((await callApi(server, '/api/courses', minted.access_token)).status, 200)
  t.match(await introspect(minted), { active: true, sub: minted.sub, scope: 'openid courses:read' })
  t.equal((await refresh(server, clientOf(minted), minted.refresh_token)).status, 200)
  await postAs(server, clientOf(minted), '/api/oauth/revoke', { token: minted.refresh_token })
  t.strictSame(await introspect(minted), { active: false })
  t.equal((await callApi(server, '/api/courses', minted.access_token)).status, 401)
  const events = await server.deps.store.audit({ since: 0, name: 'grant', limit: 1 })
  t.match(events, [{ clientId: minted.client_id, userId: minted.sub }])
})

t.test('an access token has the requested lifetime, and so has the ID Token', async (t) => {
  for (const expiresIn of [300, '5m']) {
    const minted = await order({ user: 'alice', scope: 'openid', expires_in: expiresIn })
    t.equal(minted.expires_in, 300)
    const { exp, iat } = claimsOf(minted.id_token)
    t.equal(Number(exp) - Number(iat), 300)
    t.match(await introspect(minted), { active: true, exp: minted.expires_at })
  }
})

t.test('a token can have expired already', async (t) => {
  const minted = await order({ user: 'alice', scope: 'openid', expires_in: -60 })
  t.equal(minted.expires_in, -60)
  t.equal(claimsOf(minted.id_token)['exp'], minted.expires_at)
  t.equal(minted.expires_at - minted.issued_at, 3600, 'it lived as long as others')
  t.equal((await callApi(server, '/api/oauth/userinfo', minted.access_token)).status, 401)
  t.strictSame(await introspect(minted), { active: false })
})

t.test('a token can begin later or earlier than now', async (t) => {
  const later = await order({ user: 'alice', scope: 'openid', issued_at: '1h' })
  const iat = Number(claimsOf(later.id_token)['iat'])
  t.ok(iat >= server.now() + 3590, 'its iat is to come')
  const earlier = await order({ user: 'alice', scope: 'openid', issued_at: '2020-01-01T00:00:00Z' })
  t.equal(claimsOf(earlier.id_token)['iat'], 1_577_836_800)
})

t.test('a resource gets its own token format', async (t) => {
  const minted = await order({
    user: 'alice',
    scope: 'courses:read',
    resource: api.identifier,
    expires_in: '5m',
  })
  const { aud, exp, iat } = claimsOf(minted.access_token)
  t.equal(aud, api.identifier)
  t.equal(Number(exp) - Number(iat), 300)
})

t.test('what no client could be granted is rejected with the usual error', async (t) => {
  t.match(await order({ user: 'alice', scope: 'courses:sell' }, 400), { error: 'invalid_scope' })
  t.match(await order({ user: 'alice', resource: 'https://other.example' }, 400), { error: 'invalid_target' })
  t.match(await order({ user: 'alice', client_id: 'client_x' }, 400), { error: 'invalid_client' })
  t.match(await order({}, 400), { error_description: 'user is missing' })
  t.match(await order({ user: 'alice', expires_in: 'soon' }, 400), { error: 'invalid_request' })
  t.match(await order({ user: 'alice', issued_at: '9999w' }, 400), { error: 'invalid_request' })
  t.match(await order({ user: 'alice', scopes: 'openid' }, 400), { error_description: /did you mean scope/ })
})

t.test('[rfc9449-5.2-client-requires] a client of bound tokens gets them with a proof', async (t) => {
  const client = await addClient(server, {
    authenticationMethod: 'client_secret_post',
    description: { dpop_bound_access_tokens: true },
  })
  const body = { user: 'alice', client_id: client.id, scope: 'openid courses:read' }
  t.match(await order(body, 400), { error_description: /send a DPoP header/ })
  const key = makeClientKey()
  const [url, now] = [`${server.issuer}/_dev/token`, server.now()]
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', dpop: signProof(key, { url, now }) },
    body: JSON.stringify(body),
  })
  const minted = await json(response)
  t.equal(minted['token_type'], 'DPoP')
  const token = String(minted['access_token'])
  const courses = `${server.issuer}/api/courses`
  const call = (headers: Record<string, string>) => fetch(courses, { headers })
  t.equal((await call({ authorization: `Bearer ${token}` })).status, 401)
  const dpop = signProof(key, { method: 'GET', url: courses, now, token })
  t.equal((await call({ authorization: `DPoP ${token}`, dpop })).status, 200)
})
