/** RFC 9068 §4: an API that verifies JWT access tokens by their signature, without introspection. */
import { CompactEncrypt, exportSPKI, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'
import t from 'tap'
import { introspectedBy, signedBy } from '../../src/guard/guard.ts'
import { exchange, obtainCode, obtainTokens, post, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { addResourceServer, callAt, startApi } from '../helpers/guarded-api.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const notes = `http://127.0.0.1:${await freePort()}`
const other = 'https://other.example'
const options = {
  resources: [notes, other].map((identifier) => ({
    identifier,
    name: 'Notes',
    scopes: ['courses:read'],
    tokenFormat: 'jwt' as const,
  })),
}
const server = await startServer(t, options)
const client = await register(server)
const { agent } = newUser(server)
const published = (await (await fetch(`${server.issuer}/api/oauth/jwks`)).json()) as { keys: JWK[] }
const rsa = published.keys.find(({ alg }) => alg === 'RS256')
const { kid } = rsa ?? {}
if (rsa === undefined || kid === undefined) throw new Error('the RSA key is published')
const rsaKey = await importJWK(rsa, 'RS256')
const foreign = await generateKeyPair('RS256', { extractable: true })
const verifyToken = () => signedBy({ issuer: server.issuer, jwksUri: `${server.issuer}/api/oauth/jwks` })
await startApi(t, notes, { verifyToken: verifyToken(), anonymous: 'allow' })

const read = `${notes}/read`
const tokensAt = (of: TestServer, as = client, browser = agent) =>
  obtainTokens(of, as, { agent: browser, fields: { scope: 'openid courses:read', resource: notes } })

const now = Math.floor(Date.now() / 1000)
/** Claims that open the API: each forgery differs from them in one thing. */
const claims = {
  iss: server.issuer,
  aud: notes,
  sub: 'alice',
  client_id: 'a client',
  iat: now,
  exp: now + 600,
  jti: '1',
  scope: 'courses:read',
}
const header = { alg: 'RS256', kid, typ: 'at+jwt' }
const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
/** Signed by the authorization server itself. */
const genuine = (changes: object = {}, typ: 'JWT' | 'at+jwt' = 'at+jwt') =>
  server.deps.keys.sign('RS256', typ, { ...claims, ...changes })
const signedWith = (key: Parameters<SignJWT['sign']>[0], changes: object) =>
  new SignJWT(claims).setProtectedHeader({ ...header, ...changes }).sign(key)
const without = (name: keyof typeof claims) => {
  const { [name]: _, ...rest } = claims
  return server.deps.keys.sign('RS256', 'at+jwt', rest)
}
const withParts = async (change: (parts: [string, string, string]) => readonly string[]) => {
  const [head = '', payload = '', signature = ''] = (await genuine()).split('.')
  return change([head, payload, signature]).join('.')
}
const encrypt = () =>
  importJWK({ ...rsa, alg: 'RSA-OAEP-256' }, 'RSA-OAEP-256').then((key) =>
    new CompactEncrypt(Buffer.from(JSON.stringify(claims)))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', kid, typ: 'at+jwt' })
      .encrypt(key),
  )
const publicKeyAsSecret = async () => {
  if (rsaKey instanceof Uint8Array) throw new Error('an RSA key is no bytes')
  return signedWith(new TextEncoder().encode(await exportSPKI(rsaKey)), { alg: 'HS256' })
}
const ofHeader = (changes: object) =>
  withParts(([, payload, signature]) => [encoded({ ...header, ...changes }), payload, signature])

const forgeries: readonly [string, () => Promise<string>][] = [
  [
    'signed with nothing',
    () => withParts(([, payload]) => [encoded({ ...header, alg: 'none' }), payload, '']),
  ],
  ['that says none and keeps its signature', () => ofHeader({ alg: 'none' })],
  ['signed with the public key as a secret', publicKeyAsSecret],
  ['of another issuer', () => genuine({ iss: 'https://issuer.example' })],
  ['of an issuer that differs by a slash', () => genuine({ iss: `${server.issuer}/` })],
  ['for another API', () => genuine({ aud: other })],
  ['for its client', () => genuine({ aud: 'a client' })],
  ['for several other APIs', () => genuine({ aud: [other, server.issuer] })],
  ['for a part of the address', () => genuine({ aud: notes.slice(0, -1) })],
  ['that has expired', () => genuine({ exp: now })],
  ['that expires in words', () => genuine({ exp: String(now + 600) })],
  ['that is not valid yet', () => genuine({ nbf: now + 600 })],
  ['typed as an ID Token', () => genuine({}, 'JWT')],
  ['that is an ID Token', async () => (await tokensAt(server)).id_token],
  ['that is an ID Token for this API', () => genuine({ nonce: 'n', at_hash: 'x' }, 'JWT')],
  ['that is a refresh token', async () => (await tokensAt(server)).refresh_token],
  [
    'that is a code',
    () => obtainCode(server, client, { agent, fields: { resource: notes, scope: 'courses:read' } }),
  ],
  [
    'with other claims than were signed',
    () => withParts(([head, , sign]) => [head, encoded({ ...claims, sub: 'x' }), sign]),
  ],
  [
    'with a part of its signature',
    () => withParts(([head, payload, sign]) => [head, payload, sign.slice(0, -4)]),
  ],
  ['signed by a key that is not published', () => signedWith(foreign.privateKey, {})],
  ['that brings its own key', () => signedWith(foreign.privateKey, { jwk: rsa })],
  ['of a key identifier that is not published', () => signedWith(foreign.privateKey, { kid: 'who' })],
  [
    'without a key identifier, of a key that is not published',
    () => signedWith(foreign.privateKey, { kid: undefined }),
  ],
  ['that is encrypted', encrypt],
  ['that says nothing', async () => '..'],
  ...(Object.keys(claims) as (keyof typeof claims)[])
    .filter((name) => name !== 'scope')
    .map((name): [string, () => Promise<string>] => [`without ${name}`, () => without(name)]),
]

t.test(
  '[rfc9068-4-rs-validation] [rfc9068-4-rs-typ-check] anything that is not a valid at+jwt for this API is 401 invalid_token with a challenge, and never anonymous',
  async (t) => {
    for (const [about, make] of forgeries) {
      const { status, body, challenge } = await callAt(read, await make())
      t.equal(status, 401, about)
      t.strictSame(Object.keys(body), ['error', 'error_description'], about)
      t.equal(body['error'], 'invalid_token', about)
      t.match(challenge, /^Bearer error="invalid_token", .*resource_metadata="[^"]+"$/, about)
    }
    t.match(await callAt(read, await genuine()), { status: 200, body: { caller: { sub: 'alice' } } })
    const short = await callAt(read, await without('scope'))
    t.match(short, { status: 403, body: { error: 'insufficient_scope' } }, 'without scope it may do nothing')
  },
)

t.test(
  '[rfc9068-4-rs-validation] a token with several audiences, a time from a fast clock or unknown claims is valid',
  async (t) => {
    const accepted: readonly [string, () => Promise<string>][] = [
      ['this API among its audiences', () => genuine({ aud: [other, notes] })],
      ['an issuer whose clock is ahead: only exp ends it', () => genuine({ iat: now + 60, exp: now + 660 })],
      ['unknown claims', () => genuine({ groups: ['x'], nbf: now - 1 })],
    ]
    for (const [about, make] of accepted) t.equal((await callAt(read, await make())).status, 200, about)
  },
)

/** The lines a server logged about this path. */
const asked = ({ log }: TestServer, path: string) => log.filter((line) => line.includes(`"${path}"`)).length

t.test(
  'the keys are fetched once, and tokens are verified while the authorization server is down',
  async (t) => {
    const own = await startServer(t, options)
    const by = newUser(own).agent
    const { access_token: token } = await tokensAt(own, await register(own), by)
    const resource = `http://127.0.0.1:${await freePort()}`
    const verify = signedBy({ issuer: own.issuer, jwksUri: `${own.issuer}/api/oauth/jwks` })
    await startApi(t, resource, {
      anonymous: 'allow',
      // The token is for `notes`: only this API matters.
      verifyToken: async (text) => {
        const access = await verify(text)
        return access && 'audience' in access ? { ...access, audience: [resource] } : access
      },
    })
    t.equal(asked(own, '/api/oauth/jwks'), 0)
    const calls = () => Promise.all(Array.from({ length: 10 }, () => callAt(`${resource}/read`, token)))
    for (const { status } of [...(await calls()), ...(await calls())]) t.equal(status, 200)
    t.equal(asked(own, '/api/oauth/jwks'), 1, 'one look at the keys for twenty calls')
    t.equal(asked(own, '/api/oauth/introspect'), 0)
    await own.close()
    await t.rejects(fetch(own.issuer), 'it is down')
    for (const { status } of await calls()) t.equal(status, 200)
    const forged = await callAt(`${resource}/read`, `${token.slice(0, -8)}AAAAAAAA`)
    t.equal(forged.status, 401, 'and forgeries are still detected')
  },
)

t.test(
  'a revoked JWT is rejected at once by an API that introspects, and at its expiry by one that does not',
  async (t) => {
    const asking = `http://127.0.0.1:${await freePort()}`
    const introspected = introspectedBy(await addResourceServer(server, notes))
    await startApi(t, asking, {
      anonymous: 'allow',
      verifyToken: async (text) => {
        const access = await introspected(text)
        return access && 'audience' in access && access.audience.includes(notes)
          ? { ...access, audience: [asking] }
          : undefined
      },
    })
    const revokes: readonly [string, (of: Awaited<ReturnType<typeof tokensAt>>) => Promise<unknown>][] = [
      [
        'itself',
        ({ access_token: token }) => post(server, '/api/oauth/revoke', { token, client_id: client.id }),
      ],
      [
        'its grant',
        ({ refresh_token: token }) => post(server, '/api/oauth/revoke', { token, client_id: client.id }),
      ],
    ]
    for (const [about, revoke] of revokes) {
      const issued = await tokensAt(server)
      for (const url of [read, `${asking}/read`])
        t.equal((await callAt(url, issued.access_token)).status, 200)
      await revoke(issued)
      t.match(
        await callAt(`${asking}/read`, issued.access_token),
        { status: 401, body: { error: 'invalid_token' } },
        about,
      )
      t.equal((await callAt(read, issued.access_token)).status, 200, `${about}: exp ends it`)
    }
    const replayed = await obtainCode(server, client, {
      agent,
      fields: { scope: 'courses:read', resource: notes },
    })
    const first = (await (await exchange(server, client, replayed)).json()) as { access_token: string }
    t.equal((await callAt(`${asking}/read`, first.access_token)).status, 200)
    t.equal((await exchange(server, client, replayed)).status, 400)
    t.equal((await callAt(`${asking}/read`, first.access_token)).status, 401, 'a replayed code ends it too')
  },
)
