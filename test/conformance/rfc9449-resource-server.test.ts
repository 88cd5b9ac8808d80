/** Tokens bound to a key at APIs, RFC 9449 §7: of this server, and of other applications behind the guard. */
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { dpop, guard, introspectedBy, signedBy } from '../../src/guard/guard.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { type Fields, obtainCode, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { addResourceServer, startApi } from '../helpers/guarded-api.ts'
import { postProven, signProof, tokenPath } from '../helpers/proofs.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'
import { addClient, challengeOf, json } from '../helpers/wire.ts'

const [notes, signed, strictNotes, tools] = await Promise.all(
  [1, 2, 3, 4].map(async () => `http://127.0.0.1:${await freePort()}`),
)
if (notes === undefined || signed === undefined || strictNotes === undefined || !tools)
  throw new Error('no ports')
const api = { name: 'Notes', scopes: ['courses:read', 'courses:write'] }
const server = await startServer(t, {
  resources: [
    { identifier: notes, tokenFormat: 'opaque', ...api },
    { identifier: strictNotes, tokenFormat: 'opaque', ...api },
    { identifier: signed, tokenFormat: 'jwt', ...api },
    { identifier: tools, tokenFormat: 'opaque', ...api },
  ],
})
const demanding = await startServer(t, { dpop: { nonce: 'always' } })
const key = makeClientKey('ES256')
const other = makeClientKey('ES256')
const algs = 'ES256 PS256 EdDSA Ed25519'

/** A bound token of a new grant, or a bearer token without a key. */
async function obtain(by: typeof key | null = key, fields: Fields = {}, of: TestServer = server) {
  const client = await register(of)
  const { agent } = newUser(of)
  const code = await obtainCode(of, client, { agent, fields: { scope: 'openid courses:read', ...fields } })
  const redemption = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: client.redirectUri,
    code_verifier: 'v'.repeat(43),
  }
  const send = (nonce?: string) => {
    const proofs = by === null ? [] : [signProof(by, { url: of.issuer + tokenPath, now: of.now(), nonce })]
    return postProven(of, client, tokenPath, redemption, ...proofs)
  }
  const first = await send()
  const nonce = first.headers.get('dpop-nonce')
  const tokens = await json(first.status === 200 || nonce === null ? first : await send(nonce))
  return { client, token: String(tokens['access_token']) }
}

interface Call {
  readonly method?: string
  readonly scheme?: string
  readonly proof?: string | undefined
}

/** A call with a token and, unless it is undefined, a proof. */
function call(url: string, token: string, { method = 'GET', scheme = 'DPoP', proof }: Call = {}) {
  const headers = new Headers({ authorization: `${scheme} ${token}` })
  if (proof !== undefined) headers.set('dpop', proof)
  return fetch(url, { method, headers })
}

/** A call with a fresh proof. */
function proven(url: string, token: string, { method = 'GET', scheme }: Call = {}, nonce?: string, by = key) {
  const proof = signProof(by, { method, url, now: server.now(), token, nonce })
  return call(url, token, { method, proof, ...(scheme !== undefined && { scheme }) })
}

async function assertChallenged(t: Test, response: Response, error: string, about: string) {
  t.equal(response.status, 401, about)
  const { scheme, params } = challengeOf(response)
  t.equal(scheme, 'DPoP', `${about}: scheme`)
  t.match(params, { error, algs, resource_metadata: /^http/ }, `${about}: challenge`)
  t.equal((await json(response))['error'], error, `${about}: body`)
}

t.test('[rfc9449-7.1-rs-checks] a bound token opens the APIs of this server with a proof', async (t) => {
  const { token } = await obtain()
  const [courses, userInfo] = [`${server.issuer}/api/courses`, `${server.issuer}/api/oauth/userinfo`]
  for (const scheme of ['DPoP', 'dpop', 'DPOP']) {
    t.equal((await proven(courses, token, { scheme })).status, 200, `[rfc9449-7.1-rs-checks] ${scheme}`)
    t.equal((await proven(userInfo, token, { scheme })).status, 200, `UserInfo, ${scheme}`)
  }
  t.equal((await proven(userInfo, token, { method: 'POST' })).status, 200, 'UserInfo by POST')
  t.equal((await proven(`${courses}?page=2`, token)).status, 200, 'a query does not count')
  t.equal((await proven(courses, token, { method: 'HEAD' })).status, 200, 'HEAD')
  const response = await proven(courses, token, { method: 'POST' })
  t.equal(response.status, 403)
  const { scheme, params } = challengeOf(response)
  t.match(
    { scheme, ...params },
    { scheme: 'DPoP', algs, error: 'insufficient_scope', scope: 'courses:write' },
  )
})

