import t from 'tap'
import { callApi, exchange, type Fields, obtainCode, post, refresh, register } from '../helpers/flow.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, introspect, isAlive, json, startFlow } from '../helpers/wire.ts'

const { server, client, agent, tokens } = await startFlow(t)
const code = (fields: Fields = {}) => obtainCode(server, client, { fields, agent })
const path = '/api/oauth/token'

t.test(
  '[rfc6749-5.1-success-shape] [rfc6749-5.1-expires-in-number] [rfc6749-5.1-no-store] [service-4-token-response-tokens] a code gives tokens as JSON that is not cached',
  async (t) => {
    const response = await exchange(server, client, await code())
    t.equal(response.status, 200, '[rfc6749-5.1-success-shape]')
    t.match(response.headers.get('content-type'), /^application\/json/, '[rfc6749-5.1-success-shape]')
    t.equal(response.headers.get('cache-control'), 'no-store', '[rfc6749-5.1-no-store]')
    t.equal(response.headers.get('pragma'), 'no-cache', '[rfc6749-5.1-no-store]')
    const body = await json(response)
    const { access_token: access, refresh_token: token, id_token: idToken, ...rest } = body
    t.strictSame(rest, { token_type: 'Bearer', expires_in: 3600, scope: 'openid' })
    t.equal(rest['expires_in'], 3600, '[rfc6750-5.3-short-lived] an hour')
    t.match(access, /^lyc_access_[\w-]{22,}$/)
    t.match(token, /^lyc_refresh_[\w-]{22,}$/, '[service-4-token-response-tokens]')
    t.match(idToken, /^eyJ/)
    const refreshed = await refresh(server, client, String(token))
    t.equal(refreshed.status, 200)
    const registered = await fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        redirect_uris: [client.redirectUri],
        token_endpoint_auth_method: 'client_secret_post',
      }),
    })
    t.type((await json(registered))['client_secret'], 'string')
    for (const { headers } of [refreshed, registered]) {
      t.equal(headers.get('cache-control'), 'no-store', '[rfc6749-5.1-no-store]')
      t.equal(headers.get('pragma'), 'no-cache', '[rfc6749-5.1-no-store]')
    }
  },
)

t.test(
  '[service-4-token-path-form] [rfc6749-4.1.3-form-utf8] the body is a form with or without a charset, and any other type is rejected',
  async (t) => {
    const redeemable = await code()
    const fields = {
      grant_type: 'authorization_code',
      code: redeemable,
      redirect_uri: client.redirectUri,
      client_id: client.id,
      code_verifier: 'v'.repeat(43),
    }
    const multipart = new FormData()
    for (const [name, value] of Object.entries(fields)) multipart.append(name, value)
    const url = server.issuer + path
    const bodies: [RequestInit, string][] = [
      [{ body: JSON.stringify(fields), headers: { 'content-type': 'application/json' } }, 'JSON'],
      [{ body: multipart }, 'multipart'],
      [{ body: String(new URLSearchParams(fields)), headers: { 'content-type': 'text/plain' } }, 'text'],
    ]
    for (const [init, about] of bodies) {
      const response = await fetch(url, { method: 'POST', ...init })
      await assertRejected(t, response, 'invalid_request', 415, `[service-4-token-path-form] ${about}`)
    }
    const accepted = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' },
      body: String(new URLSearchParams(fields)),
    })
    t.equal(accepted.status, 200, 'the code was not consumed by a rejected request')
    t.match(accepted.headers.get('content-type'), /^application\/json/)
    t.type((await json(accepted))['access_token'], 'string')
  },
)

t.test('[rfc6749-3.2-post-only] other methods are 405 with Allow and issue no tokens', async (t) => {
  const redeemable = await code()
  const query = new URLSearchParams({
    grant_type: 'authorization_code',
    code: redeemable,
    redirect_uri: client.redirectUri,
    client_id: client.id,
    code_verifier: 'v'.repeat(43),
  })
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
    const response = await fetch(`${server.issuer}${path}?${query}`, { method })
    t.match(response.headers.get('allow')?.split(', '), ['OPTIONS', 'POST'], method)
    await assertRejected(t, response, 'invalid_request', 405, method)
  }
  const empty = await fetch(`${server.issuer}${path}?${query}`, { method: 'POST' })
  t.not(empty.status, 200, 'parameters in the query are not read')
  t.equal((await exchange(server, client, redeemable)).status, 200)
})

