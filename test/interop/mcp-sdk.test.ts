/** The MCP TypeScript SDK's own `auth()`, as any MCP client runs it: from the URL of an API to a token that works there. */

import { createServer } from 'node:https'
import {
  auth,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
} from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { remove } from '../../src/domain/decision.ts'
import { guard, introspectedBy, protectedResourceMetadata, signedBy } from '../../src/guard/guard.ts'
import { pageOf } from '../helpers/authorization.ts'
import { makeKnownCertificates } from '../helpers/doctor.ts'
import { freePort } from '../helpers/free-port.ts'
import { addResourceServer } from '../helpers/guarded-api.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const signed = `http://127.0.0.1:${await freePort()}`
const server = await startServer(t, {
  clock: 'machine',
  resources: [
    { identifier: signed, name: 'Notes', scopes: ['courses:read', 'courses:write'], tokenFormat: 'jwt' },
  ],
})
const user = newUser(server)
const api = `${server.issuer}/api/courses`

/** The state of an MCP client, which the SDK reads and writes. */
class Provider implements OAuthClientProvider {
  readonly redirectUrl: string
  readonly clientMetadata: OAuthClientMetadata
  readonly invalidated: string[] = []
  clientMetadataUrl?: string
  client: OAuthClientInformationMixed | undefined
  kept: OAuthTokens | undefined
  verifier = ''
  /** Where the SDK sent the browser last. */
  sentTo: URL | undefined

  /** What the API demands of the sign-in, RFC 9470 §4: the SDK leaves it to its host. */
  demanded: Record<string, string> = {}

  constructor(metadata: Partial<OAuthClientMetadata> = {}, redirectUrl = 'http://127.0.0.1:33418/callback') {
    this.redirectUrl = redirectUrl
    this.clientMetadata = {
      client_name: 'MCP client',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      ...metadata,
    }
  }
  state = () => 'a state'
  clientInformation = () => this.client
  saveClientInformation(client: OAuthClientInformationMixed) {
    this.client = client
  }
  tokens = () => this.kept
  saveTokens(tokens: OAuthTokens) {
    this.kept = tokens
  }
  redirectToAuthorization(url: URL) {
    for (const [name, value] of Object.entries(this.demanded)) url.searchParams.set(name, value)
    this.sentTo = url
  }
  saveCodeVerifier(verifier: string) {
    this.verifier = verifier
  }
  codeVerifier = () => this.verifier
  invalidateCredentials(scope: string) {
    this.invalidated.push(scope)
    if (scope === 'all') this.client = undefined
    this.kept = undefined
  }
}

/** A complete first connection: authorization in the user's browser, and the exchange. */
async function connect(t: Test, provider: Provider, options: Parameters<typeof auth>[1]): Promise<void> {
  t.equal(await auth(provider, options), 'REDIRECT')
  if (provider.sentTo === undefined) throw new Error('the SDK sent the browser nowhere')
  const response = await user.approve(provider.sentTo)
  t.equal(response.searchParams.get('state'), 'a state')
  const authorizationCode = response.searchParams.get('code') ?? ''
  t.equal(await auth(provider, { ...options, authorizationCode }), 'AUTHORIZED')
}

