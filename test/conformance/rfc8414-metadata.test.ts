import t, { type Test } from 'tap'
import { grantType as deviceGrantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { tokenExchange } from '../../src/specs/rfc8693-token-exchange/schema.ts'
import { authorize, callApi, exchange, obtainCode, postAs, refresh, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected, type Json, json, startFlow } from '../helpers/wire.ts'

const { server, client, agent } = await startFlow(t)
const { issuer } = server
const authorizationServer = `${issuer}/.well-known/oauth-authorization-server`
const openidConfiguration = `${issuer}/.well-known/openid-configuration`
const metadata = await json(await fetch(authorizationServer))

t.test('[rfc8414-3.3-issuer-identical] the authorization server metadata is public JSON', async (t) => {
  await assertDocument(t, authorizationServer, {
    path: '[service-4-asm-path]',
    json: '[rfc8414-3.2-ok-json]',
    issuer: '[rfc8414-3.3-issuer-identical]',
  })
  t.equal((await fetch(authorizationServer)).status, 200, '[rfc8414-3.1-get] without credentials')
})

t.test('[service-4-oidc-path] the OpenID configuration is public JSON', async (t) => {
  await assertDocument(t, openidConfiguration, {
    path: '[service-4-oidc-path]',
    json: '[oidc-disc-4.2-response]',
    issuer: '[oidc-disc-4.3-issuer-exact]',
  })
})

t.test('[mcp-overview-discovery-either] both documents are offered, and agree', async (t) => {
  const documents = await Promise.all([authorizationServer, openidConfiguration].map((url) => fetch(url)))
  for (const response of documents) {
    t.equal(response.status, 200, '[mcp-overview-discovery-either]')
    t.strictSame(await json(response), metadata, '[rfc9068-4-consistent-metadata]')
  }
})

/** The endpoints of the service specification: member, path, method, and the clauses that require them. */
const endpoints: readonly (readonly [string, string, string, ...string[]])[] = [
  ['authorization_endpoint', '/oauth/authorize', 'GET', '[rfc8414-2-authorization-endpoint]'],
  ['token_endpoint', '/api/oauth/token', 'POST', '[rfc8414-2-token-endpoint]'],
  [
    'registration_endpoint',
    '/api/oauth/register',
    'POST',
    '[service-4-asm-registration-endpoint]',
    '[oidc-disc-3-registration-endpoint]',
  ],
  ['userinfo_endpoint', '/api/oauth/userinfo', 'GET', '[oidc-disc-3-userinfo-endpoint]'],
  ['revocation_endpoint', '/api/oauth/revoke', 'POST', '[rfc8414-2-revocation-endpoint]'],
  ['introspection_endpoint', '/api/oauth/introspect', 'POST', '[rfc8414-2-introspection-endpoint]'],
  ['pushed_authorization_request_endpoint', '/api/oauth/par', 'POST', '[service-4-asm-complete]'],
  ['device_authorization_endpoint', '/oauth/device_authorization', 'POST', '[service-4-asm-complete]'],
  ['jwks_uri', '/api/oauth/jwks', 'GET', '[service-4-asm-complete]'],
  ['end_session_endpoint', '/oauth/logout', 'GET', '[service-4-asm-complete]'],
]
for (const [name, path, method, ...clauses] of endpoints) {
  const title = `${clauses.join(' ')} ${name} is at the path of the service specification, and responds`
  t.test(title, async (t) => {
    const url = String(metadata[name])
    for (const clause of clauses) t.equal(url, issuer + path, clause)
    const { status } = await fetch(url, { method, redirect: 'manual' })
    t.ok(status < 500 && status !== 404 && status !== 405, `${name} ${status}`)
  })
}

t.test('[service-4-asm-complete] no other endpoint is advertised', async (t) => {
  const advertised = Object.keys(metadata).filter((name) => /_endpoint$|_uri$/.test(name))
  t.strictSame(advertised.sort(), endpoints.map(([name]) => name).sort())
  t.equal(
    new URL(String(metadata['authorization_endpoint'])).hash,
    '',
    '[rfc6749-3.1-no-fragment-endpoint] no fragment',
  )
  for (const name of advertised) t.equal(new URL(String(metadata[name])).hash, '', name)
})

const methods = ['none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt']
/** The values that both documents list: member, value, the clause of RFC 8414 or its profile, that of OpenID. */
const choices: readonly (readonly [string, unknown, string, string?])[] = [
  ['response_types_supported', ['code'], '[rfc8414-2-response-types]', '[oidc-disc-3-response-types]'],
  [
    'response_modes_supported',
    ['query', 'form_post', 'query.jwt', 'form_post.jwt', 'jwt'],
    '[rfc8414-2-response-modes-default]',
  ],
  [
    'grant_types_supported',
    ['authorization_code', 'refresh_token', 'client_credentials', deviceGrantType, tokenExchange],
    '[rfc8414-2-grant-types-default]',
    '[oidc-disc-3-grant-types]',
  ],
  [
    'code_challenge_methods_supported',
    ['S256'],
    '[rfc8414-2-code-challenge-methods]',
    '[mcp-discovery-pkce-in-oidc-document]',
  ],
  [
    'token_endpoint_auth_methods_supported',
    methods,
    '[rfc8414-2-auth-methods-default]',
    '[oidc-disc-3-auth-methods]',
  ],
  ['revocation_endpoint_auth_methods_supported', methods, '[rfc8414-2-revocation-endpoint]'],
  ['introspection_endpoint_auth_methods_supported', methods, '[rfc8414-2-introspection-endpoint]'],
  ['subject_types_supported', ['public'], '[service-4-asm-complete]', '[oidc-disc-3-subject-types]'],
  [
    'id_token_signing_alg_values_supported',
    ['RS256', 'ES256', 'EdDSA'],
    '[service-4-asm-complete]',
    '[oidc-disc-3-id-token-algs]',
  ],
  ['authorization_response_iss_parameter_supported', true, '[rfc9207-2.3-flag]'],
]
for (const [name, value, clause, ofOpenId = clause] of choices) {
  t.test(`${clause} ${name} lists what the server supports`, async (t) => {
    t.strictSame(metadata[name], value, clause)
    const oidc = await json(await fetch(openidConfiguration))
    t.strictSame(oidc[name], value, ofOpenId)
  })
}

t.test('[service-5-pkce-s256-only] S256 is the only code challenge method', async (t) => {
  t.strictSame(metadata['code_challenge_methods_supported'], ['S256'])
})

t.test(
  '[service-5-scope-table] scopes_supported is the table of the service specification, and what features add',
  async (t) => {
    const listed = metadata['scopes_supported'] as string[]
    t.strictSame([...listed].sort(), [...specifiedScopes(), 'offline_access', 'groups'].sort())
    t.strictSame(
      ['openid', 'profile', 'email'].filter((scope) => !listed.includes(scope)),
      [],
      '[oidc-disc-3-scopes-openid] openid, profile and email are listed',
    )
  },
)

t.test('[service-4-asm-complete] no list is empty', async (t) => {
  const lists = Object.entries(metadata).filter(([name]) => name.endsWith('_supported'))
  for (const [name, list] of lists) if (typeof list !== 'boolean') t.ok(isList(list), name)
})

t.test(
  '[rfc8414-2-auth-methods-default] [rfc8414-2-revocation-endpoint] [rfc8414-2-introspection-endpoint] each listed authentication method and grant type works where it is listed',
  async (t) => {
    // Assertions have tests of their own, for clients that an operator added.
    const listed = metadata['token_endpoint_auth_methods_supported'] as string[]
    for (const method of listed.filter((name) => name !== 'private_key_jwt')) {
      const own = await register(server, { token_endpoint_auth_method: method })
      t.equal(own.method, method)
      const response = await exchange(server, own, await obtainCode(server, own, { agent }))
      t.equal(response.status, 200, `[rfc8414-2-auth-methods-default] ${method}`)
      const first = await json(response)
      t.equal((await refresh(server, own, String(first['refresh_token']))).status, 200, method)
      const token = String(first['access_token'])
      const described = await postAs(server, own, '/api/oauth/introspect', { token })
      t.match(await json(described), { active: true }, `[rfc8414-2-introspection-endpoint] ${method}`)
      const revoked = await postAs(server, own, '/api/oauth/revoke', { token })
      t.equal(revoked.status, 200, `[rfc8414-2-revocation-endpoint] ${method}`)
    }
  },
)

t.test(
  '[service-5-no-agent-auth] the metadata advertises no authentication of agents, and there is none',
  async (t) => {
    for (const document of [
      metadata,
      await json(await fetch(`${issuer}/.well-known/oauth-protected-resource`)),
    ]) {
      for (const name of ['agent_auth', 'identity_endpoint', 'register_uri', 'claim_uri'])
        t.notOk(name in document, `[service-5-no-agent-auth] ${name}`)
    }
    const jwtBearer = {
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: 'eyJhbGciOiJub25lIn0.e30.',
    }
    await assertRejected(
      t,
      await postAs(server, client, '/api/oauth/token', jwtBearer),
      'unsupported_grant_type',
    )
  },
)

t.test(
  '[service-4-asm-cimd-flag] client ID metadata documents that are off are not advertised, and a URL is an unknown client',
  async (t) => {
    const without = await startServer(t, { clientDocuments: { mode: 'off' } })
    const document = await fetch(`${without.issuer}/.well-known/oauth-authorization-server`)
    t.notOk('client_id_metadata_document_supported' in (await json(document)))
    for (const id of ['https://client.example/metadata.json', 'https://claude.ai/oauth/client.json']) {
      const url = { ...client, id }
      const page = await authorize(without, url)
      t.equal(page.status, 400, 'an error page')
      t.equal(page.headers.get('location'), null)
      await assertRejected(t, await exchange(without, url, 'x'), 'invalid_client')
    }
  },
)

t.test(
  '[oidc-disc-3-request-uri-default-true] [oidc-disc-3-request-param] [oidc-disc-3-claims-supported] [oidc-disc-3-optional-lists] flags and claims match the behaviour',
  async (t) => {
    t.equal(metadata['request_uri_parameter_supported'], true, '[oidc-disc-3-request-uri-default-true]')
    t.match(metadata, {
      request_parameter_supported: true,
      claims_parameter_supported: true,
      claim_types_supported: ['normal'],
    })
    for (const [name, code] of [
      ['request', 'invalid_request_object'],
      ['request_uri', 'invalid_request_uri'],
    ] as const) {
      const response = await authorize(server, client, { [name]: 'x' })
      const error = new URL(response.headers.get('location') ?? '').searchParams.get('error')
      t.equal(error, code, `[oidc-disc-3-request-param] ${name}`)
    }
    const claims = metadata['claims_supported'] as string[]
    for (const name of ['sub', 'iss', 'auth_time', 'name', 'email', 'email_verified', 'updated_at']) {
      t.ok(claims.includes(name), name)
    }
    for (const prompt of metadata['prompt_values_supported'] as string[]) {
      const response = await authorize(server, client, { prompt })
      const error = new URL(response.headers.get('location') ?? '', issuer).searchParams.get('error')
      t.equal(error, prompt === 'none' ? 'login_required' : null, prompt)
    }
    for (const name of ['display_values_supported', 'claims_locales_supported']) {
      t.notOk(name in metadata, `${name} is not promised`)
    }
  },
)

t.test(
  '[rfc8414-3.2-no-empty-arrays] [oidc-core-13.3-no-null-members] no response contains an empty list or null',
  async (t) => {
    const responses: Json[] = [
      metadata,
      await json(await fetch(`${issuer}/.well-known/oauth-protected-resource`)),
    ]
    for (const document of responses) {
      for (const [name, value] of Object.entries(document)) {
        const many = Array.isArray(value) || name.endsWith('_supported')
        const isFilled = many ? typeof value === 'boolean' || isList(value) : value !== null
        t.ok(isFilled, `[rfc8414-3.2-no-empty-arrays] ${name}`)
      }
    }
    const code = await obtainCode(server, client, { agent, fields: { scope: 'openid profile email' } })
    const tokens = await json(await exchange(server, client, code))
    const token = String(tokens['access_token'])
    const body = JSON.stringify({ redirect_uris: [client.redirectUri] })
    const headers = { 'content-type': 'application/json' }
    responses.push(
      tokens,
      await json(await callApi(server, '/api/oauth/userinfo', token)),
      await json(await callApi(server, '/api/courses')),
      await json(await postAs(server, client, '/api/oauth/introspect', { token })),
      await json(await fetch(`${issuer}/api/oauth/register`, { method: 'POST', headers, body })),
    )
    for (const response of responses) t.notMatch(JSON.stringify(response), /:null|""/)
  },
)

t.test(
  '[rfc9728-7.10-caching] [oidc-core-10.2.1-jwks-cache] documents may be cached, and are not sent again when unchanged',
  async (t) => {
    const paths = [
      '/.well-known/oauth-authorization-server',
      '/.well-known/openid-configuration',
      '/.well-known/oauth-protected-resource',
      '/api/oauth/jwks',
      '/openapi.json',
    ]
    const { metadataCacheSeconds } = server.deps.config.lifetimes
    for (const path of paths) {
      const response = await fetch(issuer + path)
      t.match(response.headers.get('cache-control'), `max-age=${metadataCacheSeconds}`, path)
      t.equal(response.headers.get('pragma'), null, path)
      const etag = response.headers.get('etag') ?? ''
      t.match(etag, /^"[\w-]{22}"$/, path)
      for (const candidate of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const unchanged = await fetch(issuer + path, { headers: { 'if-none-match': candidate } })
        t.equal(unchanged.status, 304, `${path} ${candidate}`)
        t.equal(unchanged.headers.get('etag'), etag)
        t.match(unchanged.headers.get('cache-control'), 'max-age=')
        t.equal(await unchanged.text(), '')
      }
      const changed = await fetch(issuer + path, { headers: { 'if-none-match': '"other"' } })
      t.equal(changed.status, 200, path)
    }
  },
)

t.test(
  '[service-4-openapi] the API description is OpenAPI and names every advertised endpoint',
  async (t) => {
    const response = await fetch(`${issuer}/openapi.json`)
    t.equal(response.status, 200)
    t.match(response.headers.get('content-type'), /^application\/json/)
    const description = (await json(response)) as { openapi: string; servers: unknown; paths: Json }
    t.match(description.openapi, /^3\.1\./)
    t.strictSame(description.servers, [{ url: issuer }])
    for (const [name, url] of Object.entries(metadata)) {
      if (name.endsWith('_endpoint') && name !== 'end_session_endpoint') {
        t.ok(String(url).slice(issuer.length) in description.paths, name)
      }
    }
  },
)

/** Asserts that a document is public JSON, only by GET and HEAD, at the URL of its issuer. */
async function assertDocument(
  t: Test,
  url: string,
  clauses: { readonly path: string; readonly json: string; readonly issuer: string },
): Promise<void> {
  const response = await fetch(url)
  t.equal(response.status, 200, clauses.path)
  t.match(response.headers.get('content-type'), /^application\/json/, clauses.json)
  const body = await json(response)
  t.equal(body['issuer'], issuer, clauses.issuer)
  t.equal(`${body['issuer']}/.well-known/${url.split('/').at(-1)}`, url, clauses.issuer)
  const head = await fetch(url, { method: 'HEAD' })
  t.equal(head.status, 200, 'HEAD')
  t.equal(head.headers.get('content-length'), response.headers.get('content-length'))
  t.equal(await head.text(), '')
  const posted = await fetch(url, { method: 'POST' })
  t.match(posted.headers.get('allow'), /GET/)
  await assertRejected(t, posted, 'invalid_request', 405)
}

/** The scope table of the service specification. */
function specifiedScopes(): string[] {
  const both = `courses students members curriculum school appearance events membership_plans coupons posts
    subscriptions digital_products lecturers pages account`
  const read = 'analytics orders comments forms'
  const write = 'storage'
  const words = (text: string) => text.split(/\s+/)
  return [
    'openid',
    'profile',
    'email',
    ...words(both).flatMap((area) => [`${area}:read`, `${area}:write`]),
    ...words(read).map((area) => `${area}:read`),
    ...words(write).map((area) => `${area}:write`),
  ].sort()
}

function isList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0
}
