import t from 'tap'
import { callApi, obtainTokens, post, postAs, refresh, register } from '../helpers/flow.ts'
import { addClient, assertRejected, challengeOf, introspect, json, startFlow } from '../helpers/wire.ts'

const lessons = 'https://lessons.example/api'
const library = 'https://library.example/api'
const scopes = ['courses:read', 'courses:write']
const { server, client, agent, tokens } = await startFlow(t, {
  resources: [
    { identifier: lessons, name: 'Lessons', scopes, tokenFormat: 'opaque' },
    { identifier: library, name: 'Library', scopes, tokenFormat: 'jwt' },
  ],
})
const path = '/api/oauth/introspect'
const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
const forLessons = await addClient(server, { resources: [lessons] })
const forLibrary = await addClient(server, { resources: [library] })
const forIssuer = await addClient(server, {
  resources: [server.issuer],
  authenticationMethod: 'client_secret_post',
})
const inactive = { active: false }

t.test(
  '[rfc7662-2.1-post-form] [rfc7662-2.2-active-boolean] [rfc7662-2.2-active-members] [rfc7662-2.2-aud-shows-resource] a valid access token is described',
  async (t) => {
    const before = server.now()
    const { access_token: token } = await tokens({ scope: 'openid courses:read' })
    const response = await postAs(server, client, path, { token })
    t.equal(response.status, 200, '[rfc7662-2.1-post-form]')
    t.match(response.headers.get('content-type'), /^application\/json/, '[rfc7662-2.1-post-form]')
    t.equal(response.headers.get('cache-control'), 'no-store', '[rfc7662-4-no-store]')
    const { iat, exp, jti, sub, auth_time: authTime, ...rest } = await json(response)
    t.strictSame(rest, {
      active: true,
      scope: 'openid courses:read',
      client_id: client.id,
      token_type: 'Bearer',
      aud: server.issuer,
      iss: server.issuer,
      acr: 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport',
    })
    t.type(authTime, 'number')
    t.equal(rest['active'], true, '[rfc7662-2.2-active-boolean]')
    const user = await server.deps.store.find('userByLogin', 'alice')
    t.equal(sub, user?.id)
    t.ok(Number.isInteger(iat) && Number(iat) >= before && Number(iat) <= server.now())
    t.equal(exp, Number(iat) + server.deps.config.lifetimes.accessTokenSeconds)
    t.type(jti, 'string')
    const bound = await tokens({ scope: 'courses:read', resource: lessons })
    const { aud } = await introspect(server, client, bound.access_token)
    t.equal(aud, lessons, '[rfc7662-2.2-aud-shows-resource]')
    const signed = await tokens({ scope: 'courses:read', resource: library })
    t.equal((await introspect(server, client, signed.access_token))['aud'], library)
    const both = await tokens({ scope: 'courses:read', resource: [server.issuer, lessons] })
    t.strictSame((await introspect(server, client, both.access_token))['aud'], [server.issuer, lessons])
    const dead = await postAs(server, client, path, { token: 'garbage' })
    t.strictSame(await json(dead), inactive, '[rfc7662-2.2-active-boolean] false')
    t.equal(dead.headers.get('cache-control'), 'no-store', 'and an inactive one is not cached either')
  },
)

t.test(
  '[rfc7662-2.2-refresh-token-subject] [rfc7662-2.1-hint-extends-search] a refresh token is described with any hint, and opens no API',
  async (t) => {
    const { refresh_token: token } = await tokens({ scope: 'openid courses:read' })
    for (const hint of [undefined, 'access_token', 'refresh_token', 'foo']) {
      const response = await introspect(server, client, token, { token_type_hint: hint })
      const clause =
        hint === undefined || hint === 'refresh_token'
          ? '[rfc7662-2.2-refresh-token-subject]'
          : '[rfc7662-2.1-hint-extends-search]'
      t.equal(response['active'], true, `${clause} ${hint ?? 'no hint'}`)
      t.equal(response['scope'], 'openid courses:read')
      t.equal(response['client_id'], client.id)
      t.notOk('token_type' in response)
    }
    await assertRejected(t, await callApi(server, '/api/courses', token), 'invalid_token', 401)
    const { access_token: access } = await tokens()
    const response = await introspect(server, client, access, { token_type_hint: 'refresh_token' })
    t.equal(response['active'], true)
  },
)

