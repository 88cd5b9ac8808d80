import { createRemoteJWKSet, jwtVerify } from 'jose'
import t from 'tap'
import { removeUser, update } from '../../src/domain/decision.ts'
import { callApi, claimsOf, obtainTokens, refresh, register, type Tokens } from '../helpers/flow.ts'
import { send } from '../helpers/raw.ts'
import { bob } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, assertRejected, challengeOf, json, startFlow } from '../helpers/wire.ts'

const lessons = 'https://lessons.example/api'
const { server, client, tokens } = await startFlow(t, {
  resources: [{ identifier: lessons, name: 'Lessons', scopes: ['openid', 'profile'], tokenFormat: 'opaque' }],
})
const path = '/api/oauth/userinfo'
const url = server.issuer + path
const profile = {
  name: 'Alice Ångström',
  family_name: 'Ångström',
  given_name: 'Alice',
  middle_name: 'Maria',
  nickname: 'Ali',
  preferred_username: 'alice',
  profile: 'https://people.example/alice',
  picture: 'https://people.example/alice.png',
  website: 'https://alice.example',
  gender: 'female',
  birthdate: '1990-04-01',
  zoneinfo: 'Europe/Stockholm',
  locale: 'sv-SE',
}

async function claims(token: string): Promise<Record<string, unknown>> {
  const response = await callApi(server, path, token)
  if (response.status !== 200) throw new Error(`UserInfo responded ${response.status}`)
  return json(response)
}

t.test(
  '[service-4-userinfo-get] [oidc-core-5.3.2-sub-always] [service-5-scope-profile] [oidc-core-5.4-profile-claims] the profile scope opens exactly the profile claims',
  async (t) => {
    const { access_token: token, id_token: idToken } = await tokens({ scope: 'openid profile' })
    const response = await callApi(server, path, token)
    t.equal(response.status, 200, '[service-4-userinfo-get]')
    t.match(response.headers.get('content-type'), /^application\/json/, '[oidc-core-5.3.2-content-type]')
    t.equal(response.headers.get('cache-control'), 'no-store')
    const { sub, updated_at: updatedAt, ...rest } = await json(response)
    t.equal(sub, claimsOf(idToken)['sub'], '[oidc-core-5.3.2-sub-always]')
    t.ok(Number.isInteger(updatedAt))
    t.strictSame(rest, profile, '[oidc-core-5.4-profile-claims]')
    const only = await tokens()
    t.strictSame(await claims(only.access_token), { sub }, '[service-5-scope-profile] none without it')
  },
)

t.test(
  '[service-5-scope-email] [oidc-core-5.4-email-claims] [oidc-core-5.4-claims-at-userinfo] the email scope opens the email claims',
  async (t) => {
    const { access_token: token, id_token: idToken } = await tokens({ scope: 'openid email' })
    const { sub, ...rest } = await claims(token)
    t.strictSame(rest, { email: 'alice@example.test', email_verified: true }, '[oidc-core-5.4-email-claims]')
    t.notOk('email' in claimsOf(idToken), '[oidc-core-5.4-claims-at-userinfo] not in the ID Token')
    const without = await claims((await tokens({ scope: 'openid profile' })).access_token)
    t.ok('name' in without)
    for (const name of ['email', 'email_verified'])
      t.notOk(name in without, `[service-5-scope-email] no ${name} without it`)
    t.equal(without['sub'], sub)
  },
)

t.test(
  '[oidc-core-5.1-claim-types] [oidc-core-5.1-email-syntax] every claim of UserInfo has its type',
  async (t) => {
    const all = await claims((await tokens({ scope: 'openid profile email' })).access_token)
    t.strictSame(
      Object.keys(all).sort(),
      [...Object.keys(profile), 'sub', 'updated_at', 'email', 'email_verified'].sort(),
    )
    for (const name of [...Object.keys(profile), 'email', 'sub'])
      t.type(all[name], 'string', `[oidc-core-5.1-claim-types] ${name}`)
    t.type(all['email_verified'], 'boolean', '[oidc-core-5.1-claim-types] email_verified')
    t.type(all['updated_at'], 'number', '[oidc-core-5.1-claim-types] updated_at')
    t.match(all['email'], /^[^@\s]+@[^@\s]+$/, '[oidc-core-5.1-email-syntax]')
    t.match(all['birthdate'], /^\d{4}(-\d\d-\d\d)?$/)
    t.match(Intl.getCanonicalLocales(String(all['locale'])), ['sv-SE'])
  },
)

