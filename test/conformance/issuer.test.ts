import { createRemoteJWKSet, jwtVerify } from 'jose'
import t from 'tap'
import { ConfigError, loadConfig } from '../../src/settings/load.ts'
import { newFolder, run } from '../helpers/command.ts'
import {
  authorizationUrl,
  callApi,
  obtainTokens,
  register,
  signInAndApprove,
  type Tokens,
} from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { challengeOf, json } from '../helpers/wire.ts'

const secret = 'a secret for tests that is long enough'
const https = 'https://id.example.com'
/** A server behind a TLS proxy: it listens on loopback, and its issuer is https. */
const proxied = await startServer(t, { issuer: https })
const documents = ['oauth-authorization-server', 'openid-configuration', 'oauth-protected-resource']

function known(
  at: { origin: string },
  name: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${at.origin}/.well-known/${name}`, { headers })
}

t.test(
  '[rfc8414-2-issuer] [rfc9728-1.2-resource-identifier] behind TLS every published URL is https and below the issuer',
  async (t) => {
    for (const name of documents) {
      const document = await json(await known(proxied, name))
      const identifier = new URL(String(document['issuer'] ?? document['resource']))
      const clause =
        name === 'oauth-protected-resource' ? '[rfc9728-1.2-resource-identifier]' : '[rfc8414-2-issuer]'
      t.equal(String(document['issuer'] ?? document['resource']), https, clause)
      t.strictSame([identifier.protocol, identifier.search, identifier.hash], ['https:', '', ''], clause)
      // The names of authentication context classes are URLs of the organisations that defined them.
      const { acr_values_supported: _, ...own } = document
      const urls = JSON.stringify(own).match(/"https?:[^"]*"/g) ?? []
      t.ok(urls.length >= 2)
      for (const url of urls) t.match(JSON.parse(url), /^https:\/\/id\.example\.com(\/|$)/)
    }
  },
)

t.test('[oidc-disc-3-issuer] behind TLS every endpoint of the OpenID configuration is https', async (t) => {
  const document = await json(await known(proxied, 'openid-configuration'))
  t.equal(document['issuer'], https, '[oidc-disc-3-issuer]')
  for (const [name, path, clause] of [
    ['authorization_endpoint', '/oauth/authorize', '[oidc-disc-3-authorization-endpoint]'],
    ['token_endpoint', '/api/oauth/token', '[oidc-disc-3-token-endpoint]'],
    ['userinfo_endpoint', '/api/oauth/userinfo', '[oidc-disc-3-userinfo-endpoint]'],
    ['revocation_endpoint', '/api/oauth/revoke', '[rfc7009-2-http-not-published]'],
    ['jwks_uri', '/api/oauth/jwks', '[oidc-disc-3-jwks-uri]'],
  ] as const)
    t.equal(document[name], https + path, clause)
})

t.test('[rfc6749-10.9-tls] an http issuer is accepted on loopback only, and https is strict', async (t) => {
  for (const issuer of ['http://id.example.com', 'http://10.0.0.1', 'http://localhost.example.com']) {
    t.throws(() => loadConfig({ mode: 'serve', flags: { issuer, secret } }), ConfigError, issuer)
  }
  const data = newFolder(t)
  const port = await freePort()
  const serve = ['serve', '--issuer', 'http://id.example.com', '--port', String(port), '--data', data]
  const { code, stderr } = await run(serve, { environment: { LYCHGATE_SECRET: secret } })
  t.equal(code, 78, 'the process does not start')
  t.match(stderr, /^lychgate: issuer: http is accepted on [^\n]*\n$/)
  await t.rejects(fetch(`http://127.0.0.1:${port}/livez`), 'and the port is free')
  t.equal(loadConfig({ mode: 'serve', flags: { issuer: https, secret } }).issuer, https)
  const strict = await fetch(`${proxied.origin}/livez`)
  t.match(strict.headers.get('strict-transport-security'), /max-age=\d{7,}/)
})

