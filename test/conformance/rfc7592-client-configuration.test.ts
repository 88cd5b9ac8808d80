import t from 'tap'
import { hashSecret } from '../../src/domain/secret.ts'
import { catalogueOf } from '../../src/feature/service.ts'
import { declared } from '../../src/features.ts'
import { integrate } from '../helpers/authorization.ts'
import { exchange, obtainCode, obtainTokens, refresh } from '../helpers/flow.ts'
import { ask, assertNotSentAway, assertRejected, loopback, registrationAt } from '../helpers/registration.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { isAlive, json } from '../helpers/wire.ts'

const server = await startServer(t)
const { issuer, advance, deps } = server
const { endpoint, register, configure, authorize, mayAuthorize, tokenError } = registrationAt(issuer)

t.test(
  '[oidc-reg-3.2-management-pair] [rfc7592-3-response-members] both management members are in every response',
  async (t) => {
    const client = await register()
    t.equal(client['registration_client_uri'], `${endpoint}/${client['client_id']}`)
    t.type(client['registration_access_token'], 'string', '[oidc-reg-3.2-management-pair] both')
    const read = await configure(client, 'GET')
    const update = { client_id: client['client_id'], redirect_uris: [loopback] }
    const updated = await configure(client, 'PUT', update)
    for (const { status, body } of [read, updated]) {
      t.equal(status, 200)
      t.equal(body['registration_client_uri'], client['registration_client_uri'])
      t.equal(body['registration_access_token'], client['registration_access_token'])
    }
  },
)

