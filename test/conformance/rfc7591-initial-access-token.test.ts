/** Initial access tokens, RFC 7591 §3: what clients may register with one and not without. */
import t, { type Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import {
  type InitialTokenRequest,
  initialTokenKind,
  mintInitialToken,
} from '../../src/domain/initial-token.ts'
import { makeClientKey, signAssertion, withAssertion } from '../helpers/assertions.ts'
import { authorizationUrl, post, responseOf, signInAndApprove, type TestClient } from '../helpers/flow.ts'
import { bareUrl, signRequest } from '../helpers/request-objects.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, type Json, json } from '../helpers/wire.ts'

const server = await startServer(t)
const callback = 'https://app.example/callback'
const loopback = 'http://127.0.0.1:7777/cb'
const key = makeClientKey('RS256')
let made = 0

/** An initial access token of an operator. */
async function mint(request: Partial<InitialTokenRequest> = {}, seconds = 3600): Promise<string> {
  const whole = { redirects: 'https', pkce: 'required', uses: 1, ...request } as const
  made++
  const { token, record } = mintInitialToken(whole, Buffer.alloc(32, made), seconds, server.now())
  await server.deps.store.write(insert(initialTokenKind, record))
  return token
}

/** Registers with these metadata and this token. */
function send(token: string | undefined, metadata: Json = {}, headers: Record<string, string> = {}) {
  return fetch(`${server.issuer}/api/oauth/register`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: JSON.stringify({ redirect_uris: [callback], ...metadata }),
  })
}

async function registered(token: string, metadata: Json = {}): Promise<Json> {
  const response = await send(token, metadata)
  const body = await json(response)
  if (response.status !== 201) throw new Error(`${response.status} ${JSON.stringify(body)}`)
  return body
}

function clientOf({
  client_id: id,
  client_secret: secret,
  token_endpoint_auth_method: method,
}: Json): TestClient {
  return {
    id: String(id),
    method: String(method),
    redirectUri: callback,
    ...(secret !== undefined && { secret: String(secret) }),
  }
}

/** RFC 6750 §3.1. */
async function assertWrongToken(t: Test, response: Response, about: string) {
  t.match(response.headers.get('www-authenticate'), /^Bearer error="invalid_token"/, about)
  await assertRejected(t, response, 'invalid_token', 401, about)
}

t.test(
  '[rfc7591-3-initial-access-token] a wrong, expired or used token is 401, and registers nothing',
  async (t) => {
    const clients = async () => (await server.deps.store.list('client')).length
    const before = await clients()
    for (const token of ['', 'x', 'lyc_initial_x', 'a b', `${await mint()}x`, 'ü'.normalize('NFD')])
      await assertWrongToken(
        t,
        await send(undefined, {}, { authorization: `Bearer ${encodeURI(token).replace('%20', ' ')}` }),
        `[rfc7591-3-initial-access-token] ${token}`,
      )
    const late = await mint({}, 10)
    server.advance(10)
    await assertWrongToken(t, await send(late), 'expired')
    t.equal(await clients(), before)
    const token = await mint()
    await assertRejected(
      t,
      await send(token, { redirect_uris: ['http://app.example/cb'] }),
      'invalid_redirect_uri',
      400,
      'a bad registration',
    )
    t.equal((await send(token)).status, 201, 'did not use it up')
    await assertWrongToken(t, await send(token), 'used up')
    const several = await mint({ uses: 3 })
    const statuses = await Promise.all(Array.from({ length: 10 }, async () => (await send(several)).status))
    t.strictSame(statuses.sort(), [201, 201, 201, ...Array(7).fill(401)], 'at the same time')
    t.equal(await clients(), before + 4)
    const stored = JSON.stringify(await server.deps.store.contents())
    t.notOk(stored.includes(token.slice('lyc_initial_'.length)), 'only a hash is stored')
    t.notOk(server.log.join('').includes(token), 'and nothing is logged')
  },
)

