/** An authorization server whose keys change while an API keeps verifying, RFC 9068 §4. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { signedBy } from '../../src/guard/guard.ts'
import { freePort } from '../helpers/free-port.ts'
import { callAt, startApi } from '../helpers/guarded-api.ts'

const issuer = 'https://issuer.example'

async function newKey(kid: string) {
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' } }
}
type Key = Awaited<ReturnType<typeof newKey>>
const [first, second, third] = await Promise.all([newKey('first'), newKey('second'), newKey('third')])

/** An API behind the guard, and the keys that are published for it. */
async function startScene(t: Test, ...keys: readonly Key[]) {
  const site = { keys, status: 200, fetched: 0 }
  const listener = createServer((_request, response) => {
    site.fetched += 1
    response.writeHead(site.status).end(JSON.stringify({ keys: site.keys.map(({ jwk }) => jwk) }))
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  const address = listener.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const resource = `http://127.0.0.1:${await freePort()}`
  const verifyToken = signedBy({ issuer, jwksUri: `http://127.0.0.1:${port}/jwks` })
  await startApi(t, resource, { verifyToken, anonymous: 'allow' })

  // The guard's copy of the keys ages by the clock of its process.
  const { now } = Date
  let skew = 0
  t.intercept(Date, 'now', { value: () => now() + skew * 1000 })
  /** The response of the API to a token of this key. */
  const status = async (key: Key, header: object) => {
    const at = Math.floor(now() / 1000)
    const claims = { aud: resource, sub: 'alice', client_id: 'x', jti: '1', scope: 'courses:read' }
    const token = await new SignJWT({ ...claims, iss: issuer, iat: at, exp: at + 60 })
      .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', ...header })
      .sign(key.privateKey, { crit: { x: true } })
    return (await callAt(`${resource}/read`, token)).status
  }
  const callWith = (key: Key) => status(key, { kid: key.jwk.kid })
  const pass = (seconds: number) => {
    skew += seconds
  }
  return { site, status, callWith, pass }
}

t.test('a key that was published before it signs is found when its first token arrives', async (t) => {
  const { site, callWith, pass } = await startScene(t, first)
  t.equal(await callWith(first), 200)
  site.keys = [first, second]
  pass(31)
  t.equal(await callWith(second), 200)
  t.equal(await callWith(first), 200, 'and the one before still counts')
  t.equal(site.fetched, 2)
})

t.test(
  'tokens with unknown keys make the guard fetch once in thirty seconds, and lock no client out',
  async (t) => {
    const { site, callWith, pass } = await startScene(t, first)
    t.equal(await callWith(first), 200)
    for (let times = 0; times < 5; times += 1) t.equal(await callWith(third), 401)
    t.equal(site.fetched, 1, 'the keys were just fetched')
    pass(31)
    for (let times = 0; times < 5; times += 1) t.equal(await callWith(third), 401)
    t.equal(site.fetched, 2)
    t.equal(await callWith(first), 200)
    site.keys = [first, second]
    t.equal(await callWith(second), 401, 'a key published a moment ago signs too early')
    pass(31)
    t.equal(await callWith(second), 200)
  },
)

t.test('a key that is no longer published is accepted for at most ten minutes', async (t) => {
  const { site, callWith, pass } = await startScene(t, first, second)
  t.equal(await callWith(first), 200)
  site.keys = [second]
  pass(599)
  t.equal(await callWith(first), 200)
  pass(2)
  t.equal(await callWith(first), 401)
  t.equal(await callWith(second), 200)
  t.equal(site.fetched, 2)
})

t.test('while the keys cannot be fetched the API responds 503', async (t) => {
  const { site, callWith, pass } = await startScene(t, first)
  t.equal(await callWith(first), 200)
  site.status = 500
  pass(599)
  t.equal(await callWith(first), 200, 'its own copy is good for ten minutes')
  pass(2)
  t.equal(await callWith(first), 503)
  site.status = 200
  t.equal(await callWith(first), 200)
})

t.test(
  'a token without a key identifier is verified by the one key of its algorithm, or rejected',
  async (t) => {
    const { site, status, pass } = await startScene(t, first)
    t.equal(await status(first, {}), 200)
    t.equal(await status(second, {}), 401)
    site.keys = [first, second]
    pass(601)
    t.equal(await status(first, {}), 401, 'which of two keys is not guessed')
    t.equal(await status(first, { kid: 'first' }), 200)
  },
)

const headers: readonly [string, object][] = [
  ['of no type', { typ: undefined }],
  ['of the type of an ID Token', { typ: 'JWT' }],
  ['with an unknown extension', { crit: ['x'], x: 1 }],
  ['that names another key', { kid: 'second' }],
]
t.test(
  '[rfc9068-4-rs-validation] [rfc9068-4-rs-typ-check] a valid signature does not excuse a wrong header',
  async (t) => {
    const { status } = await startScene(t, first, second)
    for (const [about, header] of headers) {
      const signed = status(first, { kid: 'first', ...header }).catch(({ message }) => message)
      t.equal(await signed, 401, about)
    }
    t.equal(await status(first, { kid: 'first' }), 200)
    t.equal(await status(first, { kid: 'first', typ: 'application/at+jwt' }), 200)
  },
)
