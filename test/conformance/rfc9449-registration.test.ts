/** Registration access tokens bound to a key, RFC 9449 §7 for the endpoint of RFC 7592. */
import t, { type Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { initialTokenKind, mintInitialToken } from '../../src/domain/initial-token.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { signProof } from '../helpers/proofs.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { assertRejected, type Json, json } from '../helpers/wire.ts'

const server = await startServer(t)
const key = makeClientKey('ES256')
const loopback = 'http://127.0.0.1:7777/cb'
const endpoint = `${server.issuer}/api/oauth/register`

interface Sent {
  readonly method?: string
  readonly authorization?: string
  readonly proof?: string
  readonly body?: Json
}

function send(url: string, { method = 'GET', authorization, proof, body }: Sent) {
  const headers = {
    ...(authorization !== undefined && { authorization }),
    ...(proof !== undefined && { dpop: proof }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  return fetch(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
}

const proofOf = (method: string, url: string, token?: string, by = key, of: TestServer = server) =>
  signProof(by, { method, url, now: of.now(), token })

async function register(proof?: string, sent: Sent = {}): Promise<Json> {
  const body = { redirect_uris: [loopback] }
  const response = await send(endpoint, {
    method: 'POST',
    body,
    ...sent,
    ...(proof !== undefined && { proof }),
  })
  if (response.status !== 201) throw new Error(await response.text())
  return json(response)
}

async function assertChallenged(t: Test, response: Response, scheme: string, error: string, about: string) {
  t.match(response.headers.get('www-authenticate'), new RegExp(`^${scheme} error="${error}"`), about)
  await assertRejected(t, response, error, 401, about)
}

t.test(
  '[rfc9449-7.2-no-downgrade] [rfc9449-7.1-rs-checks] a token registered for with a proof needs its key',
  async (t) => {
    const client = await register(proofOf('POST', endpoint))
    const url = String(client['registration_client_uri'])
    const token = String(client['registration_access_token'])
    for (const scheme of ['DPoP', 'dpop'])
      t.equal(
        (await send(url, { authorization: `${scheme} ${token}`, proof: proofOf('GET', url, token) })).status,
        200,
      )
    const authorization = `DPoP ${token}`
    const downgrade = await send(url, { authorization: `Bearer ${token}` })
    await assertChallenged(t, downgrade, 'Bearer', 'invalid_token', '[rfc9449-7.2-no-downgrade]')
    const stranger = proofOf('GET', url, token, makeClientKey('ES256'))
    const used = proofOf('GET', url, token)
    t.equal((await send(url, { authorization, proof: used })).status, 200)
    for (const [proof, about] of [
      [undefined, '[rfc9449-7.1-rs-checks] no proof'],
      [stranger, 'another key'],
      [used, 'used before'],
      [proofOf('GET', url), 'for no token'],
      [proofOf('PUT', url, token), 'for another method'],
      [proofOf('GET', endpoint, token), 'for another URL'],
    ] as const) {
      const response = await send(url, { authorization, ...(proof !== undefined && { proof }) })
      await assertChallenged(t, response, 'DPoP', 'invalid_dpop_proof', about)
    }
    const metadata = { client_id: client['client_id'], redirect_uris: [loopback], client_name: 'Named' }
    for (const method of ['PUT', 'DELETE']) {
      const body = method === 'PUT' ? { body: metadata } : {}
      const bare = await send(url, { method, authorization: `Bearer ${token}`, ...body })
      await assertChallenged(t, bare, 'Bearer', 'invalid_token', method)
      const proof = proofOf(method, url, token)
      const response = await send(url, { method, authorization, proof, ...body })
      t.equal(response.status, method === 'PUT' ? 200 : 204, method)
      // What has changed keeps its key.
      const after = await send(url, { authorization: `Bearer ${token}` })
      await assertChallenged(t, after, 'Bearer', 'invalid_token', `after ${method}`)
    }
  },
)

t.test('[rfc7592-2-bearer-required] without a proof it is a bearer token, and offers both', async (t) => {
  const client = await register()
  const url = String(client['registration_client_uri'])
  const token = String(client['registration_access_token'])
  t.equal((await send(url, { authorization: `Bearer ${token}` })).status, 200)
  const proven = await send(url, { authorization: `DPoP ${token}`, proof: proofOf('GET', url, token) })
  await assertChallenged(t, proven, 'DPoP', 'invalid_token', 'it is bound to no key')
  const missing = await send(url, {})
  t.equal(missing.status, 401, '[rfc7592-2-bearer-required]')
  t.equal(
    missing.headers.get('www-authenticate'),
    'Bearer realm="client configuration", DPoP algs="ES256 PS256 EdDSA Ed25519"',
  )
  const wrong = await send(endpoint, { method: 'POST', body: { redirect_uris: [loopback] }, proof: 'x' })
  await assertRejected(t, wrong, 'invalid_dpop_proof', 400, 'a wrong proof is not ignored')
})

t.test('[rfc7591-3-initial-access-token] an initial access token may be sent with a proof', async (t) => {
  const request = { redirects: 'https', pkce: 'required', uses: 2 } as const
  const { token, record } = mintInitialToken(request, Buffer.alloc(32, 1), 3600, server.now())
  await server.deps.store.write(insert(initialTokenKind, record))
  const sent = { authorization: `DPoP ${token}`, body: { redirect_uris: ['https://app.example/cb'] } }
  const bare = await send(endpoint, { method: 'POST', ...sent })
  await assertRejected(t, bare, 'invalid_token', 401, '[rfc7591-3-initial-access-token] no open registration')
  const other = await send(endpoint, { method: 'POST', ...sent, proof: proofOf('POST', endpoint) })
  await assertRejected(t, other, 'invalid_dpop_proof', 400, 'a proof for no token')
  const client = await register(proofOf('POST', endpoint, token), sent)
  const url = String(client['registration_client_uri'])
  const own = String(client['registration_access_token'])
  t.equal((await send(url, { authorization: `DPoP ${own}`, proof: proofOf('GET', url, own) })).status, 200)
  await register(undefined, { ...sent, authorization: `Bearer ${token}` })
})
