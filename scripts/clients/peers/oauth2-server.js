// @node-oauth/oauth2-server with a model in memory and the pages that its manual leaves to the product. Argument: the
// port.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { parse } from 'node:querystring'
import { text } from 'node:stream/consumers'
import OAuth2Server from '@node-oauth/oauth2-server'

const port = Number(process.argv[2])
const issuer = `http://localhost:${port}`
const folder = new URL('oauth2-server/', import.meta.url)
const user = { id: 'alice', password: 'alice-in-dev' }
const scopes = ['read', 'write']

const clients = new Map(
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(new URL(name, folder), 'utf8')))
    .map(({ client_id: id, client_secret: secret, redirect_uris: redirectUris, grant_types: grants }) => [
      id,
      { id, secret, redirectUris, grants },
    ]),
)
const codes = new Map()
const accessTokens = new Map()
const refreshTokens = new Map()

const model = {
  // The authorization endpoint asks with null; a token request without a secret has none.
  getClient(id, secret) {
    const client = clients.get(id)
    return secret === null || client?.secret === secret ? client : undefined
  },
  validateScope: (_user, _client, asked = ['read']) =>
    asked.every((scope) => scopes.includes(scope)) ? asked : false,
  saveAuthorizationCode(code, client, owner) {
    const stored = { ...code, client, user: owner }
    codes.set(code.authorizationCode, stored)
    return stored
  },
  getAuthorizationCode: (code) => codes.get(code),
  revokeAuthorizationCode: ({ authorizationCode }) => codes.delete(authorizationCode),
  saveToken(token, client, owner) {
    const stored = { ...token, client, user: owner }
    accessTokens.set(token.accessToken, stored)
    refreshTokens.set(token.refreshToken, stored)
    return stored
  },
  getAccessToken: (token) => accessTokens.get(token),
  getRefreshToken: (token) => refreshTokens.get(token),
  revokeToken({ accessToken, refreshToken }) {
    accessTokens.delete(accessToken)
    return refreshTokens.delete(refreshToken)
  },
}
const server = new OAuth2Server({ model })
const sessions = new Set()

const metadata = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  userinfo_endpoint: `${issuer}/me`,
  response_types_supported: ['code'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
  code_challenge_methods_supported: ['S256'],
  scopes_supported: scopes,
}

/** Runs an endpoint of the library, and returns its response, of errors too. */
async function run(endpoint, { request, query, body }, options) {
  const { method, headers } = request
  const response = new OAuth2Server.Response()
  try {
    const result = await server[endpoint](
      new OAuth2Server.Request({ method, headers, query, body }),
      response,
      options,
    )
    return { response, result }
  } catch (error) {
    // The library leaves the status of a response that it did not write to the product.
    if (response.headers.location === undefined) response.status = error.code
    return { response, result: { error: error.name, error_description: error.message } }
  }
}

const escaped = (value) => String(value).replaceAll('&', '&amp;').replaceAll('"', '&quot;')
const hidden = (fields) =>
  Object.entries(fields)
    .flatMap(([name, values]) => [values].flat().map((value) => [name, value]))
    .map(([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">`)
    .join('')
const pageHeaders = { 'content-type': 'text/html; charset=utf-8', 'x-frame-options': 'DENY' }

const routes = {
  '/.well-known/oauth-authorization-server': () => ({ status: 200, json: metadata }),
  async '/token'(incoming) {
    const { response, result } = await run('token', incoming)
    const { status, headers, body } = response
    return { status, headers, json: body.error === undefined && status !== 200 ? result : body }
  },
  async '/me'(incoming) {
    const { response, result } = await run('authenticate', incoming)
    const { status, headers } = response
    return { status, headers, json: status === 200 ? { sub: result.user.id } : result }
  },
  '/sign-in'({ body: { username, password, next } }) {
    if (username !== user.id || password !== user.password) return { status: 401, page: '<p>Wrong.</p>' }
    const session = randomBytes(16).toString('hex')
    sessions.add(session)
    const cookie = `session=${session}; Path=/; HttpOnly; SameSite=Lax`
    return { status: 303, headers: { 'set-cookie': cookie, location: `/authorize?${next}` } }
  },
  async '/authorize'({ request, query, body, search }) {
    const session = /session=(\w+)/.exec(request.headers.cookie ?? '')?.[1]
    if (!sessions.has(session)) {
      const fields = '<input name="username"><input type="password" name="password">'
      const form = `<form method="post" action="/sign-in">${hidden({ next: search })}${fields}<button>Sign in</button></form>`
      return { status: 200, page: form }
    }
    if (body.session !== session) {
      const buttons =
        '<button name="allowed" value="true">Allow</button><button name="allowed" value="false">Deny</button>'
      const form = `<form method="post" action="/authorize">${hidden({ ...query, ...body, session })}${buttons}</form>`
      return { status: 200, page: form }
    }
    const { response, result } = await run(
      'authorize',
      { request, query, body },
      {
        authenticateHandler: { handle: () => user },
      },
    )
    const { status, headers } = response
    return { status, headers, page: `<p>${escaped(result.error)}</p>` }
  },
}

createServer(async (request, response) => {
  const { pathname, search } = new URL(request.url, issuer)
  const route = routes[pathname]
  if (route === undefined) return response.writeHead(404).end()
  const query = parse(search.slice(1))
  const body = request.method === 'POST' ? parse(await text(request)) : {}
  const { status, headers, json, page } = await route({ request, query, body, search: search.slice(1) })
  if (json !== undefined)
    return response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(json))
  return response.writeHead(status, { ...pageHeaders, ...headers }).end(page)
}).listen(port, 'localhost')