t.test(
  '[rfc9449-7.1-rs-checks] [rfc9449-7.1-challenge] each check of a proof has its challenge',
  async (t) => {
    const { token } = await obtain()
    const url = `${server.issuer}/api/courses`
    const now = server.now()
    const wrong: readonly (readonly [string, string | undefined])[] = [
      ['rfc9449-4.3-single-header', undefined],
      ['rfc9449-4.3-well-formed', 'x'],
      ['rfc9449-4.3-typ', signProof(key, { method: 'GET', url, now, token }, { header: { typ: 'JWT' } })],
      ['rfc9449-4.3-alg', signProof(key, { method: 'GET', url, now, token }, { header: { alg: 'none' } })],
      ['rfc9449-4.3-htm', signProof(key, { url, now, token })],
      ['rfc9449-4.3-htu', signProof(key, { method: 'GET', url: `${url}/1`, now, token })],
      ['rfc9449-4.3-iat', signProof(key, { method: 'GET', url, now: now - 600, token })],
      ['rfc9449-4.3-ath', signProof(key, { method: 'GET', url, now })],
      ['rfc9449-4.3-ath', signProof(key, { method: 'GET', url, now, token: `${token}x` })],
      ['rfc9449-4.3-bound-key', signProof(other, { method: 'GET', url, now, token })],
    ]
    for (const [rule, proof] of wrong) {
      const about = `[${rule === 'rfc9449-4.3-single-header' ? 'rfc9449-7.1-challenge' : rule}] ${rule}`
      await assertChallenged(t, await call(url, token, { proof }), 'invalid_dpop_proof', about)
      t.match(
        server.log.findLast((line) => line.includes('invalid_dpop_proof')),
        `"${rule}"`,
        about,
      )
    }
    const proof = signProof(key, { method: 'GET', url, now, token })
    t.equal((await call(url, token, { proof })).status, 200)
    await assertChallenged(t, await call(url, token, { proof }), 'invalid_dpop_proof', 'a proof used twice')
    const garbage = await call(url, 'garbage', { proof })
    await assertChallenged(t, garbage, 'invalid_token', '[rfc9449-7.1-challenge] no token of this server')
  },
)

t.test('[rfc9449-7.2-no-downgrade] a token is accepted under its own scheme only', async (t) => {
  const bound = await obtain()
  const bearer = await obtain(null)
  const url = `${server.issuer}/api/courses`
  const userInfo = `${server.issuer}/api/oauth/userinfo`
  for (const scheme of ['Bearer', 'bearer'])
    for (const one of [url, userInfo]) {
      const about = `[rfc9449-7.2-no-downgrade] ${scheme}`
      await assertChallenged(t, await call(one, bound.token, { scheme }), 'invalid_token', about)
      await assertChallenged(
        t,
        await proven(one, bound.token, { scheme }),
        'invalid_token',
        `${about}, proof`,
      )
    }
  const form = await fetch(userInfo, {
    method: 'POST',
    body: new URLSearchParams({ access_token: bound.token }),
  })
  await assertChallenged(t, form, 'invalid_token', '[rfc9449-7.2-no-downgrade] a form')
  await assertChallenged(t, await proven(url, bearer.token), 'invalid_token', 'a bearer token under DPoP')
  t.equal((await call(url, bearer.token, { scheme: 'Bearer' })).status, 200)
  const revoked = await postProven(server, bound.client, '/api/oauth/revoke', { token: bound.token })
  t.equal(revoked.status, 200, 'a bound token is revoked as any other')
  await assertChallenged(t, await proven(url, bound.token), 'invalid_token', 'and is over then')
})

t.test('[rfc9449-8-nonce] an API demands a nonce, and gives one with each response', async (t) => {
  const { token } = await obtain(key, {}, demanding)
  const url = `${demanding.issuer}/api/courses`
  const first = await proven(url, token)
  await assertChallenged(t, first, 'use_dpop_nonce', '[rfc9449-8-nonce] no nonce')
  const nonce = first.headers.get('dpop-nonce') ?? ''
  const second = await proven(url, token, {}, nonce)
  t.equal(second.status, 200)
  t.match(second.headers.get('dpop-nonce'), /^[\w-]{22}$/)
  const headers = { authorization: `DPoP ${token}`, dpop: 'x', origin: 'https://page.example' }
  const page = await fetch(url, { headers })
  t.match(page.headers.get('dpop-nonce'), /./, 'so has an error about anything else')
  t.match(page.headers.get('access-control-expose-headers'), /DPoP-Nonce/)
})

