import { createRemoteJWKSet, jwtVerify } from 'jose'
import type { Test } from 'tap'
import {
  type AssertionAlgorithm,
  makeClientKey,
  signAssertion,
  withAssertion,
} from '../../helpers/assertions.ts'
import { post, redirectUri, type TestClient } from '../../helpers/flow.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { addClient, assertRejected, json } from '../../helpers/wire.ts'
import type { Exercise, Promises } from './promise.ts'
import {
  addressOf,
  askAt,
  codeOf,
  introspectAt,
  newClient,
  redeemAt,
  registerAt,
  requestUrl,
  type Subject,
  send,
  tokensOf,
  userInfoAt,
} from './subject.ts'

/** A path of this server supports one method and names it to the others, RFC 9110 §15.5.6. */
async function rejectsMethod(t: Test, { server }: Subject, url: unknown, method: string, allowed: string) {
  t.ok(String(url).startsWith(`${server.issuer}/`), 'it is below the issuer')
  t.equal(new URL(String(url)).hash, '')
  const response = await fetch(String(url), { method })
  t.equal(response.status, 405)
  t.match(response.headers.get('allow'), allowed)
}

const authorization: Exercise<unknown> = async (t, subject, url) => {
  const { client, server } = subject
  const request = requestUrl(subject, client)
  const body = new URL(request).searchParams
  for (const response of [
    await fetch(request, { redirect: 'manual' }),
    await fetch(String(url), { method: 'POST', body, redirect: 'manual' }),
  ]) {
    t.equal(response.status, 303)
    t.equal(new URL(response.headers.get('location') ?? '', request).origin, server.origin)
    t.equal(new URL(response.headers.get('location') ?? '', request).searchParams.get('error'), null)
  }
  const landing = await new UserAgent(server.origin).open(request)
  t.match(landing, { at: 'page', page: { status: 200, html: /name="password"/ } })
  const unknown = await askAt(subject, { ...client, id: 'nobody' })
  t.equal(unknown.status, 400)
  t.match(unknown.headers.get('content-type'), /^text\/html/)
  t.equal(unknown.headers.get('location'), null)
  await rejectsMethod(t, subject, url, 'PUT', 'GET')
}

const token: Exercise<unknown> = async (t, subject, url) => {
  const response = await redeemAt(subject, subject.client, await codeOf(subject, subject.client))
  t.equal(response.status, 200)
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.match(await json(response), { access_token: String, token_type: 'Bearer', expires_in: Number })
  await assertRejected(t, await redeemAt(subject, subject.client, 'no code'), 'invalid_grant')
  await rejectsMethod(t, subject, url, 'GET', 'POST')
}

const registration: Exercise<unknown> = async (t, subject, url) => {
  const response = await registerAt(subject, { client_name: 'Another' })
  t.equal(response.status, 201)
  t.match(await json(response), { client_id: String, redirect_uris: [redirectUri] })
  const https = await registerAt(subject, { redirect_uris: ['https://app.example/cb'] })
  await assertRejected(t, https, 'invalid_redirect_uri')
  await rejectsMethod(t, subject, url, 'GET', 'POST')
}

const userInfo: Exercise<unknown> = async (t, subject, url) => {
  const { access_token: own } = await tokensOf(subject, subject.client)
  for (const method of ['GET', 'POST']) {
    const response = await userInfoAt(subject, own, { method })
    t.equal(response.status, 200)
    t.match(await json(response), { sub: String })
  }
  t.equal((await fetch(String(url))).status, 401)
  await rejectsMethod(t, subject, url, 'DELETE', 'GET')
}

const revocation: Exercise<unknown> = async (t, subject, url) => {
  const { access_token: own } = await tokensOf(subject, subject.client)
  t.equal((await userInfoAt(subject, own)).status, 200)
  t.equal((await send(subject, 'revocation_endpoint', subject.client, { token: own })).status, 200)
  t.equal((await userInfoAt(subject, own)).status, 401)
  await rejectsMethod(t, subject, url, 'GET', 'POST')
}

const introspection: Exercise<unknown> = async (t, subject, url) => {
  const { access_token: own } = await tokensOf(subject, subject.client)
  t.match(await introspectAt(subject, subject.client, own), { active: true, client_id: subject.client.id })
  t.strictSame(await introspectAt(subject, subject.client, 'garbage'), { active: false })
  await rejectsMethod(t, subject, url, 'GET', 'POST')
}

