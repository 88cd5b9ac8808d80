import t from 'tap'
import type { JsonObject } from '../../src/clients/members.ts'
import type { RegistrationPolicy } from '../../src/clients/metadata.ts'
import { type NamedScheme, readToken } from '../../src/domain/bearer.ts'
import type { InitialToken } from '../../src/domain/initial-token.ts'
import type { Client } from '../../src/domain/model.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { declared } from '../../src/features.ts'
import {
  assertMayConfigure,
  assertProven,
  type RegistrationContext,
  readInitialToken,
  registerClient,
  requireRegistrationToken,
  updateClient,
} from '../../src/specs/rfc7591-registration/rules.ts'

const now = 1_800_000_000
const policy: RegistrationPolicy = {
  declared,
  loopbackHosts: [],
  foreignRedirects: 'refuse',
  redirectUris: 5,
  metadataBytes: 8192,
  scopes: ['openid'],
  algorithms: ['RS256'],
}
const loopback = ['http://127.0.0.1:7777/cb']
const https = ['https://app.example/cb']
const keysUri = 'https://app.example/jwks'
const confirmation = { jkt: 'thumbprint' }
const scheme: NamedScheme = { name: 'DPoP', member: 'jkt', challenge: { algs: 'ES256' } }
const token: InitialToken = {
  id: hashSecret('initial'),
  redirects: 'https',
  pkce: 'optional',
  uses: 2,
  used: 1,
  createdAt: now - 10,
  expiresAt: now + 10,
}
const admitting = { ...policy, admission: { redirects: 'https' } } as const

function register(metadata: JsonObject = {}, context: Partial<RegistrationContext> = {}) {
  const fresh = {
    clientId: Buffer.alloc(16, 1),
    clientSecret: Buffer.alloc(32, 2),
    registrationToken: Buffer.alloc(32, 3),
  }
  return registerClient(
    { redirect_uris: loopback, ...metadata },
    context.token === undefined ? policy : admitting,
    fresh,
    { now, from: '192.0.2.0/24', ...context },
  )
}

const update = (client: Client, metadata: JsonObject = {}, by: RegistrationPolicy = admitting) =>
  updateClient(client, { client_id: client.id, redirect_uris: client.redirectUris, ...metadata }, by)

t.test('a web client gets a secret and a native one none, unless it says otherwise', async (t) => {
  for (const [redirects, method, used] of [
    [https, undefined, 'client_secret_basic'],
    [https, 'none', 'none'],
    [loopback, undefined, 'none'],
    [loopback, 'client_secret_post', 'client_secret_post'],
  ] as const) {
    const metadata = { redirect_uris: redirects, token_endpoint_auth_method: method }
    const { client, clientSecret } = register(metadata, { token })
    t.equal(client.authenticationMethod, used)
    t.equal(client.secretHash, clientSecret === undefined ? undefined : hashSecret(clientSecret))
    t.equal(clientSecret !== undefined, used !== 'none')
  }
})

t.test(
  'an initial access token lifts PKCE for confidential clients only, and has consent kept',
  async (t) => {
    const methods = { none: 'none', secret: 'client_secret_basic' }
    for (const [method, pkce, optional] of [
      [methods.secret, 'optional', true],
      [methods.secret, 'required', false],
      [methods.none, 'optional', false],
      [methods.none, 'required', false],
    ] as const) {
      const metadata = { token_endpoint_auth_method: method }
      const { client } = register(metadata, { token: { ...token, pkce } })
      t.equal(client.pkceOptional, optional, `${method} ${pkce}`)
    }
    t.equal(
      register({ token_endpoint_auth_method: methods.secret }).client.pkceOptional,
      false,
      'without one',
    )
    t.equal(register({}, { token }).client.consent, 'remember')
    t.equal(register({}, { token: { ...token, redirects: 'loopback' } }).client.consent, 'always')
  },
)

t.test('a client keeps the name, the extra members and the terms of its token', async (t) => {
  const { client } = register({ redirect_uris: https }, { token })
  const { admitted } = client
  t.strictSame(admitted, {
    by: token.id.slice(0, 12),
    redirects: 'https',
    terms: hashSecret(JSON.stringify([https, 'client_secret_basic', null, null])),
  })
  const keyed = { redirect_uris: https, token_endpoint_auth_method: 'private_key_jwt', jwks_uri: keysUri }
  const extra = { legacy_audience: true }
  const { client: signing } = register(keyed, { token: { ...token, extra } })
  t.strictSame(signing.extra, { jwks_uri: keysUri, ...extra })
  t.strictSame(signing.admitted, {
    by: token.id.slice(0, 12),
    redirects: 'https',
    extra,
    terms: hashSecret(JSON.stringify([https, 'private_key_jwt', null, keysUri])),
  })
  const moved = update(signing, { ...keyed, jwks_uri: `${keysUri}/2` })
  t.strictSame(moved, {
    ...signing,
    extra: { jwks_uri: `${keysUri}/2`, ...extra },
    admitted: {
      ...signing.admitted,
      terms: hashSecret(JSON.stringify([https, 'private_key_jwt', null, `${keysUri}/2`])),
    },
  })
  t.equal('admitted' in update(register().client), false, 'a client of open registration has none')
})

