/** Requests of well-known clients, exactly as they send them; each of these has failed at some other server. */
import t from 'tap'
import { defaultScopeCatalogue } from '../../src/domain/scope-catalogue.ts'
import {
  authorizationUrl,
  callApi,
  exchange,
  obtainTokens,
  post,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const server = await startServer(t, { clock: 'machine' })
const lenient = await startServer(t, { clock: 'machine', registration: { foreignRedirects: 'drop' } })
const user = newUser(server)
const allScopes = defaultScopeCatalogue.map(({ name }) => name)

interface HttpResponse {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

async function read(response: Response | Promise<Response>): Promise<HttpResponse> {
  const { status } = await response
  return { status, body: (await (await response).json()) as HttpResponse['body'] }
}

function send({ issuer }: TestServer, metadata: Record<string, unknown>): Promise<HttpResponse> {
  const headers = { 'content-type': 'application/json' }
  return read(
    fetch(`${issuer}/api/oauth/register`, { method: 'POST', headers, body: JSON.stringify(metadata) }),
  )
}

/** Tokens of a client after the user approved at this URL. */
async function tokensAt(client: TestClient, url: string): Promise<Tokens> {
  const code = (await user.approve(url)).searchParams.get('code') ?? ''
  return (await (await exchange(server, client, code)).json()) as Tokens
}

/** VS Code requests the grant types both sides support, and lists its web callbacks next to loopback. */
async function visualStudioCode({ issuer }: TestServer) {
  const discovery = await fetch(`${issuer}/.well-known/oauth-authorization-server`)
  const { grant_types_supported: supported } = (await discovery.json()) as {
    grant_types_supported: string[]
  }
  const known = ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code']
  return {
    client_name: 'Visual Studio Code',
    client_uri: 'https://code.visualstudio.com',
    grant_types: supported.filter((grantType) => known.includes(grantType)),
    response_types: ['code'],
    redirect_uris: [
      'https://insiders.vscode.dev/redirect',
      'https://vscode.dev/redirect',
      'http://127.0.0.1/',
      'http://127.0.0.1:33418/',
    ],
    scope: 'openid courses:read',
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  }
}

t.test('VS Code registers where foreign redirects are dropped, and learns which ones remain', async (t) => {
  const { status, body } = await send(lenient, await visualStudioCode(lenient))
  t.equal(status, 201)
  t.same(body['redirect_uris'], ['http://127.0.0.1/', 'http://127.0.0.1:33418/'])
  // It asks for device codes too, which `registration.deviceGrant` keeps from clients that register themselves.
  t.same(body['grant_types'], ['authorization_code', 'refresh_token'])
})

t.test('where they are not dropped, its list is rejected as a whole', async (t) => {
  const response = await send(server, await visualStudioCode(server))
  t.match(response, {
    status: 400,
    body: {
      error: 'invalid_redirect_uri',
      error_description: /^redirect_uris\[0\] .*registration\.foreignRedirects=drop/,
      client_id: undefined,
    },
  })
})

t.test('Claude Code registers its localhost callback, and returns to another port', async (t) => {
  const { status, body } = await send(server, {
    client_name: 'Claude Code',
    redirect_uris: ['http://localhost:54545/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  })
  t.match(body, { redirect_uris: ['http://localhost:54545/callback'], application_type: 'native' })
  t.equal(status, 201)
  const redirectUri = 'http://localhost:61234/callback'
  const client = { id: String(body['client_id']), method: 'none', redirectUri }
  const landed = await user.approve(authorizationUrl(server, client, { redirect_uri: redirectUri }))
  t.equal(landed.origin + landed.pathname, redirectUri)
  t.equal((await exchange(server, client, landed.searchParams.get('code') ?? '')).status, 200)
})

t.test('a redirect URI registered without a port works with every port, and without one', async (t) => {
  const client = await register(server, { redirect_uris: ['http://127.0.0.1/'] })
  for (const redirectUri of ['http://127.0.0.1:49152/', 'http://127.0.0.1:65535/', 'http://127.0.0.1/']) {
    const landed = await user.approve(authorizationUrl(server, client, { redirect_uri: redirectUri }))
    t.equal(landed.origin + landed.pathname, redirectUri)
    const code = landed.searchParams.get('code') ?? ''
    const response = await exchange(server, client, code, { redirect_uri: redirectUri })
    t.equal(response.status, 200, redirectUri)
  }
})

t.test('a registration with many unknown members is accepted, and they are dropped', async (t) => {
  const { status, body } = await send(server, {
    redirect_uris: ['http://127.0.0.1:4242/cb'],
    software_statement_hint: 'x',
    'x-vendor': { deep: [1, { deeper: null }] },
    request_object_signing_alg: 'none',
    client_id: 'mine',
    jwks_uri: 'https://client.example/jwks',
  })
  t.equal(status, 201)
  t.not(body['client_id'], 'mine')
  for (const name of ['x-vendor', 'software_statement_hint']) t.notOk(name in body, name)
})

t.test('a client that names no scope gets one it can sign in with, and the response names it', async (t) => {
  const client = await register(server)
  const tokens = await tokensAt(client, authorizationUrl(server, client, { scope: undefined }))
  t.equal(tokens.scope, 'openid profile email')
  t.type(tokens.id_token, 'string')
})

t.test(
  'a client that registers and requests all 38 scopes gets them, and keeps what the user approves',
  async (t) => {
    t.equal(allScopes.length, 38)
    const client = await register(server, { scope: allScopes.join(' ') })
    const url = authorizationUrl(server, client, { scope: allScopes.join(' ') })
    const all = await tokensAt(client, url)
    t.same((await read(callApi(server, '/api/pages', all.access_token))).body['scope'], allScopes.join(' '))

    const code = (await user.approve(url, ['courses:read', 'pages:read'])).searchParams.get('code') ?? ''
    const { body } = await read(exchange(server, client, code))
    t.equal(body['scope'], 'openid courses:read pages:read')
  },
)

t.test(
  'oidc-agent registers as web, and sends redirect_uri and state unencoded with prompt=consent',
  async (t) => {
    const client = await register(server, {
      application_type: 'web',
      redirect_uris: ['http://127.0.0.1:4242/', 'http://127.0.0.1:8080/', 'http://127.0.0.1:43985/'],
      scope: 'openid profile',
    })
    const url = authorizationUrl(server, client, {
      redirect_uri: undefined,
      state: undefined,
      prompt: 'consent',
    })
    const landed = await user.approve(`${url}&redirect_uri=http://127.0.0.1:43985/&state=0:a.b_c~d:1`)
    t.equal(landed.searchParams.get('state'), '0:a.b_c~d:1')
    const code = landed.searchParams.get('code') ?? ''
    const response = await exchange(server, client, code, { redirect_uri: 'http://127.0.0.1:43985/' })
    t.equal(response.status, 200)
  },
)

t.test('Authlib repeats the whole scope when it refreshes, and the response has the same one', async (t) => {
  const client = await register(server)
  const tokens = await obtainTokens(server, client, {
    agent: user.agent,
    fields: { scope: 'openid email' },
  })
  const { status, body } = await read(
    refresh(server, client, tokens.refresh_token, { scope: 'openid email' }),
  )
  t.equal(status, 200)
  t.equal(body['scope'] ?? 'openid email', 'openid email')
})

t.test(
  'mod_auth_openidc revokes the refresh token first, and then the access token that ended with it',
  async (t) => {
    const client = await register(server)
    const tokens = await obtainTokens(server, client, { agent: user.agent })
    for (const [token, hint] of [
      [tokens.refresh_token, 'refresh_token'],
      [tokens.access_token, 'access_token'],
    ] as const) {
      const fields = { token, token_type_hint: hint, client_id: client.id }
      t.equal((await post(server, '/api/oauth/revoke', fields)).status, 200, hint)
    }
    t.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 401)
  },
)

t.test(
  'mod_oauth2 introspects with its credentials as form fields and reads sub, scope and exp',
  async (t) => {
    const client = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
    const tokens = await obtainTokens(server, client, { agent: user.agent })
    const fields = { token: tokens.access_token, token_type_hint: 'access_token' }
    const response = await read(
      post(server, '/api/oauth/introspect', {
        ...fields,
        client_id: client.id,
        client_secret: client.secret,
      }),
    )
    t.match(response, { status: 200, body: { active: true, sub: String, scope: 'openid', exp: Number } })
  },
)

t.test('a resource with the slash that a URL parser adds is the same resource', async (t) => {
  const client = await register(server)
  const resource = `${server.issuer}/`
  const tokens = await obtainTokens(server, client, { agent: user.agent, fields: { resource } })
  t.equal((await refresh(server, client, tokens.refresh_token, { resource })).status, 200)
  t.match(await read(callApi(server, '/api/courses', tokens.access_token)), {
    status: 403,
    body: { error: 'insufficient_scope' },
  })
})