const keys: Exercise<unknown> = async (t, subject, url) => {
  const response = await fetch(String(url))
  t.equal(response.status, 200)
  const { keys: published } = (await json(response)) as { keys: { kid: string }[] }
  t.ok(published.length > 0)
  t.equal(new Set(published.map(({ kid }) => kid)).size, published.length)
  const { id_token: idToken } = await tokensOf(subject, subject.client)
  const remote = createRemoteJWKSet(new URL(String(url)))
  await t.resolves(jwtVerify(idToken, remote, { issuer: subject.server.issuer, audience: subject.client.id }))
  await rejectsMethod(t, subject, url, 'POST', 'GET')
}

const endSession: Exercise<unknown> = async (t, subject, url) => {
  const own = await newClient(subject, { post_logout_redirect_uris: [redirectUri] })
  const agent = new UserAgent(subject.server.origin)
  const { id_token: hint } = await tokensOf({ ...subject, agent }, own)
  const signedIn = async () => {
    const { searchParams } = new URL(
      (await askAt(subject, subject.firstParty, { prompt: 'none' }, agent)).headers.get('location') ?? '',
    )
    return searchParams.has('code')
  }
  t.ok(await signedIn())
  const query = new URLSearchParams({
    id_token_hint: hint,
    post_logout_redirect_uri: redirectUri,
    state: 'bye',
  })
  const landing = await agent.open(`${url}?${query}`)
  t.match(landing, { at: 'redirect', location: { href: `${redirectUri}?state=bye` } })
  t.notOk(await signedIn())
  await rejectsMethod(t, subject, url, 'PUT', 'GET')
}

/** Authentication at one endpoint by one method: the right credentials succeed, and no others. */
const methodsAt = (endpoint: string, use: (t: Test, subject: Subject, of: TestClient) => Promise<void>) => {
  const rejection = endpoint === 'introspection_endpoint' ? 401 : undefined
  const attempt = (subject: Subject, as: TestClient, more: Record<string, string> = {}) =>
    send(subject, endpoint, as, { grant_type: 'refresh_token', refresh_token: 'x', token: 'x', ...more })
  const confidential =
    (method: string, other: string): Exercise =>
    async (t, subject) => {
      const own = await newClient(subject, { token_endpoint_auth_method: method })
      t.equal(own.method, method)
      t.type(own.secret, 'string')
      await use(t, subject, own)
      const basic = { ...own, method: 'client_secret_basic' }
      const { secret: _, ...bare } = own
      await assertRejected(
        t,
        await attempt(subject, { ...own, secret: 'wrong' }),
        'invalid_client',
        method === 'client_secret_basic' ? 401 : (rejection ?? 400),
        'wrong secret',
      )
      await assertRejected(
        t,
        await attempt(subject, { ...own, method: other }),
        'invalid_client',
        other === basic.method ? 401 : (rejection ?? 400),
        other,
      )
      await assertRejected(
        t,
        await attempt(subject, { ...bare, method: 'none' }),
        'invalid_client',
        rejection ?? 400,
        'none',
      )
    }
  return {
    each: {
      none: async (t, subject) => {
        const own = await newClient(subject, { token_endpoint_auth_method: 'none' })
        t.equal(own.method, 'none')
        t.equal(own.secret, undefined)
        await use(t, subject, own)
        const secretive = { ...own, method: 'client_secret_post', secret: 'any' }
        await assertRejected(t, await attempt(subject, secretive), 'invalid_client', rejection ?? 400)
      },
      private_key_jwt: async (t, { server, ...rest }) => {
        const key = makeClientKey()
        const { id } = await addClient(server, {
          authenticationMethod: 'private_key_jwt',
          description: { jwks: { keys: [key.jwk] } },
        })
        const subject = { ...rest, server }
        const bare = { id, method: 'none', redirectUri }
        const signed = (issuer: string) =>
          withAssertion(signAssertion(key, { id, issuer, now: server.now() }))
        const accepted = await attempt(subject, bare, signed(server.issuer))
        if (endpoint === 'token_endpoint') await assertRejected(t, accepted, 'invalid_grant')
        else t.equal(accepted.status, 200)
        const foreign = await attempt(subject, bare, signed('https://other.example'))
        await assertRejected(t, foreign, 'invalid_client', rejection ?? 400)
      },
      client_secret_post: confidential('client_secret_post', 'client_secret_basic'),
      client_secret_basic: confidential('client_secret_basic', 'client_secret_post'),
    },
    unlisted: async (t, subject, listed) => {
      for (const method of ['client_secret_jwt', 'tls_client_auth', 'self_signed_tls_client_auth', 'x']) {
        t.notOk(listed.includes(method), method)
        const response = await registerAt(subject, { token_endpoint_auth_method: method })
        await assertRejected(t, response, 'invalid_client_metadata', 400, method)
      }
      const { secret: _, ...own } = await newClient(subject, {
        token_endpoint_auth_method: 'client_secret_post',
      })
      const assertion = {
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: 'eyJhbGciOiJub25lIn0.e30.',
      }
      await assertRejected(t, await attempt(subject, own, assertion), 'invalid_client', rejection ?? 400)
    },
  } satisfies Promises[string]
}