async function call(
  url: string,
  { kept }: Provider,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${kept?.access_token}` } })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

for (const method of ['none', 'client_secret_post', 'client_secret_basic']) {
  t.test(
    `[mcp-discovery-prm-authorization-servers] a client with ${method} goes from the URL of the API to a token with all 39 scopes`,
    async (t) => {
      const provider = new Provider({ token_endpoint_auth_method: method })
      await connect(t, provider, { serverUrl: api })
      t.match(provider.client, { client_id: String, token_endpoint_auth_method: method })
      t.equal(provider.sentTo?.searchParams.get('scope')?.split(' ').length, 39)
      t.equal(provider.sentTo?.searchParams.get('resource'), server.issuer)
      t.equal((await call(api, provider)).body['caller'], 'user')
      t.equal(String((await call(api, provider)).body['scope']).split(' ').length, 39)
    },
  )
}

t.test('[mcp-security-refresh-rotation] a refresh rotates the tokens, and the new ones work', async (t) => {
  const provider = new Provider()
  await connect(t, provider, { serverUrl: api })
  const { kept: before } = provider
  t.equal(await auth(provider, { serverUrl: api }), 'AUTHORIZED')
  t.type(provider.kept?.refresh_token, 'string')
  t.not(provider.kept?.refresh_token, before?.refresh_token)
  t.not(provider.kept?.access_token, before?.access_token)
  t.equal((await call(api, provider)).status, 200)
  t.equal(await auth(provider, { serverUrl: api }), 'AUTHORIZED', 'and again')
})

t.test('a dead refresh token makes the client ask the user again, as the same client', async (t) => {
  const provider = new Provider()
  await connect(t, provider, { serverUrl: api })
  const { client, kept } = provider
  await fetch(`${server.issuer}/api/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams({ token: kept?.refresh_token ?? '', client_id: client?.client_id ?? '' }),
  })
  t.equal((await call(api, provider)).status, 401)
  await connect(t, provider, { serverUrl: api })
  t.same(provider.invalidated, ['tokens'])
  t.equal(provider.client?.client_id, client?.client_id)
  t.equal((await call(api, provider)).status, 200)
})

t.test('a client that the server no longer knows registers again', async (t) => {
  const provider = new Provider()
  await connect(t, provider, { serverUrl: api })
  const { client_id: clientId = '' } = provider.client ?? {}
  await server.deps.store.write(remove('client', clientId))
  await connect(t, provider, { serverUrl: api })
  t.same(provider.invalidated, ['all'])
  t.not(provider.client?.client_id, clientId)
  t.equal((await call(api, provider)).status, 200)
})

t.test(
  'the challenge of an API elsewhere leads the client to its metadata, to this server, and back with a token',
  async (t) => {
    const app = Fastify()
    await app.register(protectedResourceMetadata, {
      resource: signed,
      authorizationServers: [server.issuer],
      scopes: ['courses:read', 'courses:write'],
      name: 'Notes',
    })
    const verifyToken = signedBy({ issuer: server.issuer, jwksUri: `${server.issuer}/api/oauth/jwks` })
    await app.register(guard, { resource: signed, verifyToken, anonymous: 'challenge' })
    app.get('/mcp', { preHandler: app.requireScope('courses:read') }, async ({ access }) => access)
    await app.listen({ port: Number(new URL(signed).port), host: '127.0.0.1' })
    t.teardown(() => app.close())

    const challenge = await fetch(`${signed}/mcp`)
    t.equal(challenge.status, 401)
    const { resourceMetadataUrl } = extractWWWAuthenticateParams(challenge)
    t.equal(resourceMetadataUrl?.href, `${signed}/.well-known/oauth-protected-resource`)

    const provider = new Provider()
    const options = { serverUrl: `${signed}/mcp`, ...(resourceMetadataUrl && { resourceMetadataUrl }) }
    await connect(t, provider, options)
    t.equal(provider.sentTo?.searchParams.get('resource'), signed)
    t.match(await call(`${signed}/mcp`, provider), {
      status: 200,
      body: { clientId: provider.client?.client_id, scope: ['courses:read', 'courses:write'] },
    })
    t.equal((await call(api, provider)).status, 401, 'a token for the one is no token for the other')
    t.equal(await auth(provider, options), 'AUTHORIZED', 'refreshed, with the resource')
    t.equal((await call(`${signed}/mcp`, provider)).status, 200)
  },
)

