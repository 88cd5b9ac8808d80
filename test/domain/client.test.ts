import t from 'tap'
import { clientMetadata } from '../../src/clients/describe.ts'
import type { JsonObject } from '../../src/clients/members.ts'
import type { RegistrationPolicy } from '../../src/clients/metadata.ts'
import { readToken } from '../../src/domain/bearer.ts'
import { hashSecret, secretMatches } from '../../src/domain/secret.ts'
import { declared } from '../../src/features.ts'
import {
  assertMayConfigure,
  type FreshRegistration,
  registerClient,
  requireRegistrationToken,
  updateClient,
} from '../../src/specs/rfc7591-registration/rules.ts'
import { seededRandom } from '../helpers/clock.ts'

const now = 1_800_000_000
const catalogue = ['openid', 'profile', 'courses:read', 'courses:write']
const policy: RegistrationPolicy = {
  declared,
  loopbackHosts: [],
  foreignRedirects: 'refuse',
  redirectUris: 5,
  metadataBytes: 8192,
  scopes: catalogue,
  algorithms: ['RS256', 'ES256'],
}
const loopback = ['http://127.0.0.1:7777/cb']
const random = seededRandom('registration')

function fresh(): FreshRegistration {
  return { clientId: random(16), clientSecret: random(32), registrationToken: random(32) }
}

function register(metadata: JsonObject, changes: Partial<RegistrationPolicy> = {}) {
  return registerClient({ redirect_uris: loopback, ...metadata }, { ...policy, ...changes }, fresh(), {
    now,
    from: '192.0.2.0/24',
  })
}

// Line separators in a test title would break the report.
function shown(value: unknown): string {
  return encodeURI(String(JSON.stringify(value)))
}

t.test('[rfc7592-5-token-entropy] a registration with only redirect URIs gets every default', async (t) => {
  const { client, clientSecret, registrationToken } = register({})
  t.match(client.id, /^client_[\w-]{22}$/)
  t.equal(clientSecret, undefined)
  t.match(registrationToken, /^lyc_registration_[\w-]{43}$/)
  t.ok(secretMatches(registrationToken, client.registrationTokenHash))
  t.strictSame(
    { ...client, id: '', registrationTokenHash: '' },
    {
      id: '',
      origin: 'registered',
      issuedAt: now,
      usedAt: now,
      registeredFrom: '192.0.2.0/24',
      localized: {},
      applicationType: 'native',
      redirectUris: loopback,
      postLogoutRedirectUris: [],
      authenticationMethod: 'none',
      grantTypes: ['authorization_code', 'refresh_token'],
      contacts: [],
      idTokenSignedResponseAlg: 'RS256',
      requireAuthTime: false,
      registrationTokenHash: '',
      pkceOptional: false,
      consent: 'always',
      introspects: [],
    },
  )
})

t.test('a confidential client gets a secret that is stored as its hash', async (t) => {
  for (const method of ['client_secret_post', 'client_secret_basic']) {
    const { client, clientSecret = '' } = register({ token_endpoint_auth_method: method })
    t.equal(client.authenticationMethod, method)
    t.match(clientSecret, /^lyc_secret_[\w-]{43}$/)
    t.equal(client.secretHash, hashSecret(clientSecret))
    t.notMatch(JSON.stringify(client), clientSecret)
  }
})

t.test('every supported member is returned as it was sent', async (t) => {
  const sent = {
    redirect_uris: ['http://127.0.0.1:8080/A/b?x=%20', 'http://[::1]/cb'],
    post_logout_redirect_uris: ['http://127.0.0.1:8080/out'],
    token_endpoint_auth_method: 'client_secret_post',
    grant_types: ['authorization_code'],
    response_types: ['code'],
    application_type: 'native',
    client_name: 'Caf\u00e9 \ud83d\ude80',
    'client_name#fr': 'Le caf\u00e9',
    'tos_uri#ja-Hani-JP': 'https://app.example/ja/tos',
    client_uri: 'https://app.example/',
    logo_uri: 'https://app.example/logo.png',
    policy_uri: 'http://app.example/policy?a=b',
    tos_uri: 'https://app.example/tos#top',
    contacts: ['dev@app.example'],
    scope: 'courses:read openid',
    software_id: '4f6e',
    software_version: '1.2.3',
    subject_type: 'public',
    id_token_signed_response_alg: 'ES256',
    default_max_age: 0,
    require_auth_time: true,
  }
  const { client } = registerClient(sent, policy, fresh(), { now, from: '192.0.2.0/24' })
  t.strictSame(clientMetadata(client, catalogue), {
    client_id: client.id,
    client_id_issued_at: now,
    client_secret_expires_at: 0,
    ...sent,
  })
})