t.test(
  '[service-5-registration-loopback-only] [service-5-registration-open] open registration stays as it is',
  async (t) => {
    for (const headers of [{}, { authorization: 'Basic eA==' }]) {
      await assertRejected(
        t,
        await send(undefined, {}, headers),
        'invalid_redirect_uri',
        400,
        '[service-5-registration-loopback-only]',
      )
      const keys = {
        jwks: { keys: [key.jwk] },
        token_endpoint_auth_method: 'private_key_jwt',
        redirect_uris: [loopback],
      }
      await assertRejected(t, await send(undefined, keys, headers), 'invalid_client_metadata')
      const logout = { redirect_uris: [loopback], post_logout_redirect_uris: ['https://app.example/out'] }
      await assertRejected(t, await send(undefined, logout, headers), 'invalid_client_metadata')
      const rest = {
        redirect_uris: [loopback],
        request_uris: ['https://app.example/r'],
        backchannel_logout_uri: 'https://app.example/out',
      }
      const response = await send(undefined, rest, headers)
      t.equal(response.status, 201, '[service-5-registration-open]')
      const body = await json(response)
      t.notOk('request_uris' in body || 'backchannel_logout_uri' in body || 'jwks' in body, 'ignored')
      t.match(body, { token_endpoint_auth_method: 'none', application_type: 'native' })
    }
  },
)

