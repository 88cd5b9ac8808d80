/** Access tokens that an API verifies by their signature alone, RFC 9068 §4. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { exportJWK, exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'
import t, { type Test } from 'tap'
import { introspectedBy, signedBy } from '../../src/guard/guard.ts'
import { obtainTokens, post, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { addResourceServer, callAt, startApi } from '../helpers/guarded-api.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const notes = `http://127.0.0.1:${await freePort()}`
const server = await startServer(t, {
  resources: [{ identifier: notes, name: 'Notes', scopes: ['courses:read'], tokenFormat: 'jwt' }],
})
const client = await register(server)
const { agent } = newUser(server)
const real = signedBy({ issuer: server.issuer, jwksUri: `${server.issuer}/api/oauth/jwks` })
await startApi(t, notes, { verifyToken: real, anonymous: 'allow' })

const tokens = (scope = 'openid courses:read') =>
  obtainTokens(server, client, { agent, fields: { scope, resource: notes } })

// An authorization server of this test. Everything that must be awaited is above the first test: tap ends when it finds
// nothing left to run.
// it finds nothing left to run.
const issuer = 'https://issuer.example'
const [rsa, elliptic, foreign] = await Promise.all([
  generateKeyPair('RS256', { extractable: true }),
  generateKeyPair('ES256'),
  generateKeyPair('RS256'),
])
const jwks = {
  keys: [
    { ...(await exportJWK(rsa.publicKey)), kid: 'rsa', alg: 'RS256', use: 'sig' },
    { ...(await exportJWK(elliptic.publicKey)), kid: 'elliptic', alg: 'ES256', use: 'sig' },
  ],
}

/** An authorization server that only publishes keys. */
async function publishKeys(t: Test, httpResponse: { status: number; body: string }): Promise<string> {
  const site = createServer((_request, response) =>
    response.writeHead(httpResponse.status).end(httpResponse.body),
  )
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  t.teardown(() => site.close())
  const address = site.address()
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/jwks`
}

const jwksUri = await publishKeys(t, { status: 200, body: JSON.stringify(jwks) })
const verify = signedBy({ issuer, jwksUri })
const now = Math.floor(Date.now() / 1000)
const claims = {
  iss: issuer,
  aud: 'https://api.example',
  sub: 'alice',
  client_id: 'a client',
  iat: now,
  exp: now + 600,
  jti: '1',
  scope: 'a b',
}
const header = { alg: 'RS256', kid: 'rsa', typ: 'at+jwt' }
const sign = (payload: object, protectedHeader: typeof header, key = rsa.privateKey) =>
  new SignJWT({ ...payload }).setProtectedHeader(protectedHeader).sign(key)
const without = (name: keyof typeof claims) => {
  const { [name]: _, ...rest } = claims
  return rest
}
const rsaForPss = await crypto.subtle.importKey(
  'jwk',
  { ...(await exportJWK(rsa.privateKey)), alg: 'PS256' },
  { name: 'RSA-PSS', hash: 'SHA-256' },
  false,
  ['sign'],
)

t.test(
  '[rfc8707-2-audience-restrict] a JWT access token opens the API in its audience, without a request to the server',
  async (t) => {
    const { access_token: token } = await tokens()
    t.match(await callAt(`${notes}/read`, token), {
      status: 200,
      body: { caller: { clientId: client.id, sub: String, scope: ['courses:read'], audience: [notes] } },
    })
    t.match(await callAt(`${notes}/both`, token), { status: 403, body: { error: 'insufficient_scope' } })
    t.equal((await callAt(`${server.issuer}/api/courses`, token)).status, 401)
  },
)

t.test('an ID Token, signed by the same keys, is rejected as access token', async (t) => {
  t.match(await callAt(`${notes}/read`, (await tokens()).id_token), { status: 401 })
})

t.test('a revoked JWT is accepted until it expires, unless the API introspects', async (t) => {
  const asking = introspectedBy(await addResourceServer(server, notes))
  const { access_token: token } = await tokens()
  t.match(await asking(token), { clientId: client.id, audience: [notes] })
  t.equal((await post(server, '/api/oauth/revoke', { token, client_id: client.id })).status, 200)
  t.equal(await asking(token), undefined)
  t.equal((await callAt(`${notes}/read`, token)).status, 200)
})

const accepted: readonly [string, () => Promise<string>, object][] = [
  [
    'signed with RS256',
    () => sign(claims, header),
    { sub: 'alice', clientId: 'a client', scope: ['a', 'b'] },
  ],
  [
    'signed with ES256',
    () => sign(claims, { ...header, alg: 'ES256', kid: 'elliptic' }, elliptic.privateKey),
    {},
  ],
  ['whose typ is the whole media type', () => sign(claims, { ...header, typ: 'application/at+jwt' }), {}],
  ['without a scope', () => sign(without('scope'), header), { scope: [] }],
  ['for several audiences', () => sign({ ...claims, aud: ['x', 'y'] }, header), { audience: ['x', 'y'] }],
]
for (const [about, make, access] of accepted) {
  t.test(`a token ${about} is accepted`, async (t) => {
    t.match(await verify(await make()), { sub: 'alice', ...access })
  })
}

const hmacOfPublicKey = async () =>
  new SignJWT(claims)
    .setProtectedHeader({ ...header, alg: 'HS256' })
    .sign(new TextEncoder().encode(await exportSPKI(rsa.publicKey)))
const tampered = async () => {
  const [head = '', , signature = ''] = (await sign(claims, header)).split('.')
  const payload = Buffer.from(JSON.stringify({ ...claims, sub: 'mallory' })).toString('base64url')
  return [head, payload, signature].join('.')
}
const rejected: readonly [string, () => Promise<string>][] = [
  ['that is no JWT', async () => 'lyc_access_garbage'],
  ['with another claim than was signed', tampered],
  ['signed by a key that is not published', () => sign(claims, header, foreign.privateKey)],
  ['with a key identifier that is not published', () => sign(claims, { ...header, kid: 'who' })],
  ['signed with nothing', async () => new UnsecuredJWT(claims).encode()],
  ['signed with the public key as a secret', hmacOfPublicKey],
  ['of another algorithm than its key is for', () => sign(claims, { ...header, alg: 'PS256' }, rsaForPss)],
  ['of another type', () => sign(claims, { ...header, typ: 'JWT' })],
  ['of another issuer', () => sign({ ...claims, iss: `${issuer}/` }, header)],
  ['that has expired', () => sign({ ...claims, exp: now }, header)],
  ['that is not valid yet', () => sign({ ...claims, nbf: Math.floor(Date.now() / 1000) + 60 }, header)],
  ['whose sub is a number', () => sign({ ...claims, sub: 7 }, header)],
  ...(['iss', 'exp', 'aud', 'sub', 'client_id', 'iat', 'jti'] as const).map(
    (name): [string, () => Promise<string>] => [`without ${name}`, () => sign(without(name), header)],
  ),
]
for (const [about, make] of rejected) {
  t.test(`a token ${about} is rejected`, async (t) => {
    t.equal(await verify(await make()), undefined)
    t.match(await verify(await sign(claims, header)), { sub: 'alice' }, 'the keys are there')
  })
}

const noKeys = [
  ['the keys are not there', { status: 404, body: '' }],
  ['the keys are no JSON', { status: 200, body: '<html>' }],
  ['the keys are no keys', { status: 200, body: '{"keys":"none"}' }],
] as const
for (const [about, response] of noKeys) {
  t.test(`when ${about} the API responds 503 and treats no call as anonymous`, async (t) => {
    const verifyToken = signedBy({ issuer, jwksUri: await publishKeys(t, response) })
    const resource = `http://127.0.0.1:${await freePort()}`
    await startApi(t, resource, { verifyToken, anonymous: 'allow' })
    t.match(await callAt(`${resource}/read`, await sign(claims, header)), {
      status: 503,
      body: { error: 'temporarily_unavailable' },
    })
    t.match(await callAt(`${resource}/read`, 'garbage'), { status: 401 })
  })
}
