import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import * as client from 'openid-client'
import t from 'tap'
import { ask, assertErrorPage, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import { authorize, exchange, type Fields, register, responseOf, type TestClient } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t)
const portal = await integrate(server, { idTokenSignedResponseAlg: 'ES256' })
const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
const keySet = createRemoteJWKSet(new URL(String(metadata['jwks_uri'])))

/** Reads a response as a client must, JARM §2.4. */
async function read(parameters: Record<string, string | undefined>, { id }: TestClient) {
  const { response = '', ...others } = parameters
  const { payload, protectedHeader } = await jwtVerify(response, keySet, {
    issuer: server.issuer,
    audience: id,
    requiredClaims: ['exp'],
    currentDate: new Date(server.deps.clock() * 1000),
  })
  return { members: payload, algorithm: protectedHeader.alg, others }
}

function fieldsOf(page: Page): Record<string, string> {
  const fields = page.forms[0]?.fields ?? []
  return Object.fromEntries(fields.map(({ name, value }): [string, string] => [name, value]))
}

t.test('[jarm-4-metadata] the metadata lists the modes and the algorithms', async (t) => {
  for (const path of ['oauth-authorization-server', 'openid-configuration']) {
    const metadata = await json(await fetch(`${server.issuer}/.well-known/${path}`))
    t.strictSame(metadata['response_modes_supported'], [
      'query',
      'form_post',
      'query.jwt',
      'form_post.jwt',
      'jwt',
    ])
    t.strictSame(metadata['authorization_signing_alg_values_supported'], ['RS256', 'ES256', 'EdDSA'])
  }
})

for (const mode of ['query.jwt', 'jwt'])
  t.test(
    `[jarm-2.3.1-query-jwt] [jarm-2.3.4-jwt] [jarm-2.1-claims] [jarm-2.1-lifetime] a code arrives in one JWT: ${mode}`,
    async (t) => {
      const user = await signedIn(server, portal)
      const page = pageOf(
        await ask(server, portal, { response_mode: mode, state: 'a&b=c', prompt: 'consent' }, user),
      )
      const landing = await user.submit(page, { decision: 'approve' })
      const { members, others } = await read(sentAway(landing), portal)
      const { code, exp, ...rest } = members
      t.strictSame(others, {}, '[jarm-2.3.1-query-jwt] nothing stands beside it, not even iss')
      t.strictSame(rest, { state: 'a&b=c', iss: server.issuer, aud: portal.id }, '[jarm-2.1-claims]')
      const left = Number(exp) - server.deps.clock()
      t.ok(left > 0 && left <= 600, '[jarm-2.1-lifetime]')
      t.equal((await exchange(server, portal, String(code))).status, 200)
    },
  )

t.test(
  '[jarm-2.1-claims] [jarm-2.2-signed] an error arrives in one JWT, before and after the sign-in',
  async (t) => {
    const rows: readonly (readonly [Fields, string])[] = [
      [{ prompt: 'none' }, 'login_required'],
      [{ scope: 'nonsense' }, 'invalid_scope'],
      [{ code_challenge: undefined }, 'invalid_request'],
      [{ response_type: 'token' }, 'unsupported_response_type'],
    ]
    for (const [fields, error] of rows) {
      const response = responseOf(await authorize(server, portal, { response_mode: 'jwt', ...fields }))
      const { members, others } = await read(response, portal)
      t.strictSame(others, {}, error)
      t.match(members, { error, error_description: /./, state: 'a-state', aud: portal.id }, error)
      t.notOk('code' in members)
    }
    const user = await signedIn(server, await integrate(server))
    const page = pageOf(
      await ask(server, portal, { response_mode: 'jwt', state: undefined, prompt: 'consent' }, user),
    )
    const denied = await read(sentAway(await user.submit(page, { decision: 'deny' })), portal)
    t.equal(denied.members['error'], 'access_denied')
    t.notOk('state' in denied.members, 'a request without state has a response without')
  },
)

