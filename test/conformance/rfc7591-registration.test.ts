import t from 'tap'
import { catalogueOf } from '../../src/feature/service.ts'
import { declared } from '../../src/features.ts'
import { exchange, obtainCode, refresh as refreshAs } from '../helpers/flow.ts'
import { ask, assertNotSentAway, assertRejected, loopback, registrationAt } from '../helpers/registration.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t)
const { issuer, deps } = server
const agent = new UserAgent(issuer)
const { endpoint, post, register, configure, authorize, tokenError, firstPage } = registrationAt(issuer)

t.test(
  '[rfc7591-2-auth-method-default] an omitted method is none, in the response and at the token endpoint',
  async (t) => {
    const client = await register()
    t.equal(client['token_endpoint_auth_method'], 'none')
    t.notOk('client_secret' in client)
    const { client_id } = client
    t.equal(await tokenError({ client_id }), 'invalid_grant', 'it need not authenticate')
    t.equal(await tokenError({ client_id, client_secret: 'made up' }), 'invalid_client')
    t.equal(await tokenError({}, [client_id, 'made up']), 'invalid_client', 'nor can it by Basic')
  },
)

t.test(
  '[rfc7591-2-grant-types-default] omitted grant types include refresh_token, and the response says so',
  async (t) => {
    const both = await register()
    t.strictSame(both['grant_types'], ['authorization_code', 'refresh_token'])
    const codeOnly = await register({ grant_types: ['authorization_code'] })
    t.strictSame(codeOnly['grant_types'], ['authorization_code'])
    const tokensOf = async (clientId: unknown) => {
      const client = { id: String(clientId), method: 'none', redirectUri: loopback }
      const code = await obtainCode(server, client, { agent })
      const tokens = await json(await exchange(server, client, code))
      return { tokens, again: await refreshAs(server, client, String(tokens['refresh_token'])) }
    }
    const { tokens, again } = await tokensOf(both['client_id'])
    t.type(tokens['access_token'], 'string')
    t.equal(again.status, 200)
    const once = await tokensOf(codeOnly['client_id'])
    t.type(once.tokens['access_token'], 'string')
    t.notOk('refresh_token' in once.tokens)
    t.equal(once.again.status, 400)
    t.equal((await json(once.again))['error'], 'unauthorized_client')
  },
)

t.test('[rfc7591-2-response-types-default] an omitted response type is code', async (t) => {
  t.strictSame((await register())['response_types'], ['code'])
})

t.test('[rfc7591-2-unknown-metadata-ignored] unknown members are ignored and not echoed', async (t) => {
  const client = await register({
    foo: 'of-foo',
    backchannel_logout_uri: 'https://x.example/',
    nested: { a: [1] },
  })
  const { body: stored } = await configure(client, 'GET')
  t.equal(stored['client_id'], client['client_id'])
  const record = JSON.stringify(await deps.store.find('client', String(client['client_id'])))
  t.match(record, 'redirectUris', 'the record of the client')
  t.notMatch(record, /of-foo|x\.example|nested/)
  for (const name of ['foo', 'backchannel_logout_uri', 'nested']) {
    t.notOk(name in client, name)
    t.notOk(name in stored, name)
  }
})

t.test('[rfc7591-2.3-software-statement-precedence] a software statement has no effect', async (t) => {
  const trusted = { client_name: 'Trusted', client_uri: 'https://trusted.example/', scope: 'openid' }
  const payload = btoa(JSON.stringify(trusted)).replaceAll('=', '')
  const client = await register({ client_name: 'Own', software_statement: `e30.${payload}.c2ln` })
  t.equal(client['client_name'], 'Own')
  t.notOk('client_uri' in client)
  t.equal(client['scope'], (await register())['scope'])
  t.notOk('software_statement' in client)
})

t.test('[rfc7591-2-jwks-exclusive] jwks together with jwks_uri is rejected', async (t) => {
  const [jwks, jwksUri] = [{ keys: [] }, 'https://app.example/jwks']
  const response = await post({ redirect_uris: [loopback], jwks, jwks_uri: jwksUri })
  assertRejected(t, response, 'invalid_client_metadata', 'both')
  for (const one of [{ jwks }, { jwks_uri: jwksUri }]) t.type((await register(one))['client_id'], 'string')
})

