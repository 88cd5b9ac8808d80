import t from 'tap'
import { callApi, exchange, type Fields, obtainCode, post, refresh, register } from '../helpers/flow.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, introspect, isAlive, json, startFlow } from '../helpers/wire.ts'

const { server, client, agent, tokens } = await startFlow(t)
const code = (fields: Fields = {}) => obtainCode(server, client, { fields, agent })
const path = '/api/oauth/token'

t.test(
  '[rfc6749-5.1-success-shape] [rfc6749-5.1-expires-in-number] [rfc6749-5.1-no-store] [service-4-token-response-tokens] [rfc6750-5.3-short-lived] a code gives tokens as JSON that is never cached',
  async (t) => {
    const response = await exchange(server, client, await code())
    t.equal(response.status, 200)
    t.match(response.headers.get('content-type'), /^application\/json/)
    t.equal(response.headers.get('cache-control'), 'no-store')
    t.equal(response.headers.get('pragma'), 'no-cache')
    const body = await json(response)
    const { access_token: access, refresh_token: token, id_token: idToken, ...rest } = body
    t.strictSame(rest, { token_type: 'Bearer', expires_in: 3600, scope: 'openid' })
    t.match(access, /^lyc_access_[\w-]{22,}$/)
    t.match(token, /^lyc_refresh_[\w-]{22,}$/)
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
      t.equal(headers.get('cache-control'), 'no-store')
      t.equal(headers.get('pragma'), 'no-cache')
    }
  },
)

t.test(
  '[service-4-token-path-form] [rfc6749-4.1.3-form-utf8] the body is a form, with or without a charset, and nothing else',
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
      await assertRejected(t, await fetch(url, { method: 'POST', ...init }), 'invalid_request', 415, about)
    }
    const accepted = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' },
      body: String(new URLSearchParams(fields)),
    })
    t.equal(accepted.status, 200, 'the code was not consumed by what was refused')
    t.match(accepted.headers.get('content-type'), /^application\/json/)
    t.type((await json(accepted))['access_token'], 'string')
  },
)

t.test('[rfc6749-3.2-post-only] other methods are 405 with Allow and give no tokens', async (t) => {
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

t.test(
  '[service-4-token-code-fields] [rfc6749-4.1.3-grant-type-required] [rfc6749-4.1.3-code-required] [rfc6749-4.1.3-redirect-uri-required] [rfc7636-4.5-verifier-required] [rfc6749-3.2.1-public-sends-client-id] every field of the exchange is needed, and a refusal leaves the code',
  async (t) => {
    const redeemable = await code()
    const missing = {
      grant_type: 'invalid_request',
      code: 'invalid_request',
      redirect_uri: 'invalid_grant',
      code_verifier: 'invalid_grant',
      client_id: 'invalid_request',
    }
    for (const [name, error] of Object.entries(missing)) {
      for (const value of [undefined, '']) {
        const response = await exchange(server, client, redeemable, { [name]: value })
        await assertRejected(t, response, error, 400, `${name} ${value === '' ? 'empty' : 'absent'}`)
      }
    }
    t.equal((await exchange(server, client, redeemable)).status, 200)
  },
)

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

t.test('[rfc6749-3.2-no-duplicates] a repeated parameter is refused, and the code stays', async (t) => {
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
})

t.test(
  '[rfc6749-5.2-unsupported-grant-type] [rfc9700-2.4-no-password-grant] [service-4-asm-complete] grant types that are not offered are refused',
  async (t) => {
    const types = [
      'password',
      'client_credentials',
      'implicit',
      'urn:x:y',
      'urn:ietf:params:oauth:grant-type:device_code',
      'Authorization_Code',
    ]
    for (const type of types) {
      const fields = { grant_type: type, client_id: client.id, username: 'alice', password: 'alice-in-tests' }
      await assertRejected(t, await post(server, path, fields), 'unsupported_grant_type', 400, type)
    }
    const metadata = await fetch(`${server.issuer}/.well-known/oauth-authorization-server`)
    const { grant_types_supported: offered } = await json(metadata)
    t.strictSame(offered, ['authorization_code', 'refresh_token'])
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
  '[rfc6749-5.2-status-400] [rfc6749-4.1.3-code-valid] [rfc6749-5.2-error-charset] [service-7-known-error-codes] hostile input is refused as JSON with plain words',
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
      await assertRejected(t, await exchange(server, client, value), 'invalid_grant', 400, `code ${about}`)
      await assertRejected(t, await refresh(server, client, value), 'invalid_grant', 400, `token ${about}`)
      const wrongClient = await exchange(server, client, 'x', { client_id: value })
      await assertRejected(t, wrongClient, 'invalid_client', 400, `client ${about}`)
      const wrongType = await exchange(server, client, 'x', { grant_type: value })
      await assertRejected(t, wrongType, 'unsupported_grant_type', 400, `grant_type ${about}`)
    }
    const { refresh_token: token } = await tokens()
    await assertRejected(t, await refresh(server, client, token, { scope: '"' }), 'invalid_scope')
    await assertRejected(
      t,
      await refresh(server, client, token, { grant_type: undefined }),
      'invalid_request',
    )
    t.equal((await refresh(server, client, token)).status, 200)
  },
)

t.test(
  '[rfc6749-4.1.3-form-utf8] a form that is broken anywhere is refused, and the code stays',
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

t.test('[rfc6749-5.2-error-charset] too much of anything is refused', async (t) => {
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
  '[rfc6749-3.3-scope-in-response-when-different] the answer says the scope a person left over',
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
  '[rfc6750-5.2-lifetime-limited] [rfc6749-5.1-expires-in-number] an access token lives exactly as long as expires_in says',
  async (t) => {
    const { access_token: token, expires_in: seconds } = await tokens()
    t.type(seconds, 'number')
    server.advance(seconds - 5)
    t.ok(await isAlive(server, token))
    server.advance(5)
    t.notOk(await isAlive(server, token))
    t.strictSame(await introspect(server, client, token), { active: false })
  },
)