t.test('the wire form has the effective scope and no absent members', async (t) => {
  const { client } = register({})
  t.strictSame(clientMetadata(client, catalogue), {
    client_id: client.id,
    client_id_issued_at: now,
    redirect_uris: loopback,
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: 'native',
    scope: 'openid profile courses:read courses:write',
    subject_type: 'public',
    id_token_signed_response_alg: 'RS256',
    require_auth_time: false,
  })
  const { client: narrow } = register({ scope: 'courses:read openid' })
  t.equal(clientMetadata(narrow, ['openid'])['scope'], 'openid')
})

t.test('null members and empty strings count as absent', async (t) => {
  const names = [
    'token_endpoint_auth_method',
    'grant_types',
    'response_types',
    'application_type',
    'scope',
    'client_name',
    'client_name#fr',
    'client_uri',
    'jwks',
    'jwks_uri',
    'contacts',
    'subject_type',
    'id_token_signed_response_alg',
    'default_max_age',
    'require_auth_time',
    'post_logout_redirect_uris',
  ]
  const nothing = clientMetadata(register({}).client, catalogue)
  const { client } = register(Object.fromEntries(names.map((name) => [name, null])))
  t.strictSame({ ...clientMetadata(client, catalogue), client_id: nothing.client_id }, nothing)
  const empty = ['scope', 'client_name', 'client_uri', 'logo_uri', 'tos_uri', 'policy_uri', 'software_id']
  const { client: blank } = register(Object.fromEntries(empty.map((name) => [name, ''])))
  t.strictSame({ ...clientMetadata(blank, catalogue), client_id: nothing.client_id }, nothing)
})

t.test('unsupported members are neither stored nor rejected', async (t) => {
  const { client } = register({
    client_id: 'admin',
    client_secret: 'mine',
    origin: 'integration',
    consent: 'skip',
    pkceOptional: true,
    foo: 'bar',
    software_statement: 'a.b.c',
    jwks: { keys: [] },
    'client_name#': 'x',
    'client_name#not a tag': 'x',
    'client_name#fr#de': 'x',
    'foo#fr': 'x',
    'constructor#fr': 'x',
  })
  const nothing = clientMetadata(register({}).client, catalogue)
  t.strictSame({ ...clientMetadata(client, catalogue), client_id: nothing.client_id }, nothing)
  t.match(client, { origin: 'registered', consent: 'always', pkceOptional: false })
  t.equal(client.secretHash, undefined)
})

t.test('redirect_uris that are not a list of loopback redirects are rejected by position', async (t) => {
  const rejected: [unknown, RegExp][] = [
    [undefined, /non-empty array of strings/],
    [null, /non-empty array of strings/],
    ['http://127.0.0.1:1/cb', /non-empty array of strings/],
    [{ 0: 'http://127.0.0.1:1/cb', length: 1 }, /non-empty array of strings/],
    [[], /non-empty array of strings/],
    [[1], /non-empty array of strings/],
    [['http://127.0.0.1:1/cb', null], /non-empty array of strings/],
    [['https://app.example/cb'], /^redirect_uris\[0\] .*http:\/\/127\.0\.0\.1:port\/path/],
    [[...loopback, 'http://127.0.0.1/cb#x'], /^redirect_uris\[1\] /],
    [[...loopback, 'http://localhost:1/cb'], /^redirect_uris\[1\] .*registration\.loopbackHosts/],
    [[...loopback, 'https://app.example/cb'], /^redirect_uris\[1\] .*registration\.foreignRedirects/],
    [Array(6).fill(loopback[0]), /more than 5 entries \(limits\.redirectUris\)$/],
  ]
  for (const [redirectUris, message] of rejected) {
    t.throws(
      () => register({ redirect_uris: redirectUris }),
      { code: 'invalid_redirect_uri', message },
      JSON.stringify(redirectUris),
    )
  }
})