t.test('[rfc7591-2-scope-string] scope limits what a client may request', async (t) => {
  const client = await register({ scope: 'openid courses:read' })
  t.equal(client['scope'], 'openid courses:read')
  const wider = await authorize(client['client_id'], { scope: 'openid courses:write' })
  t.match(wider.headers.get('location'), /[?&]error=invalid_scope(&|$)/)
  const within = await authorize(client['client_id'], { scope: 'courses:read' })
  t.equal(within.status, 303)
  t.match(within.headers.get('location'), /^\/login\?interaction=/, 'the user is asked')
  const unlimited = await register()
  t.equal(
    unlimited['scope'],
    catalogueOf(deps.config, declared.scopes)
      .map(({ name }) => name)
      .join(' '),
  )
  for (const scope of [['openid'], 5, 'open"id']) {
    assertRejected(
      t,
      await post({ redirect_uris: [loopback], scope }),
      'invalid_client_metadata',
      String(scope),
    )
  }
})

t.test(
  '[rfc7591-3.2.1-all-metadata-returned] scope of the response leaves out unknown scopes, and the log says which',
  async (t) => {
    const logged = () =>
      server.log.map((line) => JSON.parse(line)).filter(({ dropped }) => dropped !== undefined)
    const before = logged().length
    await register({ scope: 'openid courses:read' })
    await register()
    t.equal(logged().length, before, 'nothing was left out')
    const client = await register({ scope: 'openid made:up courses:read other' })
    t.equal(client['scope'], 'openid courses:read')
    t.match(logged().at(-1), { level: 30, client: client['client_id'], dropped: ['made:up', 'other'] })
    const update = { client_id: client['client_id'], redirect_uris: [loopback], scope: 'openid later' }
    t.equal((await configure(client, 'PUT', update)).body['scope'], 'openid')
    t.match(logged().at(-1), { client: client['client_id'], dropped: ['later'] })
    const many = Array.from({ length: 200 }, (_, at) => `unknown:${at}`).join(' ')
    await register({ scope: `openid ${many} ${'x'.repeat(2000)}` })
    const { dropped } = logged().at(-1) ?? {}
    t.ok(JSON.stringify(dropped).length < 600, 'bounded')
    t.match(dropped.at(-1), /^… and \d+ more$/)
    t.equal(logged().length, before + 3, 'one line for each')
  },
)

t.test('[rfc7591-2-uri-members-valid] URI members are absolute http or https', async (t) => {
  for (const name of ['client_uri', 'logo_uri', 'tos_uri', 'policy_uri', 'jwks_uri']) {
    for (const uri of ['javascript:alert(1)', 'data:text/html,x', '/relative', 'ftp://x.example/', 5]) {
      const response = await post({ redirect_uris: [loopback], [name]: uri })
      assertRejected(t, response, 'invalid_client_metadata', `${name} ${uri}`)
    }
  }
})

t.test(
  '[rfc7591-2.1-grant-response-consistency] grant types that do not go with code are rejected',
  async (t) => {
    for (const metadata of [
      { grant_types: ['refresh_token'], response_types: ['code'] },
      { grant_types: ['refresh_token'] },
      { grant_types: ['implicit'], response_types: ['token'] },
      { grant_types: ['authorization_code'], response_types: ['code', 'token'] },
      { grant_types: ['client_credentials'] },
      { grant_types: ['authorization_code', 'password'] },
    ]) {
      const response = await post({ redirect_uris: [loopback], ...metadata })
      assertRejected(t, response, 'invalid_client_metadata', JSON.stringify(metadata))
    }
  },
)

t.test('[service-2-reg-client-name] a name keeps the joiners that its script or emoji needs', async (t) => {
  for (const name of [
    'کتاب\u200cخانه',
    'क्\u200dष',
    'ශ්\u200dරී',
    'র\u200d্যাব',
    '👨🏽\u200d👩\u200d👧 Family',
    '❤️\u200d🔥',
  ]) {
    const client = await register({ client_name: name, 'client_name#fa': name })
    t.equal(client['client_name'], name)
    t.equal(client['client_name#fa'], name)
    t.match(await firstPage(client['client_id']), name, 'the sign-in page shows it')
  }
})