t.test(
  '[oidc-core-5.3-get-and-post] with the token in the header, UserInfo by POST accepts any body and ignores it',
  async (t) => {
    const { access_token: token } = await tokens({ scope: 'openid profile' })
    const sent = await claims(token)
    const form = 'application/x-www-form-urlencoded'
    const bodies = [
      ['application/json', '{"a": 1}'],
      ['application/json', ''],
      ['application/json', `{"access_token":"${token}"}`],
      ['text/plain', 'access_token=other'],
      ['multipart/form-data; boundary=x', '--x--'],
      ['application/octet-stream', '\0'],
      [undefined, 'a=b'],
      [undefined, ''],
      [form, '{"a": 1}'],
      [form, '%'],
      [form, 'a=b'],
      [form, ''],
    ] as const
    const post = (type: string | undefined, body: string, authorization?: string) =>
      send(server, {
        method: 'POST',
        path,
        headers: [
          ...(type === undefined ? [] : [['Content-Type', type] as const]),
          ...(authorization === undefined ? [] : [['Authorization', authorization] as const]),
          ['Content-Length', String(Buffer.byteLength(body))],
        ],
        body,
      })
    for (const [type, body] of bodies) {
      const response = await post(type, body, `Bearer ${token}`)
      t.equal(response.status, 200, `${type} ${body}`)
      t.strictSame(JSON.parse(response.body), sent, `${type} ${body}`)
      t.equal((await post(type, body, 'Bearer wrong')).status, 401, 'the token decides')
    }
    for (const [type, body] of [
      ['application/json', JSON.stringify({ access_token: token })],
      ['text/plain', `access_token=${token}`],
      ['multipart/form-data; boundary=x', `access_token=${token}`],
      [undefined, `access_token=${token}`],
    ] as const) {
      for (const authorization of [undefined, 'Basic eDp5']) {
        const response = await post(type, body, authorization)
        t.equal(response.status, 415, `[oidc-core-5.3-post-body-token] ${type}: only a form has a token`)
        t.match(JSON.parse(response.body), {
          error: 'invalid_request',
          error_description: 'the Content-Type must be application/x-www-form-urlencoded',
        })
      }
    }
    t.equal((await post(form, `access_token=${token}`)).status, 200, '[oidc-core-5.3-post-body-token]')
    const twice = await post(form, `access_token=${token}`, `Bearer ${token}`)
    t.equal(twice.status, 400, 'one token by one method')
    t.equal((await post(form, 'a=b&a=c', `Bearer ${token}`)).status, 400, 'a repeated parameter')
    const long = await post(
      'text/plain',
      'a'.repeat(server.deps.config.limits.tokenBodyBytes + 1),
      `Bearer ${token}`,
    )
    t.equal(long.status, 413)
  },
)

t.test('[oidc-core-5.4-address-phone] address and phone are not offered as scopes by default', async (t) => {
  for (const scope of ['openid address', 'openid phone']) {
    const agent = new UserAgent(server.issuer)
    await t.rejects(obtainTokens(server, client, { agent, fields: { scope } }), /invalid_scope/)
  }
  const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
  const offered = ['scopes_supported', 'claims_supported'].flatMap((name) => metadata[name])
  t.ok(offered.includes('profile'))
  for (const name of ['address', 'phone', 'phone_number']) t.notOk(offered.includes(name), name)
})

t.test(
  '[oidc-core-5.3.2-empty-claims-omitted] [oidc-core-5.3.2-missing-claim-no-error] a claim without a value is omitted',
  async (t) => {
    const agent = new UserAgent(server.issuer)
    const fields = { scope: 'openid profile email' }
    const { access_token: token } = await obtainTokens(server, client, { agent, user: bob, fields })
    t.strictSame(Object.keys(await claims(token)).sort(), [
      'email',
      'email_verified',
      'name',
      'preferred_username',
      'sub',
      'updated_at',
    ])
    const user = await server.deps.store.find('userByLogin', 'bob')
    if (user === undefined) throw new Error('bob is there')
    const { email: _email, ...rest } = user
    const bare = { name: 'Bob', nickname: '', preferred_username: 'bob', updated_at: 1 }
    await server.deps.store.write(update('user', { ...rest, claims: bare }))
    t.strictSame(
      Object.keys(await claims(token)).sort(),
      ['name', 'preferred_username', 'sub', 'updated_at'],
      '[oidc-core-5.3.2-missing-claim-no-error]',
    )
  },
)