t.test(
  'localhost is accepted where the configuration adds it, and the error of other hosts names it',
  async (t) => {
    const changes = { loopbackHosts: ['localhost'] }
    t.ok(register({ redirect_uris: ['http://localhost:1/cb'] }, changes))
    t.throws(() => register({ redirect_uris: ['https://x.example/cb'] }, changes), {
      code: 'invalid_redirect_uri',
      message: /or http:\/\/localhost:port\/path; .*lychgate client add$/,
    })
  },
)

t.test('foreign redirects are dropped where the configuration allows it, but not all of them', async (t) => {
  const changes = { foreignRedirects: 'drop' } as const
  const mixed = ['https://vscode.dev/redirect', 'http://127.0.0.1/', 'http://localhost/', 'http://[::1]:2/']
  const { client } = register({ redirect_uris: mixed, post_logout_redirect_uris: mixed }, changes)
  t.strictSame(client.redirectUris, ['http://127.0.0.1/', 'http://[::1]:2/'])
  t.strictSame(client.postLogoutRedirectUris, ['http://127.0.0.1/', 'http://[::1]:2/'])
  t.throws(() => register({ redirect_uris: ['https://vscode.dev/redirect'] }, changes), {
    code: 'invalid_redirect_uri',
  })
  t.throws(() => register({ redirect_uris: [...loopback, 1] }, changes), { code: 'invalid_redirect_uri' })
})

t.test('any other invalid member is invalid_client_metadata and named', async (t) => {
  const rejected: [string, readonly unknown[]][] = [
    [
      'token_endpoint_auth_method',
      ['private_key_jwt', 'tls_client_auth', 'client_secret_jwt', 'NONE', '', 1, []],
    ],
    [
      'grant_types',
      [
        'x',
        'authorization_code',
        [],
        [1],
        ['implicit'],
        ['refresh_token'],
        ['authorization_code', 'password'],
      ],
    ],
    ['response_types', ['code', [], ['token'], ['code', 'code id_token'], [1], {}]],
    ['application_type', ['desktop', 'Native', 5, ['native']]],
    ['client_name', [5, ['x'], {}, 'x'.repeat(201)]],
    [
      'client_name',
      [
        'a\u0000',
        'a\nb',
        'a\u007f',
        'a\u0085b',
        '\u202egnp',
        'a\u2066b',
        'a\u200bb',
        '\ufeffa',
        'a\u00adb',
        'a\u2028b',
        'a\ud800',
        'a\u3164',
        'a\u034fb',
      ],
    ],
    ['client_name#fr', [5, 'a\u202eb', 'x'.repeat(201)]],
    ['software_id', [1, 'a\nb']],
    ['software_version', [1.2, 'x'.repeat(201)]],
    ['contacts', ['dev@app.example', [1], ['a\nb'], ['x'.repeat(201)], Array(21).fill('a@b')]],
    ['scope', [['openid'], 5, 'openid "x"', 'openid\ncourses:read', 'unknown other']],
    ['subject_type', ['pairwise', 1]],
    ['id_token_signed_response_alg', ['none', 'HS256', 'EdDSA', 'XYZ', 1]],
    ['default_max_age', [-1, 1.5, '10', 2 ** 31, Number.NaN, true]],
    ['require_auth_time', ['true', 1]],
    [
      'post_logout_redirect_uris',
      ['http://127.0.0.1/out', [1], ['https://app.example/out'], Array(6).fill(loopback[0])],
    ],
    ['jwks', ['x', [], 1]],
  ]
  for (const [name, values] of rejected) {
    for (const value of values) {
      t.throws(
        () => register({ [name]: value }),
        { code: 'invalid_client_metadata', message: new RegExp(`^${name}`) },
        `${name} ${shown(value)}`,
      )
    }
  }
})