t.test(
  '[rfc7591-2.2-language-tags] names in other languages are stored, and the untagged one is shown',
  async (t) => {
    const client = await register({ client_name: 'The Name', 'client_name#fr': 'Le Nom' })
    t.equal(client['client_name'], 'The Name')
    t.equal(client['client_name#fr'], 'Le Nom')
    const page = await firstPage(client['client_id'])
    t.match(page, 'The Name')
    t.notMatch(page, 'Le Nom')
  },
)

t.test('[rfc7591-3-post-json] only POST of a JSON object registers', async (t) => {
  t.equal((await post({ redirect_uris: [loopback] })).status, 201)
  t.equal(
    (await post({ redirect_uris: [loopback] }, { 'content-type': 'application/json; charset=UTF-8' })).status,
    201,
  )
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const { status, body } = await ask(endpoint, { method })
    t.equal(status, 405, method)
    t.equal(body['error'], 'invalid_request', method)
  }
  const nested = `${'['.repeat(5000)}${']'.repeat(5000)}`
  const bodies = [
    '[]',
    `[{"redirect_uris":["${loopback}"]}]`,
    '{"redirect_uris":',
    '',
    'null',
    '"x"',
    '5',
    nested,
  ]
  bodies.push(`{"redirect_uris":["${loopback}"],"x":${nested}}`)
  for (const body of bodies) {
    assertRejected(t, await post(body), 'invalid_client_metadata', body.slice(0, 40))
  }
})

t.test('a body of 60 kilobytes is accepted, one over the limit is not', async (t) => {
  t.equal((await post({ redirect_uris: [loopback], x: 'x'.repeat(60_000) })).status, 201)
  const response = await post({ redirect_uris: [loopback], x: 'x'.repeat(70_000) })
  t.match(response, { status: 413, body: { error: 'invalid_client_metadata' } })
  t.match(response.body['error_description'], 'more than 65536 bytes (limits.registrationBodyBytes)')
})

t.test('[rfc7591-3.2.1-created-201] success is 201 with a JSON object that is not cached', async (t) => {
  const { status, headers, body } = await post({ redirect_uris: [loopback] })
  t.equal(status, 201)
  t.match(headers.get('content-type'), /^application\/json/)
  t.type(body, Object)
  t.equal(headers.get('cache-control'), 'no-store')
  t.equal(headers.get('pragma'), 'no-cache')
})

t.test('[rfc7591-3.2.1-client-id-server-chosen] a client_id in the request is ignored', async (t) => {
  const existing = await register({ client_name: 'The first' })
  for (const asked of ['admin', existing['client_id']]) {
    const client = await register({ client_id: asked, client_name: 'The second' })
    t.not(client['client_id'], asked)
    t.match(client['client_id'], /^client_[\w-]{22}$/)
  }
  assertNotSentAway(t, await authorize('admin'), 'admin is no client')
  t.equal((await configure(existing, 'GET')).body['client_name'], 'The first')
})

t.test('[rfc9700-2.6-client-id-not-chosen] a client cannot take the identifier of a user', async (t) => {
  const user = await deps.store.find('userByLogin', alice.username)
  t.match(user?.id, /^user_[\w-]{22}$/)
  const client = await register({ client_id: user?.id, sub: user?.id })
  t.match(client['client_id'], /^client_[\w-]{22}$/)
  const own = { id: String(client['client_id']), method: 'none', redirectUri: loopback }
  const { access_token: token } = await json(
    await exchange(server, own, await obtainCode(server, own, { agent })),
  )
  const userinfo = await ask(`${issuer}/api/oauth/userinfo`, {
    headers: { authorization: `Bearer ${token}` },
  })
  t.equal(userinfo.body['sub'], user?.id, 'the subject is the user')
})

t.test('[rfc7591-3.2.1-secret-expires-at] client_secret_expires_at accompanies a secret', async (t) => {
  const confidential = await register({ token_endpoint_auth_method: 'client_secret_post' })
  t.equal(confidential['client_secret_expires_at'], 0)
  t.notOk('client_secret_expires_at' in (await register()))
})