t.test(
  '[oidc-core-5.3-get-and-post] [oidc-core-5.3-post-body-token] the token is accepted in the header with GET or POST, or in a form',
  async (t) => {
    const { access_token: token } = await tokens({ scope: 'openid profile' })
    const expected = await claims(token)
    const authorization = `Bearer ${token}`
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const ways: RequestInit[] = [
      { method: 'POST', headers: { authorization } },
      { method: 'POST', headers: { authorization, ...form }, body: '' },
      { method: 'POST', headers: { authorization, ...form }, body: 'foo=bar' },
      { method: 'POST', headers: form, body: String(new URLSearchParams({ access_token: token })) },
    ]
    for (const init of ways) {
      const response = await fetch(url, init)
      t.equal(response.status, 200, `[oidc-core-5.3-get-and-post] ${JSON.stringify(init).slice(0, 80)}`)
      t.strictSame(await json(response), expected)
    }
  },
)

t.test(
  '[rfc6750-2-one-method] [rfc6750-3.1-invalid-request-400] a token both in the header and in the form is rejected',
  async (t) => {
    const { access_token: token } = await tokens()
    const body = new URLSearchParams({ access_token: token })
    const headers = { authorization: `Bearer ${token}` }
    const both = await fetch(url, { method: 'POST', headers, body })
    t.equal(challengeOf(both).params['error'], 'invalid_request')
    await assertRejected(t, both, 'invalid_request', 400, '[rfc6750-2-one-method]')
    const twice = new URLSearchParams([...body, ...body])
    await assertRejected(t, await fetch(url, { method: 'POST', body: twice }), 'invalid_request')
  },
)

t.test(
  '[rfc6750-2.2-form-conditions] [rfc6750-2.3-query-discouraged] a token in JSON, in a query or in another form is ignored',
  async (t) => {
    const { access_token: token } = await tokens()
    const json = { 'content-type': 'application/json' }
    const asJson = await fetch(url, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ access_token: token }),
    })
    await assertRejected(t, asJson, 'invalid_request', 415)
    const multipart = new FormData()
    multipart.append('access_token', token)
    await assertRejected(t, await fetch(url, { method: 'POST', body: multipart }), 'invalid_request', 415)
    for (const method of ['GET', 'POST']) {
      const response = await fetch(`${url}?access_token=${token}`, { method })
      t.equal(response.status, 401)
      t.notOk('error' in challengeOf(response).params, 'it counts as none')
    }
  },
)

t.test(
  '[rfc6750-3.1-no-error-without-credentials] [rfc6750-3-challenge-on-refusal] without a token the challenge has no error',
  async (t) => {
    const absent = [{}, { authorization: 'Basic YTpi' }, { authorization: '' }]
    for (const headers of absent) {
      const response = await fetch(url, { headers })
      t.equal(response.status, 401, '[rfc6750-3-challenge-on-refusal]')
      const { scheme, params, others } = challengeOf(response)
      t.equal(scheme, 'Bearer')
      t.equal(others, 'DPoP algs="ES256 PS256 EdDSA Ed25519"')
      t.strictSame(params, { resource_metadata: `${server.issuer}/.well-known/oauth-protected-resource` })
    }
  },
)

t.test('[oidc-core-5.3-requires-openid] a token without openid is rejected', async (t) => {
  const { access_token: token, refresh_token: refreshToken } = await tokens({ scope: 'profile openid' })
  const narrowed = (await (
    await refresh(server, client, refreshToken, { scope: 'profile' })
  ).json()) as Tokens
  const plain = await tokens({ scope: 'profile email' })
  for (const each of [narrowed, plain]) {
    const body = new URLSearchParams({ access_token: each.access_token })
    for (const response of [
      await callApi(server, path, each.access_token),
      await callApi(server, path, each.access_token, { method: 'POST' }),
      await fetch(url, { method: 'POST', body }),
    ]) {
      t.match(challengeOf(response), {
        scheme: 'Bearer',
        params: { error: 'insufficient_scope', scope: 'openid' },
      })
      await assertRejected(t, response, 'insufficient_scope', 403)
    }
  }
  t.equal((await callApi(server, path, token)).status, 200)
})