for (const [clause, name, error] of [
  ['[rfc6749-4.1.3-grant-type-required]', 'grant_type', 'invalid_request'],
  ['[rfc6749-4.1.3-code-required]', 'code', 'invalid_request'],
  ['[rfc6749-4.1.3-redirect-uri-required]', 'redirect_uri', 'invalid_grant'],
  ['[rfc7636-4.5-verifier-required]', 'code_verifier', 'invalid_grant'],
  ['[rfc6749-3.2.1-public-sends-client-id]', 'client_id', 'invalid_request'],
] as const) {
  t.test(`${clause} an exchange without ${name} is ${error}, and the code stays valid`, async (t) => {
    const redeemable = await code()
    for (const value of [undefined, '']) {
      const response = await exchange(server, client, redeemable, { [name]: value })
      await assertRejected(t, response, error, 400, value === '' ? 'empty' : 'absent')
    }
    const { status } = await exchange(server, client, redeemable)
    t.equal(status, 200, '[service-4-token-code-fields] with all five it is redeemed')
  })
}

t.test('[rfc6749-3.2-empty-as-omitted] an empty parameter counts as absent', async (t) => {
  const { refresh_token: token } = await tokens({ scope: 'openid courses:read' })
  const body = await json(
    await refresh(server, client, token, { scope: '', resource: '', client_secret: '' }),
  )
  t.equal(body['scope'], 'openid courses:read')
  await assertRejected(t, await exchange(server, client, ''), 'invalid_request')
})

t.test('[rfc6749-3.2-ignore-unknown] unknown parameters are ignored', async (t) => {
  const response = await exchange(server, client, await code(), { foo: 'bar', audience: 'x' })
  t.equal(response.status, 200)
  const { access_token: token, scope } = await json(response)
  t.ok(await isAlive(server, String(token)))
  t.equal(scope, 'openid')
})

t.test(
  '[rfc6749-3.2-no-duplicates] a repeated parameter is rejected, and the code stays valid',
  async (t) => {
    const redeemable = await code()
    const repeated: Fields = {
      code: [redeemable, redeemable],
      grant_type: ['authorization_code', 'authorization_code'],
      client_id: [client.id, client.id],
      redirect_uri: [client.redirectUri, client.redirectUri],
      code_verifier: ['v'.repeat(43), 'v'.repeat(43)],
      foo: ['a', 'a'],
    }
    for (const [name, value] of Object.entries(repeated)) {
      const response = await exchange(server, client, redeemable, { [name]: value })
      await assertRejected(t, response, 'invalid_request', 400, name)
    }
    t.equal((await exchange(server, client, redeemable)).status, 200)
  },
)

t.test(
  '[rfc6749-5.2-unsupported-grant-type] [rfc9700-2.4-no-password-grant] [service-4-asm-complete] grant types that are not offered are rejected',
  async (t) => {
    const types = [
      'password',
      'implicit',
      'urn:x:y',
      'urn:ietf:params:oauth:grant-type:saml2-bearer',
      'Authorization_Code',
    ]
    for (const type of types) {
      const fields = { grant_type: type, client_id: client.id, username: 'alice', password: 'alice-in-tests' }
      const clause =
        type === 'password' ? '[rfc9700-2.4-no-password-grant]' : '[rfc6749-5.2-unsupported-grant-type]'
      const response = await post(server, path, fields)
      await assertRejected(t, response, 'unsupported_grant_type', 400, `${clause} ${type}`)
    }
    const metadata = await fetch(`${server.issuer}/.well-known/oauth-authorization-server`)
    const { grant_types_supported: offered } = await json(metadata)
    t.strictSame(offered, [
      'authorization_code',
      'refresh_token',
      'client_credentials',
      'urn:ietf:params:oauth:grant-type:device_code',
      'urn:ietf:params:oauth:grant-type:token-exchange',
    ])
  },
)

t.test('[rfc6749-5.2-unauthorized-client] a client uses only the grant types it registered', async (t) => {
  const once = await register(server, { grant_types: ['authorization_code'] })
  const body = await json(await exchange(server, once, await obtainCode(server, once, { agent })))
  t.type(body['access_token'], 'string')
  t.notOk('refresh_token' in body)
  await assertRejected(t, await refresh(server, once, 'lyc_refresh_x'), 'unauthorized_client')
})