t.test('[rfc9449-7.1-rs-checks] the guard of another API checks proofs', async (t) => {
  const credentials = await addResourceServer(server, notes)
  await startApi(t, notes, { verifyToken: introspectedBy(credentials), anonymous: 'challenge' })
  const verifyToken = signedBy({ issuer: server.issuer, jwksUri: `${server.issuer}/api/oauth/jwks` })
  await startApi(t, signed, { verifyToken, anonymous: 'challenge' })
  for (const resource of [notes, signed]) {
    const url = `${resource}/read`
    const { token } = await obtain(key, { resource, scope: 'courses:read' })
    const about = resource === notes ? 'introspection' : 'a JWT'
    t.equal((await proven(url, token)).status, 200, `[rfc9449-7.1-rs-checks] ${about}`)
    const proof = signProof(key, { method: 'GET', url, now: server.now(), token })
    t.equal((await call(url, token, { proof })).status, 200)
    await assertChallenged(t, await call(url, token, { proof }), 'invalid_dpop_proof', `${about}, replay`)
    await assertChallenged(t, await call(url, token), 'invalid_dpop_proof', `${about}, no proof`)
    const stranger = await proven(url, token, {}, undefined, other)
    await assertChallenged(t, stranger, 'invalid_dpop_proof', `${about}, another key`)
    const downgrade = await call(url, token, { scheme: 'Bearer' })
    await assertChallenged(t, downgrade, 'invalid_token', `[rfc9449-7.2-no-downgrade] ${about}`)
    const bearer = await obtain(null, { resource, scope: 'courses:read' })
    t.equal((await call(url, bearer.token, { scheme: 'Bearer' })).status, 200)
    await assertChallenged(t, await proven(url, bearer.token), 'invalid_token', `${about}, a bearer token`)
  }
})

t.test('[rfc9449-8-nonce] the guard of another API demands nonces, or only bearer tokens', async (t) => {
  const credentials = await addResourceServer(server, strictNotes)
  const verifyToken = introspectedBy(credentials)
  const schemes = [dpop({ nonceSecret: 'a secret of the API' })]
  await startApi(t, strictNotes, { verifyToken, anonymous: 'challenge', schemes })
  const { token } = await obtain(key, { resource: strictNotes, scope: 'courses:read' })
  const url = `${strictNotes}/read`
  const first = await proven(url, token)
  await assertChallenged(t, first, 'use_dpop_nonce', '[rfc9449-8-nonce]')
  const second = await proven(url, token, {}, first.headers.get('dpop-nonce') ?? '')
  t.equal(second.status, 200)
  t.match(second.headers.get('dpop-nonce'), /./)
  const app = Fastify()
  await app.register(guard, { resource: strictNotes, verifyToken, anonymous: 'challenge', schemes: [] })
  app.get('/read', { preHandler: app.requireScope('courses:read') }, async () => 'read')
  for (const scheme of ['Bearer', 'DPoP']) {
    const headers = { authorization: `${scheme} ${token}` }
    const response = await app.inject({ url: '/read', headers })
    t.equal(response.statusCode, 401, `[rfc9449-7.2-no-downgrade] ${scheme} without a scheme for it`)
    t.match(response.headers['www-authenticate'], /^Bearer /)
  }
})

t.test('[rfc9449-4.3-iat] an API accepts proofs of the window that it has, each once', async (t) => {
  const schemes = [dpop({ iatWindowSeconds: 300 })]
  for (const [resource, options] of [
    [tools, { schemes }],
    [notes, {}],
  ] as const) {
    const verifyToken = introspectedBy(await addResourceServer(server, resource))
    await startApi(t, resource, { verifyToken, anonymous: 'challenge', ...options })
  }
  const realNow = Date.now
  const now = Math.floor(realNow() / 1000)
  const tokens = {
    [tools]: (await obtain(key, { resource: tools, scope: 'courses:read' })).token,
    [notes]: (await obtain(key, { resource: notes, scope: 'courses:read' })).token,
  }
  const callAt = (resource: string, iat: number, jti = `${resource} ${iat}`) => {
    const [url, token] = [`${resource}/read`, tokens[resource] ?? '']
    const proof = signProof(key, { method: 'GET', url, now: iat, token }, { claims: { jti } })
    return call(url, token, { proof })
  }
  for (const offset of [-295, 295]) {
    t.equal((await callAt(tools, now + offset)).status, 200, `${offset} s`)
    const replay = await callAt(tools, now + offset)
    await assertChallenged(t, replay, 'invalid_dpop_proof', `${offset} s, used twice`)
    const strict = await callAt(notes, now + offset)
    await assertChallenged(
      t,
      strict,
      'invalid_dpop_proof',
      `[rfc9449-4.3-iat] ${offset} s, without an option`,
    )
  }
  for (const offset of [-310, 310]) {
    const response = await callAt(tools, now + offset)
    await assertChallenged(t, response, 'invalid_dpop_proof', `[rfc9449-4.3-iat] ${offset} s`)
  }
  // The guard has the clock of the system.
  for (const later of [100, 200, 290]) {
    t.intercept(Date, 'now', { value: () => realNow() + later * 1000 })
    t.equal((await callAt(tools, now + later)).status, 200, `${later} s later`)
    const replay = await callAt(tools, now + 295)
    await assertChallenged(t, replay, 'invalid_dpop_proof', `a proof that was used ${later} s ago`)
  }
  for (const iatWindowSeconds of [0, -1, 301, Number.NaN])
    t.throws(() => dpop({ iatWindowSeconds }), { name: 'RangeError' }, String(iatWindowSeconds))
})

t.test('a client of an operator can be one for bound tokens only', async (t) => {
  const description = { dpop_bound_access_tokens: true }
  const client = await addClient(server, { authenticationMethod: 'client_secret_post', description })
  const found = await server.deps.store.find('client', client.id)
  t.match(found?.extra, description)
})