t.test('[oidc-core-5.3.3-error] an invalid token, or one for another API, is rejected', async (t) => {
  const elsewhere = await tokens({ scope: 'openid profile', resource: lessons })
  const { refresh_token: refreshToken } = await tokens()
  for (const token of ['garbage', refreshToken, elsewhere.access_token]) {
    for (const method of ['GET', 'POST']) {
      const response = await callApi(server, path, token, { method })
      t.match(challengeOf(response), { scheme: 'Bearer', params: { error: 'invalid_token' } })
      await assertRejected(t, response, 'invalid_token', 401)
    }
    const inForm = await fetch(url, { method: 'POST', body: new URLSearchParams({ access_token: token }) })
    await assertRejected(t, inForm, 'invalid_token', 401)
  }
})

t.test(
  '[oidc-core-5.5-claims-merge] the claims parameter opens single claims at UserInfo, also after a refresh',
  async (t) => {
    const asked = {
      userinfo: { nickname: null, email: { essential: true }, unknown: null },
      id_token: { name: null },
      something_else: { family_name: null },
    }
    const issued = await tokens({ claims: JSON.stringify(asked) })
    const expected = { nickname: 'Ali', email: 'alice@example.test' }
    const { sub, ...rest } = await claims(issued.access_token)
    t.strictSame(rest, expected)
    const later = (await (await refresh(server, client, issued.refresh_token)).json()) as Tokens
    t.strictSame(await claims(later.access_token), { sub, ...expected })
  },
)

t.test('UserInfo returns the current claims, and none when the user is deleted', async (t) => {
  const own = await register(server)
  const agent = new UserAgent(server.issuer)
  const { access_token: token } = await obtainTokens(server, own, { agent, user: bob })
  const user = await server.deps.store.find('userByLogin', 'bob')
  await server.deps.store.write(removeUser(user?.id ?? '', 0))
  const response = await callApi(server, path, token)
  t.equal(challengeOf(response).params['error'], 'invalid_token')
  await assertRejected(t, response, 'invalid_token', 401)
})

t.test(
  '[oidc-core-5.3.2-signed-userinfo] [oidc-reg-2-initiate-login-uri] a client may have its UserInfo as a signed JWT',
  async (t) => {
    const keys = createRemoteJWKSet(new URL(`${server.issuer}/api/oauth/jwks`))
    const about = '[oidc-core-5.3.2-signed-userinfo]'
    for (const algorithm of ['RS256', 'ES256', 'EdDSA']) {
      const signed = await addClient(server, { description: { userinfo_signed_response_alg: algorithm } })
      const { access_token: token } = await tokens({ scope: 'openid email' }, signed)
      for (const method of ['GET', 'POST']) {
        const response = await fetch(url, { method, headers: { authorization: `Bearer ${token}` } })
        t.equal(response.headers.get('content-type'), 'application/jwt', `${about} ${method}`)
        t.equal(response.headers.get('cache-control'), 'no-store')
        const options = { issuer: server.issuer, audience: signed.id, algorithms: [algorithm] }
        const { payload } = await jwtVerify(await response.text(), keys, options)
        t.match(payload, { email: 'alice@example.test', sub: String }, `${about} ${algorithm}`)
      }
      t.equal((await callApi(server, path, 'wrong')).status, 401)
    }
    const invalid = { code: 'invalid_client_metadata' }
    for (const description of [
      { userinfo_signed_response_alg: 'none' },
      { userinfo_signed_response_alg: 'HS256' },
      { initiate_login_uri: 'http://a.example/login' },
      { initiate_login_uri: 'http://localhost:9000/login' },
      { initiate_login_uri: 'x' },
    ])
      await t.rejects(addClient(server, { description }), invalid, JSON.stringify(description))
    const initiate = { initiate_login_uri: 'https://a.example/login', userinfo_signed_response_alg: '' }
    const { id } = await addClient(server, { description: initiate })
    const stored = await server.deps.store.find('client', id)
    t.strictSame(
      stored?.extra,
      { initiate_login_uri: 'https://a.example/login' },
      '[oidc-reg-2-initiate-login-uri]',
    )
  },
)
