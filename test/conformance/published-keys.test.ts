import { createRemoteJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import t from 'tap'
import { keyAlgorithms } from '../../src/domain/key-term.ts'
import { rotateKeys, rotationNeeds } from '../../src/keys/rules.ts'
import { register } from '../helpers/flow.ts'
import { assertRejected, json, startFlow } from '../helpers/wire.ts'

const { server, tokens } = await startFlow(t)
const url = `${server.issuer}/api/oauth/jwks`

async function published(): Promise<JSONWebKeySet> {
  return (await (await fetch(url)).json()) as JSONWebKeySet
}

t.test(
  '[oidc-disc-3-jwks-uri] [rfc8414-2-jwks-uri] [oidc-core-10.1-kty-use] [oidc-core-15.2-bare-keys] the key set holds bare public signing keys, each with its own kid',
  async (t) => {
    const response = await fetch(url)
    t.equal(response.status, 200, '[rfc8414-2-jwks-uri]')
    t.match(response.headers.get('content-type'), /^application\/json/)
    const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
    t.equal(metadata['jwks_uri'], url, '[rfc8414-2-jwks-uri]')
    const { keys } = await published()
    t.strictSame(keys.map(({ alg }) => alg).sort(), ['ES256', 'EdDSA', 'RS256'])
    t.equal(new Set(keys.map(({ kid }) => kid)).size, keys.length)
    const members = { RSA: ['n', 'e'], EC: ['crv', 'x', 'y'], OKP: ['crv', 'x'] }
    for (const key of keys) {
      const kty = key.kty as keyof typeof members
      const bare = ['alg', 'kid', 'kty', 'use', ...members[kty]].sort()
      t.strictSame(Object.keys(key).sort(), bare, `[oidc-core-15.2-bare-keys] ${kty}`)
      for (const name of ['d', 'p', 'q', 'k'])
        t.notOk(name in key, '[oidc-disc-3-jwks-uri] no private member')
      t.equal(key.use, 'sig', '[oidc-core-10.1-kty-use]')
    }
    await assertRejected(t, await fetch(url, { method: 'POST' }), 'invalid_request', 405)
  },
)

t.test(
  '[oidc-core-10.1-published-key] the kid of an ID Token identifies the one key that verifies it',
  async (t) => {
    const { keys } = await published()
    for (const alg of ['RS256', 'ES256', 'EdDSA']) {
      const client = await register(server, { id_token_signed_response_alg: alg })
      const { id_token: idToken } = await tokens({}, client)
      const { protectedHeader } = await jwtVerify(idToken, createRemoteJWKSet(new URL(url)))
      t.equal(keys.filter(({ kid }) => kid === protectedHeader.kid).length, 1)
      t.equal(keys.find(({ kid }) => kid === protectedHeader.kid)?.alg, alg)
    }
  },
)

t.test(
  '[oidc-core-10.1-published-key] the key that signs by RS256 is the first of the set, before and after a rotation',
  async (t) => {
    const policy = {
      algorithms: keyAlgorithms,
      rotationSeconds: 1000,
      publishAheadSeconds: 100,
      overlapSeconds: { signing: 500, handle: 2000 },
    }
    server.advance(1)
    const first = await published()
    const algorithms = (keys: readonly { readonly alg?: string }[]) => keys.map(({ alg }) => alg)
    t.strictSame(algorithms(first.keys), ['RS256', 'ES256', 'EdDSA'])
    await server.deps.keys.change(
      {
        needs: (ring, now) => rotationNeeds(ring, keyAlgorithms, now),
        decide: (ring, fresh, now) =>
          rotateKeys(ring, { algorithms: keyAlgorithms, at: 'once' }, fresh, policy, now),
      },
      {},
    )
    const { keys } = await published()
    t.strictSame(algorithms(keys), ['RS256', 'RS256', 'ES256', 'ES256', 'EdDSA', 'EdDSA'])
    const former = keys.filter((_, index) => index % 2 === 1)
    t.strictSame(former, first.keys, 'the keys of before follow those that sign')
    const { id_token: idToken } = await tokens()
    t.equal(decodeProtectedHeader(idToken).kid, keys[0]?.kid)
  },
)