/** Assertions by one algorithm. */
const signingAlgorithms: Promises[string] = {
  every: async (t, { server }, algorithm) => {
    // `as`: makeClientKey throws for another one.
    const key = makeClientKey(algorithm as AssertionAlgorithm)
    const { id } = await addClient(server, {
      authenticationMethod: 'private_key_jwt',
      grantTypes: ['client_credentials'],
      redirectUris: [],
      scope: ['courses:read'],
      description: { jwks: { keys: [key.jwk] }, token_endpoint_auth_signing_alg: algorithm },
    })
    const assertion = signAssertion(key, { id, issuer: server.issuer, now: server.now() })
    const form = { grant_type: 'client_credentials', ...withAssertion(assertion) }
    t.equal((await post(server, '/api/oauth/token', form)).status, 200)
  },
  unlisted: async (t, _subject, listed) => {
    for (const algorithm of ['none', 'HS256', 'RS512', 'ES384'])
      t.notOk(listed.includes(algorithm), algorithm)
  },
}

/** Every endpoint in the documents, and each way to authenticate there. */
export const endpointPromises: Promises = {
  authorization_endpoint: { value: authorization },
  token_endpoint: { value: token },
  registration_endpoint: { value: registration },
  userinfo_endpoint: { value: userInfo },
  revocation_endpoint: { value: revocation },
  introspection_endpoint: { value: introspection },
  jwks_uri: { value: keys },
  end_session_endpoint: { value: endSession },
  token_endpoint_auth_signing_alg_values_supported: signingAlgorithms,
  revocation_endpoint_auth_signing_alg_values_supported: signingAlgorithms,
  introspection_endpoint_auth_signing_alg_values_supported: signingAlgorithms,
  token_endpoint_auth_methods_supported: methodsAt('token_endpoint', async (t, subject, own) => {
    const response = await redeemAt(subject, own, await codeOf(subject, own))
    t.equal(response.status, 200)
    t.match(await json(response), { access_token: String })
  }),
  revocation_endpoint_auth_methods_supported: methodsAt('revocation_endpoint', async (t, subject, own) => {
    const { access_token: issued } = await tokensOf(subject, own)
    t.equal((await send(subject, 'revocation_endpoint', own, { token: issued })).status, 200)
    t.equal((await userInfoAt(subject, issued)).status, 401)
  }),
  introspection_endpoint_auth_methods_supported: methodsAt(
    'introspection_endpoint',
    async (t, subject, own) => {
      const { access_token: issued } = await tokensOf(subject, own)
      t.match(await introspectAt(subject, own, issued), { active: true, client_id: own.id })
    },
  ),
}

/** Endpoints that other servers have at their usual paths: this server neither has nor advertises them. */
export async function assertNoOtherEndpoint(t: Test, subject: Subject): Promise<void> {
  const names = {
    backchannel_authentication_endpoint: '/oauth/bc-authorize',
    check_session_iframe: '/oauth/check_session',
  }
  for (const [name, path] of Object.entries(names)) {
    t.notOk(name in subject.document, name)
    for (const method of ['GET', 'POST']) {
      const response = await fetch(subject.server.issuer + path, { method })
      t.equal(response.status, 404, `${method} ${path}`)
    }
  }
  t.equal((await fetch(`${addressOf(subject, 'token_endpoint')}/`, { method: 'POST' })).status, 404)
}