t.test('[rfc7592-2-bearer-required] the registration access token is required', async (t) => {
  const client = await register({ client_name: 'Kept' })
  const other = await register()
  const { body: before } = await configure(client, 'GET')
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const body = method === 'PUT' ? { client_id: client['client_id'], redirect_uris: [loopback] } : undefined
    for (const token of ['wrong', other['registration_access_token'], client['client_id']]) {
      const wrong = await configure(client, method, body, token)
      t.equal(wrong.status, 401, `${method} ${token}`)
      t.equal(wrong.body['error'], 'invalid_token')
      t.strictSame(Object.keys(wrong.body).sort(), ['error', 'error_description'])
      t.match(wrong.headers.get('www-authenticate'), /^Bearer error="invalid_token"/)
    }
    for (const authorization of ['', 'Basic YTpi']) {
      const missing = await ask(String(client['registration_client_uri']), {
        method,
        headers: {
          ...(authorization && { authorization }),
          ...(body && { 'content-type': 'application/json' }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      t.equal(missing.status, 401, `${method} ${authorization}`)
      t.match(missing.headers.get('www-authenticate'), /^Bearer /)
      t.notMatch(missing.headers.get('www-authenticate'), 'error=')
    }
  }
  const after = await configure(client, 'GET')
  t.equal(after.status, 200)
  t.strictSame(after.body, before, 'the client is untouched')
})

t.test('[rfc7592-2-unsupported-method] another method is 405', async (t) => {
  const client = await register()
  for (const method of ['PATCH', 'POST']) {
    const { status, headers, body } = await configure(client, method, {})
    t.equal(status, 405, method)
    t.strictSame(headers.get('allow')?.split(', '), ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT'])
    t.equal(body['error'], 'invalid_request')
  }
  t.equal((await configure(client, 'GET')).status, 200)
})

t.test('[rfc7592-2.1-read-ok] [rfc7592-3-all-metadata] reading gives what was registered', async (t) => {
  const sent = {
    redirect_uris: ['http://127.0.0.1:7777/cb', 'http://[::1]/cb'],
    client_name: 'Reader',
    'client_name#fr': 'Lecteur',
    client_uri: 'https://app.example/',
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['authorization_code'],
    scope: 'openid',
    contacts: ['a@b.example'],
    default_max_age: 60,
    id_token_signed_response_alg: 'ES256',
  }
  const client = await register(sent)
  const { status, headers, body } = await configure(client, 'GET')
  t.equal(status, 200)
  t.match(headers.get('content-type'), /^application\/json/)
  t.equal(headers.get('cache-control'), 'no-store')
  for (const [name, value] of Object.entries(sent)) t.strictSame(body[name], value, name)
  const { client_secret: _secret, ...registered } = client
  t.strictSame(body, registered)
})

t.test(
  '[rfc7592-2.1-client-gone-401] [rfc7592-2.3-delete-204] a deleted client no longer exists',
  async (t) => {
    const client = await register({ token_endpoint_auth_method: 'client_secret_post' })
    const { client_id, client_secret } = client
    t.equal(await tokenError({ client_id, client_secret }), 'invalid_grant')
    const deleted = await configure(client, 'DELETE')
    t.equal(deleted.status, 204)
    t.equal(deleted.body['text'], '')
    for (const method of ['GET', 'DELETE']) {
      const { status, body } = await configure(client, method)
      t.equal(status, 401, method)
      t.equal(body['error'], 'invalid_token', method)
    }
    assertNotSentAway(t, await authorize(client_id), 'the client is unknown')
    t.equal(await tokenError({ client_id, client_secret }), 'invalid_client')
  },
)

t.test(
  '[rfc7592-2.3-delete-204] [rfc7592-2.3-delete-cascades] deleting a client ends what was granted to it',
  async (t) => {
    const client = await register()
    const own = { id: String(client['client_id']), method: 'none', redirectUri: loopback }
    const agent = new UserAgent(issuer)
    const tokens = await obtainTokens(server, own, { agent })
    const code = await obtainCode(server, own, { agent })
    t.ok(await isAlive(server, tokens.access_token))
    t.equal((await configure(client, 'DELETE')).status, 204)
    t.notOk(await isAlive(server, tokens.access_token))
    for (const response of [
      await refresh(server, own, tokens.refresh_token),
      await exchange(server, own, code),
    ])
      t.equal((await json(response))['error'], 'invalid_client')
  },
)

t.test('a DELETE with a content type and no body is accepted', async (t) => {
  const client = await register()
  const { status } = await ask(String(client['registration_client_uri']), {
    method: 'DELETE',
    headers: {
      authorization: `Bearer ${client['registration_access_token']}`,
      'content-type': 'application/json',
    },
  })
  t.equal(status, 204)
})

t.test('[rfc7592-2.2-put-replaces] an update removes omitted members', async (t) => {
  const client = await register({ client_name: 'Before', scope: 'openid', contacts: ['a@b.example'] })
  const update = {
    client_id: client['client_id'],
    redirect_uris: [loopback],
    tos_uri: 'https://app.example/tos',
  }
  const { status, body } = await configure(client, 'PUT', update)
  t.equal(status, 200)
  for (const response of [body, (await configure(client, 'GET')).body]) {
    t.notOk('client_name' in response)
    t.notOk('contacts' in response)
    t.equal(
      response['scope'],
      catalogueOf(deps.config, declared.scopes)
        .map(({ name }) => name)
        .join(' '),
    )
    t.equal(response['tos_uri'], 'https://app.example/tos')
  }
})

t.test(
  '[rfc7592-2.2-forbidden-members] an update must not contain members that the server assigned',
  async (t) => {
    const client = await register({ client_name: 'Kept' })
    for (const name of [
      'registration_access_token',
      'registration_client_uri',
      'client_secret_expires_at',
      'client_id_issued_at',
    ]) {
      const update = { client_id: client['client_id'], redirect_uris: [loopback], [name]: client[name] ?? 0 }
      assertRejected(t, await configure(client, 'PUT', update), 'invalid_client_metadata', name)
    }
    t.equal((await configure(client, 'GET')).body['client_name'], 'Kept')
  },
)

t.test('[rfc7592-2.2-client-id-must-match] an update must name its own client', async (t) => {
  const client = await register({ client_name: 'Kept' })
  for (const clientId of [undefined, 'other', (await register())['client_id']]) {
    const response = await configure(client, 'PUT', { client_id: clientId, redirect_uris: [loopback] })
    assertRejected(t, response, 'invalid_client_metadata', String(clientId))
  }
  t.equal((await configure(client, 'GET')).body['client_name'], 'Kept')
})

t.test('[rfc7592-2.2-secret-not-overwritten] a client cannot choose its secret', async (t) => {
  const client = await register({ token_endpoint_auth_method: 'client_secret_post' })
  const { client_id, client_secret } = client
  const update = { client_id, redirect_uris: [loopback], client_secret: 'chosen' }
  assertRejected(t, await configure(client, 'PUT', update), 'invalid_client_metadata', 'other secret')
  t.equal(await tokenError({ client_id, client_secret }), 'invalid_grant')
  t.equal(await tokenError({ client_id, client_secret: 'chosen' }), 'invalid_client')
  const same = await configure(client, 'PUT', { client_id, redirect_uris: [loopback], client_secret })
  t.equal(same.status, 200)
  t.equal(same.body['token_endpoint_auth_method'], 'client_secret_post')
  t.equal(await tokenError({ client_id, client_secret }), 'invalid_grant')
})

t.test(
  '[rfc6749-2.1-type-recorded] an update makes no confidential client public and no public one confidential',
  async (t) => {
    const confidential = await register({ token_endpoint_auth_method: 'client_secret_post' })
    const open = await register()
    for (const [client, method] of [
      [confidential, 'none'],
      [open, 'client_secret_post'],
      [open, 'client_secret_basic'],
    ] as const) {
      const update = {
        client_id: client['client_id'],
        redirect_uris: [loopback],
        token_endpoint_auth_method: method,
      }
      assertRejected(t, await configure(client, 'PUT', update), 'invalid_client_metadata', method)
    }
    const { client_id, client_secret } = confidential
    t.equal(await tokenError({ client_id }), 'invalid_client', 'its secret is still asked for')
    t.equal(await tokenError({ client_id, client_secret }), 'invalid_grant')
    t.equal(await tokenError({ client_id: open['client_id'] }), 'invalid_grant')
  },
)

t.test('[rfc7592-2.2-update-ok] new redirect URIs work, old ones do not', async (t) => {
  const client = await register()
  const uri = 'http://127.0.0.1:7777/new'
  const update = { client_id: client['client_id'], redirect_uris: [uri] }
  const { status, body } = await configure(client, 'PUT', update)
  t.equal(status, 200)
  t.strictSame(body['redirect_uris'], [uri])
  t.ok(await mayAuthorize(client['client_id'], uri))
  assertNotSentAway(t, await authorize(client['client_id'], { redirect_uri: loopback }), 'the old one')
  const foreign = { ...update, redirect_uris: ['https://app.example/cb'] }
  assertRejected(t, await configure(client, 'PUT', foreign), 'invalid_redirect_uri', 'https')
  t.ok(await mayAuthorize(client['client_id'], uri))
})

t.test('[rfc7592-5-no-404] an unknown client gets the same error as a wrong token', async (t) => {
  const client = await register()
  const wrong = await configure(client, 'GET', undefined, 'wrong')
  t.equal(wrong.status, 401)
  t.equal(wrong.body['error'], 'invalid_token')
  for (const clientId of ['client_AAAAAAAAAAAAAAAAAAAAAA', 'x', '%00', '%F0%9F%92%A9', "'--"]) {
    const unknown = await ask(`${endpoint}/${clientId}`, {
      headers: { authorization: `Bearer ${client['registration_access_token']}` },
    })
    t.equal(unknown.status, 401, clientId)
    t.strictSame(unknown.body, wrong.body)
    t.equal(unknown.headers.get('www-authenticate'), wrong.headers.get('www-authenticate'))
  }
})

t.test(
  '[rfc7592-5-token-not-expiring] the registration access token is valid as long as the client',
  async (t) => {
    const client = await register()
    const own = { id: String(client['client_id']), method: 'none', redirectUri: loopback }
    for (const month of [1, 2, 3, 4]) {
      advance(29 * 86_400)
      const { status, body } = await configure(client, 'GET')
      t.equal(status, 200, `after ${month} times 29 days`)
      t.equal(body['client_id'], client['client_id'])
      await obtainTokens(server, own)
    }
  },
)

t.test(
  '[rfc7592-5-token-entropy] a registration access token has 256 random bits, and only its hash is stored',
  async (t) => {
    const tokens = new Set<string>()
    for (let count = 0; count < 20; count += 1) {
      const { client_id: id, registration_access_token: token } = await register()
      t.match(token, /^lyc_registration_[\w-]{43}$/)
      tokens.add(String(token))
      const stored = await deps.store.find('client', String(id))
      t.equal(stored?.registrationTokenHash, hashSecret(String(token)))
      t.notOk(JSON.stringify(stored).includes(String(token).slice('lyc_registration_'.length)))
    }
    t.equal(tokens.size, 20)
  },
)

t.test('a client that an operator added cannot be configured with any token', async (t) => {
  const registered = await register()
  const token = 'lyc_registration_of-somebody'
  const portal = await integrate(server, {}, { registrationTokenHash: hashSecret(token) })
  const { client_id } = registered
  const uri = `${endpoint}/${portal.id}`
  for (const bearer of [token, portal.secret, registered['registration_access_token'], client_id]) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const body = method === 'PUT' ? { client_id: portal.id, redirect_uris: [loopback] } : undefined
      const response = await configure({ registration_client_uri: uri }, method, body, bearer)
      t.equal(response.status, 401, `${method} ${bearer}`)
      t.equal(response.body['error'], 'invalid_token')
      t.match(response.headers.get('www-authenticate'), /^Bearer error="invalid_token"/)
    }
  }
  t.ok(await mayAuthorize(portal.id, portal.redirectUri), 'it is there, with its own callback')
})

t.test('an update that changes nothing is 200, and writes nothing', async (t) => {
  const client = await register({ client_name: 'Same', client_uri: 'https://app.example/', contacts: ['a'] })
  const id = String(client['client_id'])
  const {
    registration_access_token: _,
    registration_client_uri: __,
    client_id_issued_at: ___,
    // Omitted it means the whole catalogue, now and later.
    scope: ____,
    ...metadata
  } = client
  const events = async () =>
    (await deps.store.audit({ since: 0, clientId: id, limit: 100 })).map(({ name }) => name)
  const stored = await deps.store.find('client', id)
  for (let count = 0; count < 3; count += 1) {
    const { status, body } = await configure(client, 'PUT', metadata)
    t.equal(status, 200)
    t.equal(body['client_name'], 'Same')
  }
  t.strictSame(await events(), ['registration'])
  t.strictSame(await deps.store.find('client', id), stored)
  t.equal((await configure(client, 'PUT', { ...metadata, client_name: 'Other' })).status, 200)
  t.strictSame(await events(), ['registration', 'registration-changed'])
})

t.test('updates, deletions and reads are each limited by network', async (t) => {
  const limited = await startServer(t, {
    rateLimits: 'on',
    requestsPerMinute: { registration: 2, token: 3 },
  })
  const own = registrationAt(limited.issuer)
  const client = await own.register()
  const id = String(client['client_id'])
  const update = (name: string) => ({ client_id: id, redirect_uris: [loopback], client_name: name })
  for (const name of ['One', 'Two']) t.equal((await own.configure(client, 'PUT', update(name))).status, 200)
  const slowed = await own.configure(client, 'PUT', update('Three'))
  t.equal(slowed.status, 429)
  t.equal(slowed.body['error'], 'temporarily_unavailable')
  t.match(slowed.headers.get('retry-after'), /^[1-9]\d?$/)
  t.equal((await limited.deps.store.find('client', id))?.name, 'Two')
  for (let count = 0; count < 3; count += 1) t.equal((await own.configure(client, 'GET')).status, 200)
  t.equal((await own.configure(client, 'GET')).status, 429)
  for (const status of [401, 401, 429])
    t.equal((await own.configure(client, 'DELETE', undefined, 'wrong')).status, status)
  t.ok(await limited.deps.store.find('client', id))
})