t.test('a client with a token may have https redirects, keys, request and logout URIs', async (t) => {
  const metadata = {
    client_name: 'Course app',
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: 'RS256',
    jwks: { keys: [key.jwk] },
    request_uris: ['https://app.example/request.jwt'],
    request_object_signing_alg: 'RS256',
    post_logout_redirect_uris: ['https://app.example/out'],
    backchannel_logout_uri: 'https://app.example/backchannel',
    backchannel_logout_session_required: true,
    logo_uri: 'https://app.example/logo.png',
    initiate_login_uri: 'https://app.example/login',
    userinfo_signed_response_alg: 'ES256',
    redirect_uris: [callback, `${callback}?a=b`],
  }
  const body = await registered(await mint(), { ...metadata, legacy_audience: true, trusted_issuers: [] })
  t.match(body, { ...metadata, jwks: { keys: [{ kty: 'RSA', n: key.jwk['n'] }] }, application_type: 'web' })
  t.notOk('client_secret' in body || 'legacy_audience' in body, 'what only an operator sets is ignored')
  const client = clientOf(body)
  const agent = new UserAgent(server.issuer)
  const request = signRequest(key, client, server)
  const landing = await agent.open(bareUrl(server, client, { request }))
  const location = await signInAndApprove(agent, landing)
  const assertion = signAssertion(key, { id: client.id, issuer: server.issuer, now: server.now() })
  const response = await post(server, '/api/oauth/token', {
    grant_type: 'authorization_code',
    code: location.searchParams.get('code') ?? '',
    redirect_uri: callback,
    code_verifier: 'v'.repeat(43),
    ...withAssertion(assertion),
  })
  t.equal(response.status, 200)
  for (const [wrong, code] of [
    [{ redirect_uris: ['http://app.example/cb'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['https://user@app.example/cb'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: [`${callback}#x`] }, 'invalid_redirect_uri'],
    [{ redirect_uris: [`${callback}?code=x`] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['com.example.app:/cb'] }, 'invalid_redirect_uri'],
    [{ token_endpoint_auth_method: 'private_key_jwt' }, 'invalid_client_metadata'],
    [{ jwks: { keys: [] } }, 'invalid_client_metadata'],
    [{ grant_types: ['client_credentials', 'authorization_code'] }, 'invalid_client_metadata'],
    [{ request_uris: ['http://app.example/r'] }, 'invalid_client_metadata'],
    [{ backchannel_logout_uri: 'http://app.example/r' }, 'invalid_client_metadata'],
  ] as const)
    await assertRejected(t, await send(await mint(), wrong), code, 400, JSON.stringify(wrong))
})

t.test('the token decides what may be left out and what is remembered', async (t) => {
  const plain = await registered(await mint())
  t.match(plain, { token_endpoint_auth_method: 'client_secret_basic', client_secret: /^lyc_secret_/ })
  t.match(await registered(await mint(), { redirect_uris: [loopback] }), {
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  })
  await assertRejected(t, await send(await mint({ redirects: 'loopback' })), 'invalid_redirect_uri')
  const keys = {
    jwks: { keys: [key.jwk] },
    token_endpoint_auth_method: 'private_key_jwt',
    redirect_uris: [loopback],
  }
  t.equal((await send(await mint({ redirects: 'loopback' }), keys)).status, 201)
  const noPkce = { code_challenge: undefined, code_challenge_method: undefined }
  const agent = new UserAgent(server.issuer)
  const ask = (body: Json, fields = {}) => agent.send(authorizationUrl(server, clientOf(body), fields))
  t.equal(responseOf(await ask(plain, noPkce))['error'], 'invalid_request')
  const lax = await registered(await mint({ pkce: 'optional', uses: 2 }))
  t.match((await ask(lax, noPkce)).headers.get('location'), /\/login/)
  const open = await registered(await mint({ pkce: 'optional' }), { token_endpoint_auth_method: 'none' })
  t.equal(responseOf(await ask(open, noPkce))['error'], 'invalid_request', 'a public client needs PKCE')
  await signInAndApprove(agent, await agent.open(authorizationUrl(server, clientOf(plain))))
  t.match(responseOf(await ask(plain, { prompt: 'none' }))['code'], /./, 'the consent is remembered')
  // RFC 7592 §2.2: it keeps its rights, and a change of redirect URIs asks the user again.
  const update = (redirectUris: readonly string[]) =>
    fetch(String(plain['registration_client_uri']), {
      method: 'PUT',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${plain['registration_access_token']}`,
      },
      body: JSON.stringify({ client_id: plain['client_id'], redirect_uris: redirectUris }),
    })
  t.equal((await update([callback])).status, 200)
  t.match(responseOf(await ask(plain, { prompt: 'none' }))['code'], /./, 'nothing has changed')
  t.equal((await update([callback, 'https://other.example/cb'])).status, 200)
  t.equal(responseOf(await ask(plain, { prompt: 'none' }))['error'], 'consent_required')
  await assertRejected(t, await update(['http://app.example/cb']), 'invalid_redirect_uri')
})

t.test('[rfc7523-3-aud] an operator lets the clients of a token name an endpoint as aud', async (t) => {
  const keys = { jwks: { keys: [key.jwk] }, token_endpoint_auth_method: 'private_key_jwt' }
  const revoke = (id: string, aud: string) => {
    const about = { id, issuer: server.issuer, now: server.now() }
    const assertion = signAssertion(key, about, { claims: { aud } })
    return post(server, '/api/oauth/revoke', { token: 'x', ...withAssertion(assertion) })
  }
  const endpoint = `${server.issuer}/api/oauth/token`
  const strict = String((await registered(await mint(), { ...keys, legacy_audience: true }))['client_id'])
  await assertRejected(t, await revoke(strict, endpoint), 'invalid_client', 400, '[rfc7523-3-aud] without it')
  const lax = await registered(await mint({ extra: { legacy_audience: true } }), keys)
  const id = String(lax['client_id'])
  t.equal((await revoke(id, endpoint)).status, 200)
  t.equal((await revoke(id, server.issuer)).status, 200)
  await assertRejected(t, await revoke(id, 'https://other.example'), 'invalid_client')
  const updated = await fetch(String(lax['registration_client_uri']), {
    method: 'PUT',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${lax['registration_access_token']}`,
    },
    body: JSON.stringify({ client_id: id, redirect_uris: [callback], ...keys, legacy_audience: false }),
  })
  t.equal(updated.status, 200)
  t.equal((await revoke(id, endpoint)).status, 200, 'an update does not change what the operator set')
})
