import t, { type Test } from 'tap'
import {
  authorizationUrl,
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  postAs,
  refresh,
  register,
  signInAndApprove,
  type Tokens,
} from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { type ServerOptions, startServer, type TestServer } from '../helpers/server.ts'
import { type Landing, UserAgent } from '../helpers/user-agent.ts'

/** One service that can be stopped and started: the same issuer, secret and database file. */
async function restartable(t: Test, options: ServerOptions = {}) {
  const place = { store: `sqlite:${t.testdir()}/lychgate.db`, port: await freePort(), ...options }
  let server = await startServer(t, place)
  return {
    server,
    restart: async (): Promise<TestServer> => {
      await server.close()
      server = await startServer(t, place)
      return server
    },
  }
}

const errorOf = async (response: Response) => ({
  status: response.status,
  error: ((await response.json()) as { error?: string }).error,
})
const userInfo = async (server: TestServer, token: string) =>
  (await callApi(server, '/api/oauth/userinfo', token)).status

t.test('everything issued before a restart works after it', async (t) => {
  const { server, restart } = await restartable(t, {
    resources: [
      { identifier: 'https://api.example', name: 'Api', scopes: ['courses:read'], tokenFormat: 'jwt' },
    ],
  })
  const client = await register(server)
  const secretive = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
  const agent = new UserAgent(server.issuer)
  const tokens = await obtainTokens(server, client, { agent })
  const others = await obtainTokens(server, secretive, { agent })
  const code = await obtainCode(server, client, { agent })
  const signed = await obtainTokens(server, client, {
    agent,
    fields: { resource: 'https://api.example', scope: 'courses:read' },
  })
  const lost = await refresh(server, secretive, others.refresh_token)
  const successor = ((await lost.json()) as Tokens).refresh_token
  const consent = await agent.open(authorizationUrl(server, client))
  const stranger = new UserAgent(server.issuer)
  const login = await stranger.open(authorizationUrl(server, client))
  const registration = await registrationOf(server)
  const jwks = await (await fetch(`${server.issuer}/api/oauth/jwks`)).json()

  const later = await restart()
  t.equal(later.issuer, server.issuer)
  t.strictSame(await (await fetch(`${later.issuer}/api/oauth/jwks`)).json(), jwks, 'the same keys')

  await t.test('access tokens, opaque and signed', async (t) => {
    t.equal(await userInfo(later, tokens.access_token), 200)
    const response = await postAs(later, client, '/api/oauth/introspect', { token: signed.access_token })
    t.match(await response.json(), { active: true, aud: 'https://api.example' })
  })
  await t.test('a refresh token', async (t) => {
    const response = await refresh(later, client, tokens.refresh_token)
    t.equal(response.status, 200)
    t.equal(await userInfo(later, ((await response.json()) as Tokens).access_token), 200)
  })
  await t.test('the retry of a refresh whose response was lost, and a client secret', async (t) => {
    const response = await refresh(later, secretive, others.refresh_token)
    t.match(await response.json(), { refresh_token: successor })
  })
  await t.test('[rfc6749-4.1.2-code-single-use] a code, once', async (t) => {
    const response = await exchange(later, client, code)
    t.equal(response.status, 200)
    const fresh = (await response.json()) as Tokens
    t.match(await errorOf(await exchange(later, client, code)), { status: 400, error: 'invalid_grant' })
    t.equal(await userInfo(later, fresh.access_token), 401)
  })
  await t.test('a session, without asking for the password again', async (t) => {
    const landing = await agent.open(authorizationUrl(later, client))
    t.match(landing, { at: 'page', page: { status: 200, html: /value="approve"/ } })
  })
  await t.test('a pending consent page', async (t) => {
    await assertResponded(t, later, agent, consent)
  })
  await t.test('a pending sign-in page', async (t) => {
    await assertResponded(t, later, stranger, login)
  })
  await t.test('a registration access token', async (t) => {
    const headers = { authorization: `Bearer ${registration.token}` }
    t.equal((await fetch(registration.uri, { headers })).status, 200)
    t.equal((await fetch(registration.uri, { method: 'DELETE', headers })).status, 204)
  })

  async function assertResponded(t: Test, server: TestServer, agent: UserAgent, landing: Landing) {
    const location = await signInAndApprove(agent, landing)
    const response = await exchange(server, client, location.searchParams.get('code') ?? '')
    t.equal(response.status, 200)
  }
})

async function registrationOf(server: TestServer) {
  const response = await fetch(`${server.issuer}/api/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: ['http://127.0.0.1/cb'] }),
  })
  const body = (await response.json()) as Record<string, string>
  return { uri: body['registration_client_uri'] ?? '', token: body['registration_access_token'] }
}

t.test('revoked, used and signed out remain so', async (t) => {
  const { server, restart } = await restartable(t)
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const [first, second, third] = [
    await obtainTokens(server, client, { agent }),
    await obtainTokens(server, client, { agent }),
    await obtainTokens(server, client, { agent }),
  ]
  const code = await obtainCode(server, client, { agent })
  t.equal((await exchange(server, client, code)).status, 200)
  await postAs(server, client, '/api/oauth/revoke', { token: first.refresh_token })
  await postAs(server, client, '/api/oauth/revoke', { token: second.access_token })
  const rotated = (await (await refresh(server, client, third.refresh_token)).json()) as Tokens
  server.advance(11)
  t.equal((await refresh(server, client, third.refresh_token)).status, 400)
  const leaving = await agent.open(`${server.issuer}/oauth/logout?id_token_hint=${second.id_token}`)
  t.match(leaving, { at: 'page', page: { status: 200 } })

  const later = await restart()
  t.equal(await userInfo(later, first.access_token), 401)
  t.match(await errorOf(await refresh(later, client, first.refresh_token)), { error: 'invalid_grant' })
  t.equal(await userInfo(later, second.access_token), 401)
  t.equal((await refresh(later, client, second.refresh_token)).status, 200, 'an access token ends alone')
  t.equal(await userInfo(later, rotated.access_token), 401, 'the family died by reuse')
  t.match(await errorOf(await refresh(later, client, rotated.refresh_token)), { error: 'invalid_grant' })
  t.match(await errorOf(await exchange(later, client, code)), { status: 400, error: 'invalid_grant' })
  const landing = await agent.open(authorizationUrl(later, client))
  t.match(landing, { at: 'page', page: { html: /name="password"/ } })
})