t.test('[rfc7591-3.2.1-issued-at-number] client_id_issued_at is the time in seconds', async (t) => {
  const issuedAt = (await register())['client_id_issued_at']
  t.ok(typeof issuedAt === 'number' && Number.isInteger(issuedAt))
  t.ok(Math.abs(Number(issuedAt) - Date.now() / 1000) < 60)
})

t.test('[rfc7591-3.2.1-all-metadata-returned] the response has everything that is registered', async (t) => {
  const sent = {
    redirect_uris: ['http://127.0.0.1:7777/cb', 'http://[::1]/cb'],
    client_name: 'All of it',
    client_uri: 'https://app.example/',
    logo_uri: 'https://app.example/logo.png',
    tos_uri: 'https://app.example/tos',
    policy_uri: 'https://app.example/policy',
    contacts: ['dev@app.example'],
    software_id: '4f6e',
    software_version: '1.0',
    scope: 'openid courses:read',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_post',
    application_type: 'native',
    id_token_signed_response_alg: 'ES256',
    subject_type: 'public',
    default_max_age: 3600,
    default_acr_values: ['phr', 'https://refeds.org/profile/mfa'],
    require_auth_time: true,
    post_logout_redirect_uris: ['http://127.0.0.1:7777/out'],
  }
  const {
    client_id: _id,
    client_id_issued_at: _at,
    client_secret: secret,
    client_secret_expires_at: _expiry,
    registration_client_uri: _uri,
    registration_access_token: _token,
    ...registered
  } = await register(sent)
  t.strictSame(registered, sent)
  const unknown = await register({ default_acr_values: ['urn:example:gold', 'phr', 'phr'] })
  t.strictSame(unknown['default_acr_values'], ['phr'], 'what no sign-in here can have is left out')
  t.type(secret, 'string')
  const {
    client_id: _otherId,
    client_id_issued_at: _otherAt,
    registration_client_uri: _otherUri,
    registration_access_token: _otherToken,
    ...defaults
  } = await register()
  t.strictSame(defaults, {
    redirect_uris: [loopback],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    id_token_signed_response_alg: 'RS256',
    require_auth_time: false,
    subject_type: 'public',
    scope: catalogueOf(deps.config, declared.scopes)
      .map(({ name }) => name)
      .join(' '),
  })
})

t.test(
  '[rfc7591-3.2.2-error-400-json] [rfc7591-3.2.2-invalid-client-metadata] any other bad member is invalid_client_metadata, and no client is registered',
  async (t) => {
    const before = (await deps.store.list('client')).length
    for (const metadata of [
      { grant_types: 'x' },
      { client_name: 5 },
      { application_type: 'foo' },
      { contacts: 'me' },
      { client_name: 'a\u202eb' },
      { client_name: 'a\u0000b' },
      { default_max_age: '10' },
      { default_acr_values: 'phr' },
      { require_auth_time: 'yes' },
      { response_types: 'code' },
      { jwks: [] },
      { post_logout_redirect_uris: ['https://app.example/'] },
    ]) {
      const response = await post({ redirect_uris: [loopback], ...metadata })
      const about = `[rfc7591-3.2.2-invalid-client-metadata] ${JSON.stringify(metadata)}`
      assertRejected(t, response, 'invalid_client_metadata', about)
    }
    const joined = [
      'pay\u200dpal',
      'pay\u200cpal',
      '\u200cکتاب',
      'کتاب\u200c',
      'کتاب\u200c\u200cخانه',
      'क्\u200d',
    ]
    for (const name of [
      ...joined,
      '👨\u200d',
      '👨\u200d\u200d👧',
      '1\u200d2',
      'p\u200bp',
      'کتاب\u202eخانه',
    ]) {
      const response = await post({ redirect_uris: [loopback], client_name: name })
      const about = `[rfc7591-3.2.2-invalid-client-metadata] ${escape(name)}`
      assertRejected(t, response, 'invalid_client_metadata', about)
    }
    const none = await post({ client_name: 'x' })
    assertRejected(t, none, 'invalid_redirect_uri', '[rfc7591-3.2.2-error-400-json] no redirect URI')
    t.equal((await deps.store.list('client')).length, before)
  },
)