t.test(
  '[rfc9700-4.13-proxy-headers] no header of a request appears in metadata, links or redirects',
  async (t) => {
    const hostile = {
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'ftp',
      'x-forwarded-port': '1',
      'x-forwarded-prefix': '/evil',
      forwarded: 'host=evil.example;proto=ftp',
      'x-original-url': '/evil',
    }
    for (const name of documents) {
      const plain = await (await known(proxied, name)).text()
      t.equal(await (await known(proxied, name, hostile)).text(), plain, name)
      const hosted = await proxied.app.inject({
        url: `/.well-known/${name}`,
        headers: { host: 'evil.example', ...hostile },
      })
      t.equal(hosted.body, plain, `${name} under another Host`)
    }
    const rejected = await fetch(`${proxied.origin}/api/courses`, {
      headers: { ...hostile, authorization: 'Bearer x' },
    })
    t.equal(
      challengeOf(rejected).params['resource_metadata'],
      `${https}/.well-known/oauth-protected-resource`,
    )
    const direct = await startServer(t)
    const client = await register(direct)
    const asked = await fetch(authorizationUrl(direct, client), { headers: hostile, redirect: 'manual' })
    t.notMatch(asked.headers.get('location'), 'evil')
    const agent = new UserAgent(direct.issuer)
    const landing = await agent.open(authorizationUrl(direct, client), { headers: hostile })
    if (landing.at !== 'page') throw new Error('a page was expected')
    t.notMatch(landing.page.html, 'evil')
  },
)

t.test(
  '[rfc6750-5.3-not-in-clear-cookies] cookies are sent over https only and contain no token',
  async (t) => {
    const fields = { redirect_uris: ['http://127.0.0.1:51004/callback'] }
    const registered = await fetch(`${proxied.origin}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    })
    const client = {
      id: String((await json(registered))['client_id']),
      method: 'none',
      redirectUri: String(fields.redirect_uris[0]),
    }
    const local = { ...proxied, issuer: proxied.origin }
    const cookies: string[] = []
    const agent = new (class extends UserAgent {
      override async send(url: string, init?: RequestInit): Promise<Response> {
        const response = await super.send(url, init)
        cookies.push(...response.headers.getSetCookie())
        return response
      }
    })(proxied.origin)
    const {
      access_token: access,
      refresh_token: token,
      id_token: idToken,
    } = await obtainTokens(local, client, { agent })
    t.ok(cookies.length >= 2)
    for (const cookie of cookies) {
      t.match(cookie, /^__Host-lychgate_[a-z]+_[\w-]{10}=/)
      for (const attribute of ['Secure', 'HttpOnly', 'SameSite=Lax', 'Path=/']) t.match(cookie, attribute)
      for (const issued of [access, token, idToken]) t.notOk(cookie.includes(issued))
    }
  },
)

t.test(
  '[rfc8414-3-path-insertion] [rfc8414-5-openid-configuration-inserted] [oidc-disc-4-path-appended] [rfc9728-3-path-insertion] an issuer with a path has its documents at the inserted and at the appended paths',
  async (t) => {
    const tenant = await startServer(t, { issuerPath: '/t' })
    for (const [name, insertedClause, appendedClause] of [
      ['oauth-authorization-server', '[rfc8414-3-path-insertion]', 'appended'],
      ['openid-configuration', '[rfc8414-5-openid-configuration-inserted]', '[oidc-disc-4-path-appended]'],
      ['oauth-protected-resource', '[rfc9728-3-path-insertion]', 'appended'],
    ] as const) {
      const inserted = await known(tenant, `${name}/t`)
      const appended = await fetch(`${tenant.issuer}/.well-known/${name}`)
      t.equal(inserted.status, 200, insertedClause)
      t.equal(appended.status, 200, appendedClause)
      const body = await json(inserted)
      t.strictSame(await json(appended), body)
      t.equal(body['issuer'] ?? body['resource'], tenant.issuer)
      t.equal((await known(tenant, name)).status, 404, `${name} without the path is another issuer's`)
    }
    const rejected = await callApi(tenant, '/api/courses', 'garbage')
    t.equal(
      challengeOf(rejected).params['resource_metadata'],
      `${tenant.origin}/.well-known/oauth-protected-resource/t`,
    )
  },
)

