import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { AuthorizationRequest, Session } from '../../src/domain/model.ts'
import {
  authorizationUrl,
  authorize,
  callApi,
  exchange,
  obtainCode,
  post,
  postAs,
  refresh,
  register,
  responseOf,
  signInAndApprove,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, json } from '../helpers/wire.ts'

t.test(
  '[rfc6749-10.3-tokens-protected-at-rest] [rfc9700-4.9.2-rs-token-hygiene] neither the database nor the log contains a usable secret',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'lychgate-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const server = await startServer(t, { store: `sqlite:${join(folder, 'lychgate.db')}`, logLevel: 'debug' })
    const client = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
    const open = await register(server)
    const agent = new UserAgent(server.issuer)
    const landing = await agent.open(authorizationUrl(server, open, { state: 'state-of-mine' }))
    await signInAndApprove(agent, landing)
    const secrets: string[] = [client.secret ?? '', 'alice-in-tests', ...agent.cookies.values()]
    for (const own of [client, open]) {
      const code = await obtainCode(server, own, { agent })
      const first = (await (await exchange(server, own, code)).json()) as Tokens
      const second = (await (await refresh(server, own, first.refresh_token)).json()) as Tokens
      await callApi(server, '/api/courses', second.access_token)
      await callApi(server, `/api/courses?access_token=${first.access_token}`)
      await postAs(server, own, '/api/oauth/introspect', { token: first.access_token })
      await postAs(server, own, '/api/oauth/revoke', { token: first.access_token })
      await exchange(server, own, code)
      secrets.push(code, 'v'.repeat(43))
      for (const each of [first, second]) secrets.push(each.access_token, each.refresh_token, each.id_token)
    }
    await post(server, '/api/oauth/token', { client_id: client.id, client_secret: client.secret })
    t.ok(secrets.length > 15)
    const log = server.log.join('')
    t.ok(server.log.length > 20, 'there is a log')
    await server.close()
    const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'))
    t.match(files.join(''), client.id, 'the database is what was read')
    for (const issued of secrets) {
      t.ok(issued.length >= 14)
      t.notOk(log.includes(issued), `[rfc9700-4.9.2-rs-token-hygiene] log: ${issued.slice(0, 12)}`)
      for (const content of files) {
        const about = `[rfc6749-10.3-tokens-protected-at-rest] database: ${issued.slice(0, 12)}`
        t.notOk(content.includes(issued), about)
        const payload = issued.replace(/^lyc_[a-z]+_/, '')
        t.notOk(content.includes(payload), 'nor without its prefix')
      }
    }
  },
)

t.test(
  '[rfc6749-10.10-entropy] issued values cannot be guessed, have a prefix for their kind and never repeat',
  async (t) => {
    const server = await startServer(t)
    const client = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
    const code = await obtainCode(server, client)
    const first = (await (await exchange(server, client, code)).json()) as Tokens
    t.match(code, /^lyc_code_[\w-]{64,}$/)
    t.match(first.access_token, /^lyc_access_[\w-]{64,}$/)
    t.match(first.refresh_token, /^lyc_refresh_[\w-]{64,}$/)
    t.match(client.secret, /^lyc_secret_[\w-]{43}$/)
    const stored = await server.deps.store.find('client', client.id)
    if (stored === undefined) throw new Error('the client is stored')
    const now = server.now()
    const request: AuthorizationRequest = {
      clientId: client.id,
      redirectUri: client.redirectUri,
      redirectUriSent: true,
      responseMode: 'query',
      scope: ['openid'],
      resource: [server.issuer],
      prompt: [],
      claims: { userinfo: [], idToken: [] },
    }
    const session: Session = {
      id: 'x',
      userId: 'user_x',
      authenticatedAt: now,
      methods: ['pwd'],
      createdAt: now,
      idleExpiresAt: now + 1,
      expiresAt: now + 1,
    }
    const codes = new Set<string>()
    const tags = new Set<string>()
    for (let times = 0; times < 10_000; times += 1) {
      const approved = await server.app.approve(request, stored, session, ['openid'], now)
      codes.add(approved.code)
      // The last 32 bytes are the two tags: 128 bits each, by the server's key and by the grant's.
      tags.add(approved.code.slice(-43))
    }
    t.equal(codes.size, 10_000)
    t.equal(tags.size, 10_000)
  },
)

t.test(
  '[service-7-oauth-error-json] every endpoint of the protocol rejects with JSON that has error and error_description',
  async (t) => {
    const server = await startServer(t)
    const client = await register(server)
    const rejected: [Response, string, number][] = [
      [await post(server, '/api/oauth/token', { client_id: 'nobody' }), 'invalid_client', 400],
      [await post(server, '/api/oauth/token', { client_id: client.id }), 'invalid_request', 400],
      [await exchange(server, client, 'x'), 'invalid_grant', 400],
      [await post(server, '/api/oauth/revoke', {}), 'invalid_request', 400],
      [await post(server, '/api/oauth/introspect', {}), 'invalid_client', 401],
      [
        await fetch(`${server.issuer}/api/oauth/register`, { method: 'POST' }),
        'invalid_client_metadata',
        400,
      ],
      [await fetch(`${server.issuer}/api/oauth/userinfo`), 'invalid_token', 401],
      [await callApi(server, '/api/courses', 'x'), 'invalid_token', 401],
    ]
    for (const [response, error, status] of rejected)
      await assertRejected(t, response, error, status, response.url)
  },
)

t.test(
  '[oidc-core-14-no-normalisation] composed and decomposed text stay distinct and are returned unchanged',
  async (t) => {
    const server = await startServer(t)
    const [composed, decomposed] = ['caf\u00e9', 'cafe\u0301']
    const names = await Promise.all(
      [composed, decomposed].map(async (name) => {
        const response = await fetch(`${server.issuer}/api/oauth/register`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ client_name: name, redirect_uris: ['http://127.0.0.1/caf%C3%A9'] }),
        })
        return json(response)
      }),
    )
    t.equal(names[0]?.['client_name'], composed)
    t.equal(names[1]?.['client_name'], decomposed)
    const client = {
      id: String(names[0]?.['client_id']),
      method: 'none',
      redirectUri: 'http://127.0.0.1/caf%C3%A9',
    }
    for (const state of [composed, decomposed]) {
      const response = await authorize(server, client, { state, prompt: 'none' })
      t.equal(responseOf(response)['state'], state)
    }
    for (const uri of [
      'http://127.0.0.1/cafe%CC%81',
      'http://127.0.0.1/caf%c3%a9',
      'http://127.0.0.1/caf\u00e9',
    ]) {
      const response = await authorize(server, client, { redirect_uri: uri })
      t.equal(response.status, 400, uri)
      t.equal(response.headers.get('location'), null, uri)
    }
  },
)