t.test(
  '[rfc7662-2.2-inactive-form] [rfc7662-2.2-inactive-no-extra] [rfc7662-4-all-state-checks] random, expired, revoked, rotated and altered tokens get only active: false',
  async (t) => {
    const live = await tokens()
    const code = live.access_token.replace('lyc_access_', 'lyc_code_')
    for (const token of [
      'garbage',
      '"',
      code,
      live.id_token,
      `${live.access_token}A`,
      tampered(live.access_token),
    ]) {
      const described = await introspect(server, client, token)
      t.strictSame(described, inactive, `[rfc7662-2.2-inactive-form] ${token.slice(0, 20)}`)
    }
    const revoked = await tokens()
    await postAs(server, client, '/api/oauth/revoke', { token: revoked.access_token })
    const ended = await introspect(server, client, revoked.access_token)
    t.strictSame(ended, inactive, '[rfc7662-4-all-state-checks] revoked')
    await refresh(server, client, revoked.refresh_token)
    t.strictSame(await introspect(server, client, revoked.refresh_token), inactive, 'a rotated refresh token')
    t.equal((await introspect(server, client, live.access_token))['active'], true)

    const signed = await tokens({ scope: 'courses:read', resource: library })
    t.equal((await introspect(server, client, signed.access_token))['active'], true)
    for (const token of [tampered(signed.access_token), unsigned(signed.access_token)]) {
      const described = await introspect(server, client, token)
      t.strictSame(described, inactive, '[rfc7662-4-all-state-checks] a tampered JWT')
    }
    server.advance(server.deps.config.lifetimes.accessTokenSeconds)
    const expired = await introspect(server, client, live.access_token)
    t.strictSame(expired, inactive, '[rfc7662-4-all-state-checks] expired')
    t.strictSame(await introspect(server, client, signed.access_token), inactive)
    t.equal((await introspect(server, client, live.refresh_token))['active'], true)
    server.advance(server.deps.config.lifetimes.refreshTokenIdleSeconds)
    t.strictSame(await introspect(server, client, live.refresh_token), inactive)
  },
)

t.test('a JWT access token is inactive once it is revoked, or its grant is', async (t) => {
  const fields = { scope: 'courses:read', resource: library }
  const [one, two] = [await tokens(fields), await tokens(fields)]
  await postAs(server, client, '/api/oauth/revoke', { token: one.access_token })
  t.strictSame(await introspect(server, forLibrary, one.access_token), inactive)
  t.equal((await introspect(server, forLibrary, two.access_token))['active'], true)
  await postAs(server, client, '/api/oauth/revoke', { token: two.refresh_token })
  t.strictSame(await introspect(server, forLibrary, two.access_token), inactive)
})

t.test(
  '[rfc7009-2.2.1-unsupported-token-type] every kind of token can be revoked, so no kind is rejected',
  async (t) => {
    const opaque = await tokens({ scope: 'courses:read', resource: lessons })
    const signed = await tokens({ scope: 'courses:read', resource: library })
    for (const token of [
      opaque.access_token,
      signed.access_token,
      opaque.refresh_token,
      signed.refresh_token,
    ]) {
      t.equal((await introspect(server, client, token))['active'], true)
      t.equal((await postAs(server, client, '/api/oauth/revoke', { token })).status, 200)
      t.strictSame(await introspect(server, client, token), inactive)
    }
    const other = await tokens({ scope: 'courses:read', resource: library })
    const foreign = await postAs(server, confidential, '/api/oauth/revoke', { token: other.access_token })
    await assertRejected(t, foreign, 'invalid_grant')
    t.equal((await introspect(server, client, other.access_token))['active'], true)
  },
)