t.test('[jarm-2.3.3-form-post-jwt] the form has the JWT alone', async (t) => {
  const agent = new UserAgent(server.issuer)
  const login = pageOf(
    await ask(server, portal, { response_mode: 'form_post.jwt', prompt: 'consent' }, agent),
  )
  const consent = pageOf(await agent.submit(login, alice))
  const page = pageOf(await agent.submit(consent, { decision: 'approve' }))
  t.equal(page.forms[0]?.action, portal.redirectUri)
  const { members, others } = await read(fieldsOf(page), portal)
  t.strictSame(others, {})
  t.equal((await exchange(server, portal, String(members['code']))).status, 200)
})

t.test('[jarm-3-signed-response-alg] the client chooses the algorithm; RS256 is the default', async (t) => {
  for (const [chosen, expected] of [
    [undefined, 'RS256'],
    ['RS256', 'RS256'],
    ['ES256', 'ES256'],
    ['EdDSA', 'EdDSA'],
  ]) {
    const extra = { ...(chosen !== undefined && { authorization_signed_response_alg: chosen }) }
    const one = await integrate(server, { description: extra })
    const response = responseOf(await authorize(server, one, { response_mode: 'jwt', prompt: 'none' }))
    t.equal((await read(response, one)).algorithm, expected)
    const plain = responseOf(await authorize(server, one, { prompt: 'none' }))
    t.equal(plain['error'], 'login_required', 'a response that is not asked for as a JWT is none')
  }
  for (const name of ['none', 'HS256', 'PS256'])
    await t.rejects(
      integrate(server, { description: { authorization_signed_response_alg: name } }),
      { code: 'invalid_client_metadata' },
      name,
    )
})

t.test('[oidc-core-3.1.2.6-bad-response-mode] a mode that is not offered is a page', async (t) => {
  for (const mode of ['fragment.jwt', 'JWT', 'query.jwt ', 'form_post.jwt.jwt'])
    await assertErrorPage(
      t,
      await authorize(server, portal, { response_mode: mode }),
      'invalid_request',
      mode,
    )
})

t.test('a signed response is no other token of this server', async (t) => {
  const parameters = responseOf(await authorize(server, portal, { response_mode: 'jwt', prompt: 'none' }))
  const { response = '' } = parameters
  t.equal(decodeProtectedHeader(response).typ, 'JWT')
  const hinted = responseOf(await authorize(server, portal, { id_token_hint: response }))
  t.equal(hinted['error'], 'invalid_request', 'it is no hint')
  const called = await fetch(`${server.issuer}/api/oauth/userinfo`, {
    headers: { authorization: `Bearer ${response}` },
  })
  t.equal(called.status, 401, 'it opens nothing')
})

t.test('openid-client reads a signed response, and rejects one for another client', async (t) => {
  const mine = await register(server)
  const config = await client.discovery(new URL(server.issuer), mine.id, undefined, client.None(), {
    execute: [client.allowInsecureRequests],
  })
  client.useJwtResponseMode(config)
  const verifier = client.randomPKCECodeVerifier()
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: mine.redirectUri,
    scope: 'openid',
    state: 'own',
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  t.equal(url.searchParams.get('response_mode'), 'jwt')
  const user = new UserAgent(server.issuer)
  const consent = pageOf(await user.submit(pageOf(await user.open(url.href)), alice))
  const landing = await user.submit(consent, { decision: 'approve' })
  if (landing.at !== 'redirect') throw new Error('no redirect')
  const checks = { pkceCodeVerifier: verifier, expectedState: 'own' }
  const tokens = await client.authorizationCodeGrant(config, landing.location, checks)
  t.equal(tokens.claims()?.iss, server.issuer)
  const other = responseOf(
    await authorize(server, portal, { response_mode: 'jwt', prompt: 'none', state: 'own' }),
  )
  const foreign = new URL(landing.location)
  foreign.search = new URLSearchParams(other).toString()
  await t.rejects(client.authorizationCodeGrant(config, foreign, checks))
})