t.test('the key that a client proved is kept for its registration access token', async (t) => {
  const { client, registrationToken } = register({}, { confirmation })
  t.strictSame(client.registrationKey, confirmation)
  t.equal('registrationKey' in register().client, false)
  t.doesNotThrow(() => assertMayConfigure(client, registrationToken, scheme))
  const wrong = (rule: string, challenge: string) => ({
    code: 'invalid_token',
    message: 'the registration access token is not valid',
    detail: { rule, headers: { 'www-authenticate': challenge } },
  })
  const [bearer, bound] = ['Bearer error="invalid_token"', 'DPoP error="invalid_token", algs="ES256"']
  for (const [of, sent, under, rule, challenge] of [
    [client, registrationToken, undefined, 'rfc9449-7.2-no-downgrade', bearer],
    [register().client, registrationToken, scheme, 'rfc9449-7.2-no-downgrade', bound],
    [client, 'other', scheme, 'rfc7592-2-bearer-required', bound],
    [{ ...client, origin: 'integration' }, registrationToken, scheme, 'rfc7592-2-bearer-required', bound],
    [undefined, registrationToken, undefined, 'rfc7592-5-no-404', bearer],
  ] as const)
    t.throws(() => assertMayConfigure(of, sent, under), wrong(rule, challenge))
})

t.test('members that are null count as left out of an update', async (t) => {
  const { client } = register()
  const names = [
    'client_secret',
    'registration_access_token',
    'registration_client_uri',
    'client_secret_expires_at',
    'client_id_issued_at',
  ]
  t.strictSame(update(client, Object.fromEntries(names.map((name) => [name, null]))), client)
  for (const name of names.slice(1))
    t.throws(() => update(client, { [name]: 0 }), {
      code: 'invalid_client_metadata',
      message: `${name} must not be in an update`,
      detail: { rule: 'rfc7592-2.2-forbidden-members' },
    })
})

t.test('a client stays public, with a secret, or with keys, whatever an update says', async (t) => {
  const of = (method: string) => register({ ...keys, token_endpoint_auth_method: method }, { token }).client
  const keys = { jwks_uri: keysUri }
  const methods = ['none', 'client_secret_post', 'private_key_jwt']
  for (const before of methods)
    for (const after of methods) {
      const change = () => update(of(before), { ...keys, token_endpoint_auth_method: after })
      if (before === after) t.equal(change().authenticationMethod, after)
      else
        t.throws(
          change,
          {
            code: 'invalid_client_metadata',
            message: 'token_endpoint_auth_method cannot change between none and a client secret',
            detail: { rule: 'rfc6749-2.1-type-recorded', stored: before, received: after },
          },
          `${before} to ${after}`,
        )
    }
})

t.test('an initial access token is sent as a bearer token, or with the proof of its scheme', async (t) => {
  const initial = (code: string) => ({
    code: 'invalid_token',
    message: code,
    detail: {
      rule: 'rfc7591-3-initial-access-token',
      headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    },
  })
  t.equal(readInitialToken(readToken('Bearer abc', [scheme])), 'abc')
  t.equal(readInitialToken(readToken('DPoP abc', [scheme])), 'abc')
  for (const none of [undefined, 'Basic YTpi'])
    t.equal(readInitialToken(readToken(none, [scheme])), undefined, 'registration is open')
  t.throws(
    () => readInitialToken(readToken('Bearer a b', [scheme])),
    initial('the initial access token is malformed'),
  )
  const [bearer, bound] = [readToken('Bearer abc', [scheme]), readToken('DPoP abc', [scheme])]
  t.doesNotThrow(() => assertProven(bearer, undefined))
  t.doesNotThrow(() => assertProven(bearer, confirmation))
  t.doesNotThrow(() => assertProven(bound, confirmation))
  for (const other of [undefined, { x5t: 'thumbprint' }])
    t.throws(
      () => assertProven(bound, other),
      initial('a token under DPoP needs a proof; send it as a bearer token'),
    )
})

t.test('a request without a registration access token learns what it may send', async (t) => {
  const missing = (challenge: string) => ({
    code: 'invalid_token',
    message: 'the registration access token is missing',
    detail: { rule: 'rfc7592-2-bearer-required', headers: { 'www-authenticate': challenge } },
  })
  const realm = 'Bearer realm="client configuration"'
  t.throws(() => requireRegistrationToken(readToken(undefined, [scheme]), []), missing(realm))
  t.throws(
    () => requireRegistrationToken(readToken(undefined, [scheme]), ['DPoP algs="ES256"', 'Other']),
    missing(`${realm}, DPoP algs="ES256", Other`),
  )
  t.throws(() => requireRegistrationToken(readToken('DPoP a b', [scheme]), []), {
    code: 'invalid_token',
    message: 'the registration access token is not valid',
    detail: {
      rule: 'rfc7592-2-bearer-required',
      headers: { 'www-authenticate': 'DPoP error="invalid_token", algs="ES256"' },
    },
  })
})