t.test('URI members are absolute http or https, without userinfo', async (t) => {
  const rejected = [
    'javascript:alert(1)',
    'java\tscript:alert(1)',
    'data:text/html,x',
    'ftp://app.example/',
    'app.example/',
    '//app.example/',
    'https:app.example',
    'https://',
    'https:///x',
    'https://user@app.example/',
    'https://app.example:pass@evil.test/',
    'https://app.example\\@evil.test/',
    'https://app.example/ x',
    'https://app.example/"onload=',
    'https://b\u00fccher.example/',
    `https://app.example/${'a'.repeat(2048)}`,
    5,
    ['https://app.example/'],
  ]
  for (const name of ['client_uri', 'logo_uri', 'policy_uri', 'tos_uri', 'jwks_uri', 'logo_uri#de']) {
    t.ok(register({ [name]: 'https://app.example/a@b?c=d@e#f' }), name)
    for (const uri of rejected) {
      t.throws(
        () => register({ [name]: uri }),
        { code: 'invalid_client_metadata', message: new RegExp(`^${name} `) },
        `${name} ${JSON.stringify(uri)}`,
      )
    }
  }
})

t.test('jwks and jwks_uri exclude each other; a single one is not stored', async (t) => {
  const jwks = { keys: [] }
  t.throws(() => register({ jwks, jwks_uri: 'https://app.example/jwks' }), {
    code: 'invalid_client_metadata',
    detail: { rule: 'rfc7591-2-jwks-exclusive' },
  })
  const { client } = register({ jwks_uri: 'https://app.example/jwks' })
  t.notMatch(JSON.stringify(client), 'jwks')
})

t.test('scope names outside the catalogue are dropped from the scope of the registration', async (t) => {
  const { client } = register({ scope: 'courses:read offline_access openid openid' })
  t.strictSame(client.scope, ['courses:read', 'openid'])
})

t.test('at most 20 members have a language tag', async (t) => {
  const tagged = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`client_name#en-x-${at}`, 'x']))
  t.equal(Object.keys(register(tagged(20)).client.localized).length, 20)
  t.throws(() => register(tagged(21)), { code: 'invalid_client_metadata', message: /language tag/ })
})

t.test('error descriptions are plain ASCII without quotes, whatever was sent', async (t) => {
  for (const metadata of [
    { redirect_uris: ['http://\u00e9"\\'] },
    { client_name: '\u202e"\\' },
    { application_type: '"\\\u00e9' },
    { 'client_name#fr': '\u0000' },
  ]) {
    try {
      register(metadata)
      t.fail('accepted')
    } catch (error) {
      t.match(error, { message: /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/ })
    }
  }
})

t.test('an update replaces all metadata and keeps what the server assigned', async (t) => {
  const { client, clientSecret } = register({
    token_endpoint_auth_method: 'client_secret_post',
    client_name: 'Before',
    scope: 'openid',
    contacts: ['a@b.example'],
    'client_name#fr': 'Avant',
  })
  const update = {
    client_id: client.id,
    client_secret: clientSecret,
    redirect_uris: ['http://[::1]/new'],
    client_uri: 'https://app.example/',
  }
  const { name: _name, scope: _scope, ...kept } = client
  t.strictSame(updateClient(client, update, policy), {
    ...kept,
    redirectUris: ['http://[::1]/new'],
    clientUri: 'https://app.example/',
    contacts: [],
    localized: {},
  })
})

