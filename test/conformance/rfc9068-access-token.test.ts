import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import t from 'tap'
import { callApi, obtainTokens, refresh, register, type Tokens } from '../helpers/flow.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRefused, introspect, startFlow } from '../helpers/wire.ts'

const library = 'https://library.example/api'
const { server, client, tokens } = await startFlow(t, {
  resources: [
    {
      identifier: library,
      name: 'Library',
      scopes: ['pages:read', 'pages:write'],
      tokenFormat: 'jwt',
      accessTokenSeconds: 600,
    },
  ],
})
const keys = createRemoteJWKSet(new URL(`${server.issuer}/api/oauth/jwks`))
const asResourceServer = (token: string) =>
  jwtVerify(token, keys, { issuer: server.issuer, audience: library, typ: 'at+jwt', requiredClaims: ['jti'] })

t.test('a resource server verifies an at+jwt with the published keys and nothing else', async (t) => {
  const before = server.now()
  const issued = await tokens({ scope: 'pages:read pages:write', resource: library })
  t.equal(issued.expires_in, 600)
  const { payload, protectedHeader } = await asResourceServer(issued.access_token)
  t.strictSame(Object.keys(protectedHeader).sort(), ['alg', 'kid', 'typ'])
  t.equal(protectedHeader.alg, 'RS256')
  const person = await server.deps.store.find('accountByLogin', 'alice')
  t.match(payload, {
    iss: server.issuer,
    sub: person?.id,
    aud: library,
    client_id: client.id,
    scope: 'pages:read pages:write',
  })
  const { iat = 0, exp = 0, auth_time: authTime } = payload
  t.ok(iat >= before && iat <= server.now())
  t.equal(exp, iat + 600)
  t.ok(Number.isInteger(authTime) && Number(authTime) <= iat)
  t.match(await introspect(server, client, issued.access_token), {
    active: true,
    aud: library,
    exp,
    iat,
    scope: 'pages:read pages:write',
  })
})

t.test('a refresh gives a new JWT with its own jti, as narrow as asked for', async (t) => {
  const first = await tokens({ scope: 'pages:read pages:write', resource: library })
  const answer = await refresh(server, client, first.refresh_token, { scope: 'pages:read' })
  const second = (await answer.json()) as Tokens
  const [one, two] = await Promise.all([first, second].map((each) => asResourceServer(each.access_token)))
  t.not(one?.payload.jti, two?.payload.jti)
  t.equal(two?.payload['scope'], 'pages:read')
})

t.test('a JWT for another API, or an ID Token, opens nothing here', async (t) => {
  const { access_token: token, id_token: idToken } = await tokens({
    scope: 'openid pages:read',
    resource: [server.issuer],
  })
  await assertRefused(t, await callApi(server, '/api/pages', idToken), 'invalid_token', 401)
  t.equal((await callApi(server, '/api/pages', token)).status, 200)
  const signed = await tokens({ scope: 'pages:read', resource: library })
  await assertRefused(t, await callApi(server, '/api/pages', signed.access_token), 'invalid_token', 401)
  t.equal(decodeProtectedHeader(idToken).typ, 'JWT', 'no ID Token passes for an access token')
})

t.test('an ID Token beside a JWT access token hashes that very token', async (t) => {
  const own = await register(server)
  const agent = new UserAgent(server.issuer)
  // openid belongs to the service, so a token for another API alone carries no openid scope.
  const issued = await obtainTokens(server, own, {
    agent,
    fields: { scope: 'openid pages:read', resource: library },
  })
  t.equal((await introspect(server, own, issued.access_token))['scope'], 'pages:read')
  t.type(issued.id_token, 'string', 'the grant is an OpenID Connect one all the same')
})