t.test(
  '[rfc6749-5.2-status-400] [rfc6749-4.1.3-code-valid] [rfc6749-5.2-error-charset] [service-7-known-error-codes] hostile input is rejected with a JSON error that repeats none of it',
  async (t) => {
    const hostile = [
      'garbage',
      'lyc_code_',
      'lyc_code_AAAA',
      '"\\\n\r\t',
      '<script>',
      'å\u{1F600}',
      '%',
      'x'.repeat(5000),
    ]
    for (const value of hostile) {
      const about = JSON.stringify(value.slice(0, 20))
      const wrongCode = await exchange(server, client, value)
      await assertRejected(t, wrongCode, 'invalid_grant', 400, `[rfc6749-5.2-status-400] code ${about}`)
      const wrongToken = await refresh(server, client, value)
      await assertRejected(
        t,
        wrongToken,
        'invalid_grant',
        400,
        `[service-7-known-error-codes] token ${about}`,
      )
      const wrongClient = await exchange(server, client, 'x', { client_id: value })
      await assertRejected(
        t,
        wrongClient,
        'invalid_client',
        400,
        `[service-7-known-error-codes] client ${about}`,
      )
      const wrongType = await exchange(server, client, 'x', { grant_type: value })
      await assertRejected(t, wrongType, 'unsupported_grant_type', 400, `grant_type ${about}`)
    }
    const { refresh_token: token } = await tokens()
    for (const [fields, error] of [
      [{ scope: '"' }, 'invalid_scope'],
      [{ grant_type: undefined }, 'invalid_request'],
    ] as const) {
      const response = await refresh(server, client, token, fields)
      await assertRejected(t, response, error, 400, `[service-7-known-error-codes] ${error}`)
    }
    t.equal((await refresh(server, client, token)).status, 200)
  },
)

t.test(
  '[rfc6749-4.1.3-form-utf8] a form that is malformed anywhere is rejected, and the code stays valid',
  async (t) => {
    const code = await obtainCode(server, client, { agent })
    const sound = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      client_id: client.id,
      redirect_uri: client.redirectUri,
      code_verifier: 'v'.repeat(43),
    })
    for (const broken of ['x=%', 'x=%zz', 'x=%ff', 'x=%00', '%zz=x', 'x=\u00e9']) {
      const response = await fetch(server.issuer + path, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: `${sound}&${broken}`,
      })
      await assertRejected(t, response, 'invalid_request', 400, broken)
    }
    t.equal((await exchange(server, client, code)).status, 200)
  },
)

t.test('[rfc6749-5.2-error-charset] a request over the limits is rejected', async (t) => {
  const { limits } = server.deps.config
  await assertRejected(
    t,
    await exchange(server, client, 'x'.repeat(limits.parameterBytes + 1)),
    'invalid_request',
  )
  const large = { a: 'x'.repeat(limits.parameterBytes), b: 'x'.repeat(limits.parameterBytes) }
  await assertRejected(t, await exchange(server, client, 'x', large), 'invalid_request', 413)
  const many = Object.fromEntries(Array.from({ length: limits.parameters }, (_, index) => [`p${index}`, 'x']))
  await assertRejected(t, await exchange(server, client, 'x', many), 'invalid_request', 400, 'many')
})

t.test(
  '[rfc6749-3.3-scope-in-response-when-different] the response contains the scope that the user approved',
  async (t) => {
    const own = new UserAgent(server.issuer)
    const fields = { scope: 'openid courses:read courses:write' }
    const narrowed = await obtainCode(server, client, { agent: own, fields, scope: ['courses:read'] })
    const body = await json(await exchange(server, client, narrowed))
    t.equal(body['scope'], 'openid courses:read')
    const token = String(body['access_token'])
    t.equal((await callApi(server, '/api/courses', token)).status, 200)
    t.equal((await callApi(server, '/api/courses', token, { method: 'POST' })).status, 403)
  },
)

t.test(
  '[rfc6750-5.2-lifetime-limited] [rfc6749-5.1-expires-in-number] an access token is valid exactly as long as expires_in says',
  async (t) => {
    const { access_token: token, expires_in: seconds } = await tokens()
    t.type(seconds, 'number')
    server.advance(seconds - 5)
    t.ok(await isAlive(server, token))
    server.advance(5)
    t.notOk(await isAlive(server, token), '[rfc6750-5.2-lifetime-limited]')
    t.strictSame(await introspect(server, client, token), { active: false })
  },
)