t.test('an update for another client, or one that sets a member of the server, is rejected', async (t) => {
  const { client, clientSecret } = register({ token_endpoint_auth_method: 'client_secret_post' })
  const { client: open } = register({})
  const rejected: [typeof client, JsonObject, string][] = [
    [client, { client_id: undefined }, 'rfc7592-2.2-client-id-must-match'],
    [client, { client_id: open.id }, 'rfc7592-2.2-client-id-must-match'],
    [client, { client_id: [client.id] }, 'rfc7592-2.2-client-id-must-match'],
    [client, { client_secret: 'chosen' }, 'rfc7592-2.2-secret-not-overwritten'],
    [client, { client_secret: [clientSecret] }, 'rfc7592-2.2-secret-not-overwritten'],
    [open, { client_secret: '' }, 'rfc7592-2.2-secret-not-overwritten'],
    [open, { client_secret: clientSecret }, 'rfc7592-2.2-secret-not-overwritten'],
    [client, { registration_access_token: 'x' }, 'rfc7592-2.2-forbidden-members'],
    [client, { registration_client_uri: 'x' }, 'rfc7592-2.2-forbidden-members'],
    [client, { client_secret_expires_at: 0 }, 'rfc7592-2.2-forbidden-members'],
    [client, { client_id_issued_at: now }, 'rfc7592-2.2-forbidden-members'],
    [client, { token_endpoint_auth_method: 'none' }, 'rfc6749-2.1-type-recorded'],
    [open, { token_endpoint_auth_method: 'client_secret_basic' }, 'rfc6749-2.1-type-recorded'],
  ]
  for (const [target, metadata, rule] of rejected) {
    t.throws(
      () => updateClient(target, { client_id: target.id, redirect_uris: loopback, ...metadata }, policy),
      { code: 'invalid_client_metadata', detail: { rule } },
      JSON.stringify(metadata),
    )
  }
  t.throws(
    () => updateClient(client, { client_id: client.id, redirect_uris: ['https://x.example/'] }, policy),
    {
      code: 'invalid_redirect_uri',
    },
  )
})

t.test('a confidential client may change its authentication method', async (t) => {
  const { client } = register({ token_endpoint_auth_method: 'client_secret_post' })
  const metadata = {
    client_id: client.id,
    redirect_uris: loopback,
    token_endpoint_auth_method: 'client_secret_basic',
  }
  t.strictSame(updateClient(client, metadata, policy), {
    ...client,
    authenticationMethod: 'client_secret_basic',
  })
})

t.test('only its own registration access token manages a client', async (t) => {
  const { client, registrationToken } = register({})
  const other = register({})
  t.doesNotThrow(() => assertMayConfigure(client, registrationToken, undefined))
  const rejected: [typeof client | undefined, string][] = [
    [client, other.registrationToken],
    [client, `${registrationToken}x`],
    [client, ''],
    [undefined, registrationToken],
    [{ ...client, origin: 'integration' }, registrationToken],
    [{ ...client, origin: 'resource-server' }, registrationToken],
  ]
  const messages = new Set<unknown>()
  for (const [target, token] of rejected) {
    try {
      assertMayConfigure(target, token, undefined)
      t.fail('accepted')
    } catch (error) {
      t.match(error, {
        code: 'invalid_token',
        status: 401,
        detail: { headers: { 'www-authenticate': 'Bearer error="invalid_token"' } },
      })
      if (error instanceof Error) messages.add(error.message)
    }
  }
  t.equal(messages.size, 1, 'an unknown client looks like a wrong token')
})

t.test('the registration access token comes from the Authorization header', async (t) => {
  t.equal(requireRegistrationToken(readToken('Bearer abc', []), []), 'abc')
  for (const header of [undefined, '', 'Basic YTpi']) {
    t.throws(() => requireRegistrationToken(readToken(header, []), []), {
      code: 'invalid_token',
      detail: { headers: { 'www-authenticate': /^Bearer realm=/ } },
    })
  }
  for (const header of ['Bearer', 'Bearer ', 'Bearer a b', 'Bearer \u00e9']) {
    t.throws(() => requireRegistrationToken(readToken(header, []), []), {
      code: 'invalid_token',
      detail: { headers: { 'www-authenticate': 'Bearer error="invalid_token"' } },
    })
  }
})