t.test(
  '[rfc7662-2.1-caller-authorised] [rfc7662-2.3-bad-client-401] a caller that does not authenticate gets 401',
  async (t) => {
    const { access_token: token } = await obtainTokens(server, confidential, { agent })
    const callers: Record<string, string | undefined>[] = [
      {},
      { client_id: '' },
      { client_id: 'client_nobody' },
      { client_id: confidential.id },
      { client_id: confidential.id, client_secret: confidential.secret },
      { client_id: forIssuer.id, client_secret: 'wrong' },
    ]
    for (const fields of callers) {
      const response = await post(server, path, { token, ...fields })
      t.equal(challengeOf(response).scheme, 'Basic')
      const clause =
        fields['client_secret'] === undefined
          ? '[rfc7662-2.1-caller-authorised]'
          : '[rfc7662-2.3-bad-client-401]'
      await assertRejected(t, response, 'invalid_client', 401, `${clause} ${JSON.stringify(fields)}`)
    }
    const headers = [`Basic ${btoa(`${confidential.id}:wrong`)}`, 'Basic', `Bearer ${token}`]
    for (const authorization of headers) {
      const response = await post(server, path, { token }, { authorization })
      t.equal(response.status, 401, authorization)
      t.notOk('active' in (await json(response)))
    }
    t.equal((await introspect(server, confidential, token))['active'], true)
  },
)

t.test(
  '[rfc7662-2.3-bad-bearer-401] a bearer token does not authorise a caller, and the error is that of RFC 6750',
  async (t) => {
    const { access_token: token } = await tokens()
    for (const bearer of [token, 'garbage']) {
      const response = await post(server, path, { token }, { authorization: `Bearer ${bearer}` })
      const { scheme, params } = challengeOf(response)
      t.strictSame([scheme, params['error']], ['Bearer', 'invalid_token'])
      await assertRejected(t, response, 'invalid_token', 401)
    }
  },
)

t.test(
  '[rfc7662-4-caller-privilege] [rfc7662-2.2-inactive-form] [rfc7662-2.2-inactive-no-extra] [rfc7662-4-all-state-checks] a client learns about its own tokens, a resource server about those meant for it',
  async (t) => {
    const own = await tokens({ scope: 'openid courses:read' })
    const atLessons = await tokens({ scope: 'courses:read', resource: lessons })
    const atLibrary = await tokens({ scope: 'courses:read', resource: library })
    const atBoth = await tokens({ scope: 'courses:read', resource: [server.issuer, lessons] })
    const stranger = await register(server)
    const table = [
      { token: own.access_token, knows: [client, forIssuer] },
      { token: atLessons.access_token, knows: [client, forLessons] },
      { token: atLibrary.access_token, knows: [client, forLibrary] },
      { token: atBoth.access_token, knows: [client, forIssuer, forLessons] },
      { token: own.refresh_token, knows: [client] },
      { token: atLessons.refresh_token, knows: [client] },
    ]
    for (const { token, knows } of table) {
      for (const caller of [client, forIssuer, forLessons, forLibrary, confidential, stranger]) {
        const response = await introspect(server, caller, token)
        if (knows.includes(caller)) t.equal(response['active'], true)
        else t.strictSame(response, inactive)
      }
    }
  },
)

t.test('[rfc7662-2.1-token-required] a request without token is rejected', async (t) => {
  for (const token of [undefined, '']) {
    await assertRejected(t, await postAs(server, client, path, { token }), 'invalid_request')
  }
})

t.test(
  '[rfc7662-4-get-disallowed] GET is 405 even with credentials, and reveals nothing about the token',
  async (t) => {
    const { access_token: token } = await tokens()
    const query = new URLSearchParams({ token, client_id: client.id })
    const authorization = `Basic ${btoa(`${forIssuer.id}:${forIssuer.secret}`)}`
    const response = await fetch(`${server.issuer}${path}?${query}`, { headers: { authorization } })
    t.equal(response.headers.get('allow'), 'OPTIONS, POST')
    await assertRejected(t, response, 'invalid_request', 405)
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ token, client_id: client.id })
    const asJson = await fetch(server.issuer + path, { method: 'POST', headers, body })
    await assertRejected(t, asJson, 'invalid_request', 415)
  },
)

function tampered(token: string): string {
  const at = token.length - 30
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
}

/** The same claims with `alg: none`. */
function unsigned(jws: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url')
  return `${header}.${jws.split('.')[1]}.`
}