t.test(
  '[mcp-overview-cimd] a client with a metadata URL does not register, and steps up to a wider scope when a tool needs it',
  async (t) => {
    const resource = `http://127.0.0.1:${await freePort()}/mcp`
    const development = await startServer(t, {
      clock: 'machine',
      mode: 'dev',
      nodes: 1,
      resources: [
        {
          identifier: resource,
          name: 'Tools',
          scopes: ['courses:read', 'courses:write'],
          tokenFormat: 'opaque',
        },
      ],
    })
    const provider = new Provider()
    provider.clientMetadataUrl = await publish(t, provider)
    await startTools(t, development, resource)
    const user = newUser(development)
    const allow = async (): Promise<string> => {
      if (provider.sentTo === undefined) throw new Error('the SDK sent the browser nowhere')
      return (await user.approve(provider.sentTo)).searchParams.get('code') ?? ''
    }
    const connected = async () => {
      const transport = new StreamableHTTPClientTransport(new URL(resource), { authProvider: provider })
      const client = new Client({ name: 'Test', version: '1.0.0' })
      return {
        transport,
        client,
        connect: () => client.connect(transport as Parameters<Client['connect']>[0]),
      }
    }
    const first = await connected()
    await t.rejects(first.connect(), { message: /Unauthorized/ })
    t.equal(provider.sentTo?.searchParams.get('client_id'), provider.clientMetadataUrl, '[mcp-overview-cimd]')
    t.equal(provider.sentTo?.searchParams.get('scope'), 'courses:read')
    await first.transport.finishAuth(await allow())

    const second = await connected()
    await second.connect()
    t.teardown(() => second.client.close())
    t.match(await second.client.callTool({ name: 'list' }), { content: [{ text: 'list' }] })
    await t.rejects(second.client.callTool({ name: 'clear' }), { message: /Unauthorized/ })
    t.equal(
      provider.sentTo?.searchParams.get('scope'),
      'courses:read courses:write',
      'the scope of the challenge',
    )
    await second.transport.finishAuth(await allow())
    t.match(await second.client.callTool({ name: 'clear' }), { content: [{ text: 'clear' }] })
    t.equal(provider.client?.client_id, provider.clientMetadataUrl)
  },
)

t.test(
  '[mcp-overview-cimd] [rfc9470-3-challenge] a client in the cloud keeps what was agreed: it asks for the difference, and for a new sign-in, in the loop of the SDK',
  async (t) => {
    const resource = `http://127.0.0.1:${await freePort()}/mcp`
    const scopes = ['courses:read', 'courses:write']
    const development = await startServer(t, {
      clock: 'machine',
      mode: 'dev',
      nodes: 1,
      resources: [{ identifier: resource, name: 'Tools', scopes, tokenFormat: 'opaque' }],
    })
    const provider = new Provider({}, 'https://agent.example/callback')
    provider.clientMetadataUrl = await publish(t, provider)
    await startTools(t, development, resource)
    const user = newUser(development)
    const sent = (name: string) => provider.sentTo?.searchParams.get(name)
    /** The host of the SDK: it sends the demands of a challenge with the next request. */
    const watched: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      const challenge = response.headers.get('www-authenticate') ?? ''
      if (!challenge.includes('insufficient_user_authentication')) return response
      const [, maxAge = ''] = /max_age="(\d+)"/.exec(challenge) ?? []
      provider.demanded = { max_age: maxAge }
      return response
    }
    const transport = () =>
      new StreamableHTTPClientTransport(new URL(resource), { authProvider: provider, fetch: watched })
    const codeAt = ({ searchParams }: URL) => searchParams.get('code') ?? ''
    const client = new Client({ name: 'Test', version: '1.0.0' })
    const first = transport()
    await t.rejects(client.connect(first as Parameters<Client['connect']>[0]), { message: /Unauthorized/ })
    await first.finishAuth(codeAt(await user.approve(provider.sentTo ?? '')))
    t.equal(provider.kept?.scope, 'courses:read')

    const second = transport()
    const connected = new Client({ name: 'Test', version: '1.0.0' })
    await connected.connect(second as Parameters<Client['connect']>[0])
    t.teardown(() => connected.close())
    await t.rejects(connected.callTool({ name: 'clear' }), { message: /Unauthorized/ })
    t.equal(sent('scope'), 'courses:read courses:write', 'a superset is requested')
    const page = pageOf(await user.agent.open(String(provider.sentTo)))
    const asked = page.forms.flatMap(({ fields }) => fields.filter(({ name }) => name === 'scope'))
    t.strictSame(
      asked.map(({ value }) => value),
      ['courses:write'],
      'the user is asked for the difference alone',
    )
    const landing = await user.agent.submit(page, { decision: 'approve' })
    if (landing.at !== 'redirect') throw new Error(`no redirect: ${landing.page.html}`)
    await second.finishAuth(codeAt(landing.location))
    t.equal(provider.kept?.scope, 'courses:read courses:write', 'and what was agreed is kept')
    t.match(await connected.callTool({ name: 'clear' }), { content: [{ text: 'clear' }] })

    t.match(await connected.callTool({ name: 'grade' }), { content: [{ text: 'grade' }] })
    development.advance(120)
    await t.rejects(connected.callTool({ name: 'grade' }), { message: /Unauthorized/ })
    t.equal(sent('max_age'), '60', '[rfc9470-3-challenge]')
    const login = pageOf(await user.agent.open(String(provider.sentTo)))
    t.match(login.html, 'name="password"', 'the user signs in again')
    await second.finishAuth(codeAt(await user.approve(provider.sentTo ?? '')))
    t.match(await connected.callTool({ name: 'grade' }), { content: [{ text: 'grade' }] })
    t.match(await connected.callTool({ name: 'list' }), { content: [{ text: 'list' }] })
  },
)

