/** Clients that an operator adds with the command line, used at a server on the same data. */
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'
import {
  authorizationUrl,
  authorize,
  callApi,
  exchange,
  obtainCode,
  postAs,
  refresh,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { devAlice, startProcess } from '../helpers/process.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, json } from '../helpers/wire.ts'

const data = newFolder(t)
const { server } = await startProcess(t, data)
const agent = new UserAgent(server.issuer)
const callback = 'https://app.example.com/callback'

/** A client that must be accepted; with a callback unless a flag changes it. */
async function added(...flags: string[]): Promise<TestClient> {
  const given = flags.includes('--redirect-uri') || flags.includes('--resource')
  const { code, stdout, stderr } = await run(
    [
      ...['client', 'add', '--data', data, '--json', '--name', 'App'],
      ...(given ? [] : ['--redirect-uri', callback]),
      ...flags,
    ],
    { environment: { LYCHGATE_ISSUER: server.issuer } },
  )
  if (code !== 0) throw new Error(stderr)
  const {
    client_id: id,
    client_secret: secret,
    token_endpoint_auth_method: method,
    redirect_uris: uris,
  } = JSON.parse(stdout)
  return { id, secret, method, redirectUri: uris[0] }
}

const codeOf = (client: TestClient) => obtainCode(server, client, { agent, user: devAlice })
const tokensOf = async (client: TestClient) =>
  (await (await exchange(server, client, await codeOf(client))).json()) as Tokens

/** Where a signed-in user ends with this request: at a page, or redirected with these parameters. */
async function outcome(client: TestClient, fields: Parameters<typeof authorizationUrl>[2] = {}) {
  const landing = await agent.open(authorizationUrl(server, client, fields))
  return landing.at === 'page'
    ? new URL(landing.page.url).pathname
    : Object.fromEntries(landing.location.searchParams)
}

t.test(
  '[service-5-https-client-out-of-band] an https callback works as it was added, with PKCE, and consent is remembered',
  async (t) => {
    const app = await added()
    t.type((await tokensOf(app)).access_token, 'string')
    t.match(await outcome(app), { code: /./, iss: server.issuer }, 'the user is not asked again')
    t.equal(await outcome(app, { scope: 'openid email' }), '/consent', 'but about a new scope')
    t.match(await outcome(app, { code_challenge: undefined, code_challenge_method: undefined }), {
      error: 'invalid_request',
    })
    for (const uri of [
      `${callback}/`,
      'https://app.example.com:8443/callback',
      'https://b.example/callback',
    ]) {
      const response = await authorize(server, app, { redirect_uri: uri })
      t.equal(response.status, 400, uri)
      t.equal(response.headers.get('location'), null)
    }
  },
)

t.test(
  '[rfc8252-8.5-shared-secret-not-proof] [rfc8252-8.6-no-automatic-approval] a public client on loopback needs consent every time, on any port',
  async (t) => {
    const cli = await added('--auth', 'none', '--redirect-uri', 'http://127.0.0.1/callback')
    t.equal(cli.secret, undefined)
    const onPort = { ...cli, redirectUri: 'http://127.0.0.1:51004/callback' }
    t.type((await tokensOf(onPort)).access_token, 'string')
    t.equal(await outcome(onPort), '/consent')
    t.match(await outcome(onPort, { prompt: 'none' }), { error: 'consent_required' })
  },
)

t.test('first-party consent, optional PKCE and a limited scope apply as they were set', async (t) => {
  const own = await added('--consent', 'skip', '--pkce', 'optional', '--scope', 'openid courses:read')
  const without = { code_challenge: undefined, code_challenge_method: undefined }
  const { code = '' } = (await outcome(own, without)) as Record<string, string>
  t.equal((await exchange(server, own, code, { code_verifier: undefined })).status, 200)
  t.match(await outcome(own, { scope: 'openid courses:write' }), { error: 'invalid_scope' })
  const asked = await added('--consent', 'always')
  await codeOf(asked)
  t.equal(await outcome(asked), '/consent', 'and always is always')
})

t.test('a rotated secret is rejected at once, and the new one works', async (t) => {
  const app = await added('--auth', 'client_secret_post')
  const code = await codeOf(app)
  const { stdout } = await run(['client', 'rotate-secret', app.id, '--yes', '--data', data, '--json'])
  const renewed: TestClient = { ...app, secret: JSON.parse(stdout).client_secret }
  await assertRejected(t, await exchange(server, app, code), 'invalid_client')
  t.equal((await exchange(server, renewed, code)).status, 200)
})

t.test(
  'a public client has no secret to rotate; once removed it is unknown, and its tokens are invalid',
  async (t) => {
    const app = await added('--auth', 'none')
    const { access_token: access, refresh_token: token } = await tokensOf(app)
    const environment = { LYCHGATE_ISSUER: server.issuer }
    const rotated = await run(['client', 'rotate-secret', app.id, '--yes', '--data', data], { environment })
    t.strictSame(rotated, { code: 1, stdout: '', stderr: 'lychgate: a public client has no secret\n' })
    t.equal((await callApi(server, '/api/oauth/userinfo', access)).status, 200)
    t.equal((await run(['client', 'remove', app.id, '--yes', '--data', data])).code, 0)
    t.equal((await callApi(server, '/api/oauth/userinfo', access)).status, 401)
    await assertRejected(t, await refresh(server, app, token), 'invalid_client')
    const response = await authorize(server, app)
    t.equal(response.status, 400)
    t.equal(response.headers.get('location'), null)
  },
)

t.test('a resource server can introspect tokens of its API and gets none itself', async (t) => {
  const api = await added('--resource', server.issuer)
  const app = await added('--auth', 'none')
  const { access_token: token, refresh_token: refreshToken } = await tokensOf(app)
  t.match(await json(await postAs(server, api, '/api/oauth/introspect', { token })), {
    active: true,
    client_id: app.id,
  })
  const other = await postAs(server, api, '/api/oauth/introspect', { token: refreshToken })
  t.strictSame(await json(other), { active: false })
  const asking = await authorize(server, { ...api, redirectUri: callback })
  t.equal(asking.status, 400)
  t.equal(asking.headers.get('location'), null)
  await assertRejected(t, await refresh(server, api, refreshToken), 'unauthorized_client')
  t.equal((await refresh(server, app, refreshToken)).status, 200, 'which is left as it was')
})
