import { createPublicKey, sign } from 'node:crypto'
import t from 'tap'
import { assertProof, noncesBy, normalizedUrl, readProof } from '../../src/domain/dpop-proof.ts'
import { OAuthError } from '../../src/domain/errors.ts'
import { openHandle, sealHandle } from '../../src/domain/handle.ts'
import { verifies } from '../../src/domain/jws.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { fc } from '../helpers/generated.ts'
import { signProof } from '../helpers/proofs.ts'
import { approved, handleKey, handleKeys } from '../helpers/samples.ts'

const key = makeClientKey('ES256')
const [url, now] = ['https://auth.example/api/oauth/token', 1_800_000_000]
const request = { method: 'POST', url, now }

/** Whether these fields are a proof for the request; anything but an `invalid_dpop_proof` is thrown on. */
function isProof(...fields: readonly string[]): boolean {
  try {
    assertProof(readProof(fields), request)
    return true
  } catch (error) {
    if (error instanceof OAuthError && error.code === 'invalid_dpop_proof') return false
    throw error
  }
}

t.test('no header field that was not signed is a proof, and none is a failure of the server', async (t) => {
  const good = signProof(key, request)
  t.equal(isProof(good), true)
  const position = fc.nat(good.length - 1)
  const piece = fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('.', ',', '=', 'eyJ', 'A', '_', ' '))
  fc.assert(
    fc.property(position, fc.nat(4), piece, (at, cut, put) => {
      const damaged = good.slice(0, at) + put + good.slice(at + cut)
      // The last character of a signature has two bits that say nothing.
      return damaged === good || damaged.slice(0, -1) === good.slice(0, -1) || !isProof(damaged)
    }),
    { numRuns: 3000 },
  )
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 60 }), { maxLength: 3 }), (fields) => !isProof(...fields)),
  )
})

t.test('any header and claims are judged, and only those of RFC 9449 §4.2 accepted', async (t) => {
  const { kid: _, ...jwk } = key.jwk
  const odd = fc.jsonValue({ maxDepth: 2 })
  const header = fc.record({ typ: odd, alg: odd, jwk: odd, crit: odd }, { requiredKeys: [] })
  const claims = fc.record({ jti: odd, htm: odd, htu: odd, iat: odd }, { requiredKeys: [] })
  fc.assert(
    fc.property(header, claims, (some, more) => {
      const isChanged = Object.keys(some).length + Object.keys(more).length > 0
      const proof = signProof(key, request, { header: some, claims: more })
      const { jti } = more
      const onlyJti = Object.keys(some).length === 0 && Object.keys(more).join() === 'jti'
      if (onlyJti && typeof jti === 'string' && jti !== '') return isProof(proof)
      return isProof(proof) !== isChanged
    }),
    { numRuns: 2000 },
  )
  for (const member of Object.keys(jwk)) {
    const changed = { ...jwk, [member]: `${jwk[member]}x` }
    t.equal(isProof(signProof(key, request, { header: { jwk: changed } })), false, member)
  }
})

t.test('the normal form of a URL is one, and never that of another host', async (t) => {
  const segment = fc.string({
    unit: fc.constantFrom('a', 'Z', '.', '%', '2', 'e', 'E', '7', '~', '-', ';', '@', ':'),
    maxLength: 8,
  })
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 4 }), fc.constantFrom('', ':443', ':8443'), (path, port) => {
      const text = `https://auth.example${port}/${path.join('/')}`
      const normal = normalizedUrl(text)
      if (normal === undefined) return /%(?![0-9a-f]{2})/i.test(text)
      const upper = text.replace('https://auth.example', 'HTTPS://Auth.Example')
      const { host, search, hash } = new URL(normal)
      const isHost = host === `auth.example${port === ':8443' ? port : ''}`
      return (
        isHost &&
        search + hash === '' &&
        normalizedUrl(normal) === normal &&
        normalizedUrl(`${upper}?a#b`) === normal
      )
    }),
    { numRuns: 3000 },
  )
  t.equal(normalizedUrl('https://auth.example'), 'https://auth.example/')
  for (const wrong of [
    '',
    'auth.example',
    'ftp://a.example',
    'https://',
    'https://a@b.example',
    'https://a\\b.example/',
  ])
    t.equal(normalizedUrl(wrong), undefined, wrong)
})

t.test('a nonce is accepted for 30 to 60 seconds, and 30 ahead for a node whose clock is late', async (t) => {
  const nonces = noncesBy((window) => `of ${window}`)
  fc.assert(
    fc.property(
      fc.integer({ min: 100_000, max: 2_000_000_000 }),
      fc.integer({ min: -90, max: 120 }),
      (at, later) => {
        const windows = Math.floor((at + later) / 30) - Math.floor(at / 30)
        return nonces.accepts(nonces.current(at), at + later) === Math.abs(windows) <= 1
      },
    ),
  )
  t.equal(nonces.accepts(undefined, now), false)
})

t.test('a handle keeps its confirmation, with and without a narrowing', async (t) => {
  const words = fc.array(fc.stringMatching(/^[a-z:/.]{1,12}$/), { maxLength: 4 })
  const narrowing = fc.option(fc.record({ scope: words, resource: words }), { nil: undefined })
  const confirmation = fc.option(fc.record({ jkt: fc.stringMatching(/^[\w-]{43}$/) }), { nil: undefined })
  fc.assert(
    fc.property(narrowing, confirmation, (narrowed, bound) => {
      const contents = {
        kind: 'access',
        grantId: approved.id,
        seq: 1,
        issuedAt: now,
        expiresAt: now + 60,
        ...(narrowed && { narrowing: narrowed }),
        ...(bound && { confirmation: bound }),
      } as const
      const opened = openHandle(handleKeys, sealHandle(contents, handleKey, approved.secret), 'access')
      return JSON.stringify([opened?.narrowing, opened?.confirmation]) === JSON.stringify([narrowed, bound])
    }),
  )
  t.pass()
})

t.test('a signature by ES256 is that of its two numbers, whatever their size', async (t) => {
  const text = Buffer.from('signed')
  const one = (first: number) => Buffer.concat([Buffer.of(first), Buffer.alloc(31, 1)])
  const verify = (signature: Buffer) => verifies('ES256', createPublicKey(key.privateKey), text, signature)
  const lengths = new Set<string>()
  // One of 256 numbers begins with a zero byte, and half of them with a one bit.
  for (let tried = 0; lengths.size < 8 && tried < 50_000; tried++) {
    const signature = sign('sha256', text, { key: key.privateKey, dsaEncoding: 'ieee-p1363' })
    const size = (byte = 0) => (byte === 0 ? 'short' : byte > 127 ? 'long' : 'usual')
    const kind = `${size(signature[0])} ${size(signature[32])}`
    if (lengths.has(kind)) continue
    lengths.add(kind)
    t.ok(verify(signature), kind)
    signature.writeUInt8(signature.readUInt8(63) ^ 1, 63)
    t.notOk(verify(signature), `${kind}, another number`)
  }
  t.equal(lengths.size, 8, [...lengths].join(', '))
  const der = sign('sha256', text, key.privateKey)
  for (const bad of [der, Buffer.alloc(64), Buffer.alloc(0), Buffer.concat([one(1), one(2), one(3)])])
    t.notOk(verify(bad), `${bad.length} bytes`)
})