/** Publishes the document of a client by https on this computer; returns its URL. */
async function publish(t: Test, { clientMetadata }: Provider): Promise<string> {
  const port = await freePort()
  const url = `https://localhost:${port}/oauth/client.json`
  // Without a refresh token, because the SDK refreshes on a challenge for more scope if it has one.
  const document = { ...clientMetadata, client_id: url, grant_types: ['authorization_code'] }
  const server = createServer(makeKnownCertificates(t).localhost, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  })
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve))
  t.teardown(() => server.close())
  return url
}

/** An MCP server with a tool to read, one that needs another scope, and one that needs a recent sign-in. */
async function startTools(t: Test, server: TestServer, resource: string): Promise<void> {
  const { issuer, now } = server
  const app = Fastify()
  await app.register(protectedResourceMetadata, {
    resource,
    authorizationServers: [issuer],
    scopes: ['courses:read'],
    name: 'Tools',
  })
  const verifyToken = introspectedBy(await addResourceServer(server, resource))
  await app.register(guard, { resource, verifyToken, anonymous: 'challenge', clock: now })
  const recent = app.requireAuthentication({ maxAgeSeconds: 60 })
  const [read, both] = [app.requireScope('courses:read'), app.requireScope('courses:read', 'courses:write')]
  app.post<{ Body: { params?: { name?: string } } }>(
    '/mcp',
    {
      preHandler: async (request, reply) => {
        const { name } = request.body.params ?? {}
        await (name === 'clear' ? both : read).call(app, request, reply)
        if (name === 'grade') await recent.call(app, request, reply)
      },
    },
    async (request, reply) => {
      const mcp = new McpServer({ name: 'tools', version: '1.0.0' })
      for (const name of ['list', 'clear', 'grade'])
        mcp.registerTool(name, { description: name }, () => ({ content: [{ type: 'text', text: name }] }))
      const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
      reply.hijack()
      await mcp.connect(transport as Parameters<McpServer['connect']>[0])
      await transport.handleRequest(request.raw, reply.raw, request.body)
    },
  )
  t.teardown(() => app.close())
  await app.listen({ port: Number(new URL(resource).port), host: '127.0.0.1' })
}