for (const issuerPath of ['', '/t', '/a/b']) {
  t.test(
    `[service-5-flow-end-to-end] [oidc-core-15.2-dynamic-discovery-registration] [rfc9207-2.3-identical-to-metadata] [oidc-disc-3-issuer] a client that knows only discovery runs all seven steps, issuer path '${issuerPath}'`,
    async (t) => {
      const server = await startServer(t, { issuerPath })
      const resource = await json(
        await fetch(`${server.origin}/.well-known/oauth-protected-resource${issuerPath}`),
      )
      const issuer = String((resource['authorization_servers'] as string[])[0])
      const metadata = await json(await fetch(`${issuer}/.well-known/openid-configuration`))
      const inserted = `${server.origin}/.well-known/oauth-authorization-server${issuerPath}`
      t.equal((await json(await fetch(inserted)))['issuer'], metadata['issuer'], '[oidc-disc-3-issuer]')
      const endpoint = (name: string) => String(metadata[name])
      const redirectUri = 'http://127.0.0.1:53001/callback'
      const headers = { 'content-type': 'application/json' }
      const registered = await fetch(endpoint('registration_endpoint'), {
        method: 'POST',
        headers,
        body: JSON.stringify({ client_name: 'Walker', redirect_uris: [redirectUri] }),
      })
      t.equal(registered.status, 201, '[oidc-core-15.2-dynamic-discovery-registration]')
      const clientId = String((await json(registered))['client_id'])
      const query = new URLSearchParams({
        response_type: 'code',
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: 'openid profile courses:read',
        state: 'xyz',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
      })
      const agent = new UserAgent(server.origin)
      const landing = await agent.open(`${endpoint('authorization_endpoint')}?${query}`)
      const { searchParams } = await signInAndApprove(agent, landing)
      t.equal(searchParams.get('state'), 'xyz')
      t.equal(searchParams.get('iss'), metadata['issuer'], '[rfc9207-2.3-identical-to-metadata] response')
      const send = (name: string, fields: Record<string, string>) =>
        fetch(endpoint(name), {
          method: 'POST',
          body: new URLSearchParams({ client_id: clientId, ...fields }),
        })
      const exchanged = await send('token_endpoint', {
        grant_type: 'authorization_code',
        code: String(searchParams.get('code')),
        redirect_uri: redirectUri,
        code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
      })
      const tokens = (await exchanged.json()) as Tokens
      const keys = createRemoteJWKSet(new URL(endpoint('jwks_uri')))
      const { payload } = await jwtVerify(tokens.id_token, keys, { issuer, audience: clientId })
      t.equal(payload.iss, metadata['issuer'], '[rfc9207-2.3-identical-to-metadata] ID Token')
      const call = (token: string) =>
        fetch(`${resource['resource']}/api/courses`, { headers: { authorization: `Bearer ${token}` } })
      const { caller, sub } = await json(await call(tokens.access_token))
      t.strictSame([caller, sub], ['user', payload.sub])
      const user = await fetch(endpoint('userinfo_endpoint'), {
        headers: { authorization: `Bearer ${tokens.access_token}` },
      })
      t.match(await json(user), { sub: payload.sub, preferred_username: 'alice' })
      const refreshed = await send('token_endpoint', {
        grant_type: 'refresh_token',
        refresh_token: tokens.refresh_token,
      })
      const later = (await refreshed.json()) as Tokens
      t.equal((await call(later.access_token)).status, 200)
      t.equal((await send('revocation_endpoint', { token: later.refresh_token })).status, 200)
      t.equal((await call(later.access_token)).status, 401, '[service-5-flow-end-to-end] the last step')
    },
  )
}
