import t from 'tap'
import {
  assertFirstUse,
  assertNonce,
  assertProof,
  assertProofOfToken,
  noncesBy,
  normalizedUrl,
  proofAlgorithms,
  proofFields,
  proofMemory,
  readProof,
  useOfProof,
} from '../../src/domain/dpop-proof.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { passedDuring } from '../helpers/checks.ts'
import { signProof, thumbprintOf } from '../helpers/proofs.ts'

const now = 1_800_000_000
const url = 'https://auth.example/api/oauth/token'
const key = makeClientKey('ES256')
const proven = { url, now }
const sign = (change: Parameters<typeof signProof>[2] = {}) => signProof(key, proven, change)
const proofOf = (claims: Readonly<Record<string, unknown>> = {}) => readProof([sign({ claims })])
const code = 'invalid_dpop_proof'

t.test('one header with one proof by a public key is read', async (t) => {
  const proof = readProof([sign()])
  t.equal(proof.algorithm, 'ES256')
  t.equal(proof.jkt, thumbprintOf(key))
  t.equal(proof.key.kty, 'EC')
  t.strictSame(proofAlgorithms, ['ES256', 'PS256', 'EdDSA', 'Ed25519'])
  for (const alg of ['PS256', 'EdDSA', 'Ed25519'] as const) {
    const other = makeClientKey(alg)
    const read = readProof([signProof(other, proven)])
    t.equal(read.algorithm, alg === 'PS256' ? alg : 'EdDSA')
    t.doesNotThrow(() => assertProof(read, { method: 'POST', url, now }), alg)
  }
})

t.test('a proof of another form is rejected by the rule that it breaks', async (t) => {
  const reads = (rule: string, message: string, detail: object, ...fields: readonly string[]) =>
    t.throws(() => readProof(fields), { code, message, detail: { rule: `rfc9449-4.3-${rule}`, ...detail } })
  const single = 'send one DPoP header with one proof'
  reads('single-header', single, { received: 0 })
  reads('single-header', single, { received: 2 }, sign(), sign())
  reads('single-header', single, { received: 1 }, `${sign()},${sign()}`)
  const form = 'the DPoP header is not one signed JWT'
  reads('well-formed', form, { received: 0 }, '')
  reads('well-formed', form, { received: 7 }, 'a.b.c.d')
  const typ = 'typ of the proof is not dpop+jwt'
  reads('typ', typ, { received: 'JWT', stored: 'dpop+jwt' }, sign({ header: { typ: 'JWT' } }))
  const alg = 'alg of the proof is not one of dpop_signing_alg_values_supported'
  reads('alg', alg, { received: 'RS256', stored: proofAlgorithms }, sign({ header: { alg: 'RS256' } }))
  const { kid: _, ...jwk } = key.jwk
  const secret = 'jwk of the proof has a private or symmetric key'
  reads('private-key', secret, {}, sign({ header: { jwk: { ...jwk, d: 'x' } } }))
  const unfit = 'jwk of the proof is not a public key for alg'
  const { kid: __, ...otherKind } = makeClientKey('EdDSA').jwk
  for (const header of [
    { jwk: undefined },
    { jwk: { ...jwk, y: jwk['x'] } },
    { jwk: otherKind },
    { crit: [] },
  ])
    reads('signature', unfit, { received: 'ES256' }, sign({ header }))
})

t.test('a proof has at most 8,192 characters', async (t) => {
  const padded = (length: number) => {
    const [header = '', claims = ''] = sign().split('.')
    return `${header}.${claims}.${'A'.repeat(length - header.length - claims.length - 2)}`
  }
  t.doesNotThrow(() => readProof([padded(8192)]))
  t.throws(() => readProof([padded(8193)]), { code, detail: { rule: 'rfc9449-4.3-well-formed' } })
})

t.test('a proof is for one request, of now, and signed with its key', async (t) => {
  const request = { method: 'POST', url, now }
  const good = [
    {},
    { jti: 'j'.repeat(256) },
    { iat: now + 10 },
    { iat: now - 70 },
    { htu: 'HTTPS://AUTH.EXAMPLE:443/api/%6Fauth/token?a#b' },
  ]
  for (const claims of good)
    t.doesNotThrow(() => assertProof(proofOf(claims), request), JSON.stringify(claims).slice(0, 60))
  const passed = passedDuring(() => assertProof(proofOf(), request))
  t.strictSame(
    passed.map(({ rule }) => rule.replace('rfc9449-4.3-', '')),
    [
      ...['single-header', 'well-formed', 'typ', 'alg', 'private-key', 'signature'],
      ...['claims', 'claims', 'htm', 'htu', 'iat', 'signature'],
    ],
  )
  const jti = 'jti of the proof is missing or longer than 256 characters'
  const all = 'the proof needs jti, htm, htu and iat'
  const old = 'iat of the proof is too old, or in the future'
  const wrong = [
    [{ jti: undefined }, 'claims', jti],
    [{ jti: 5 }, 'claims', jti],
    [{ jti: '' }, 'claims', jti],
    [{ jti: 'j'.repeat(257) }, 'claims', jti],
    [{ htm: undefined }, 'claims', all],
    [{ htu: 5 }, 'claims', all],
    [{ iat: '5' }, 'claims', all],
    [{ htm: 'post' }, 'htm', 'htm of the proof is not the method of the request'],
    [{ htu: `${url}s` }, 'htu', 'htu of the proof is not the URL of the request'],
    [{ iat: now + 11 }, 'iat', old],
    [{ iat: now - 71 }, 'iat', old],
  ] as const
  for (const [claims, rule, message] of wrong)
    t.throws(
      () => assertProof(proofOf(claims), request),
      { code, message, detail: { rule: `rfc9449-4.3-${rule}` } },
      JSON.stringify(claims).slice(0, 60),
    )
  const odd = { method: 'POST', url: 'no URL', now }
  t.throws(() => assertProof(proofOf({ htu: 'neither' }), odd), { detail: { rule: 'rfc9449-4.3-htu' }, code })
  t.doesNotThrow(() => assertProof(proofOf({ htu: 'no URL' }), odd), 'the same text is the same URL')
  const [header, claims] = sign().split('.')
  const forged = readProof([`${header}.${claims}.${'A'.repeat(86)}`])
  t.throws(() => assertProof(forged, request), {
    code,
    message: 'the signature of the proof is not that of its jwk',
    detail: { rule: 'rfc9449-4.3-signature', received: 'EC' },
  })
})

t.test('a URL is compared in its normal form, without query and fragment', async (t) => {
  const same = [
    ['https://auth.example', 'https://auth.example/'],
    ['HTTP://Auth.Example:80/A?b#c', 'http://auth.example/A'],
    ['https://auth.example/?', 'https://auth.example/'],
    ['https://auth.example/%7euser/%2f', 'https://auth.example/~user/%2F'],
    ['https://auth.example/?a\nb', 'https://auth.example/'],
    ['https://auth.example/a/../b', 'https://auth.example/b'],
    [`https://a.example/${'a'.repeat(2030)}`, `https://a.example/${'a'.repeat(2030)}`],
  ] as const
  for (const [text, normal] of same) t.equal(normalizedUrl(text), normal, text.slice(0, 60))
  const others = [
    '',
    '?',
    'ftp://auth.example/',
    'xhttps://auth.example/',
    'https://auth.example/a b',
    ' https://auth.example/',
    'https://auth.example/é',
    'https://user@auth.example/',
    'https://auth.example\\a',
    'https://auth.example/a\\b',
    'https://auth.example/%zz',
    'https://auth.example/%',
    'https://é.example/',
    'https://auth.example:x/',
    'https://auth.example:%38%30/',
    `https://a.example/${'a'.repeat(2031)}`,
  ]
  for (const text of others) t.equal(normalizedUrl(text), undefined, text.slice(0, 60))
})

t.test('a nonce is that of half a minute, accepted in the one before and the one after', async (t) => {
  const asked: string[] = []
  const nonces = noncesBy((window) => {
    asked.push(window)
    return `nonce ${window}`
  })
  t.equal(nonces.current(600), 'nonce 20')
  t.equal(nonces.current(629), 'nonce 20')
  t.strictSame(asked, ['20'], 'it is made once')
  t.equal(nonces.current(630), 'nonce 21')
  for (const window of [20, 21, 22]) t.equal(nonces.accepts(`nonce ${window}`, 630), true, String(window))
  for (const nonce of ['nonce 19', 'nonce 23', '', undefined, 21])
    t.equal(nonces.accepts(nonce, 630), false, String(nonce))
  t.equal(noncesBy((window) => `nonce ${window}`).current(0), 'nonce 0')
  t.strictSame([-40, -20].map(noncesBy((window) => `nonce ${window}`).current), ['nonce -2', 'nonce -1'])
  t.doesNotThrow(() => assertNonce(proofOf({ nonce: 'nonce 21' }), nonces, 630))
  const over = {
    code: 'use_dpop_nonce',
    message: 'the nonce of the proof is over',
    detail: { rule: 'rfc9449-4.3-nonce', received: 'x', headers: { 'dpop-nonce': 'nonce 21' } },
  }
  t.throws(() => assertNonce(proofOf({ nonce: 'x' }), nonces, 630), over)
  t.throws(() => assertNonce(proofOf(), nonces, 630), { message: 'the proof needs the nonce of DPoP-Nonce' })
})

t.test('a proof goes with its access token, and is used once', async (t) => {
  const proof = readProof([signProof(key, { ...proven, token: 'a-token' })])
  const { jkt } = proof
  t.doesNotThrow(() => assertProofOfToken(proof, 'a-token', { jkt }))
  t.throws(() => assertProofOfToken(proof, 'b-token', { jkt }), {
    code,
    message: 'ath of the proof is not the hash of the access token',
    detail: { rule: 'rfc9449-4.3-ath' },
  })
  t.throws(() => assertProofOfToken(proof, 'a-token', { jkt: 'x' }), {
    code,
    message: 'the access token is bound to another key',
    detail: { rule: 'rfc9449-4.3-bound-key', received: jkt, stored: 'x' },
  })
  t.doesNotThrow(() => assertFirstUse(true, proof))
  t.throws(() => assertFirstUse(false, proofOf({ jti: 'j' })), {
    code,
    message: 'jti of the proof was used before',
    detail: { rule: 'rfc9449-11.1-jti-replay', received: 'j' },
  })
  const used = useOfProof(proofOf({ jti: 'j', iat: now + 0.5 }))
  t.equal(used.expiresAt, now + 72)
  t.equal(useOfProof(proofOf({ jti: 'j' })).id, used.id)
  t.not(useOfProof(proofOf({ jti: 'k' })).id, used.id)
})

t.test('the header fields of a proof are found whatever their case', async (t) => {
  const headers = ['Host', 'dpop', 'DPoP', 'one', 'accept', 'x', 'dpop', 'two']
  t.strictSame(proofFields(headers), ['one', 'two'])
  t.strictSame(proofFields(['x', 'y']), [])
})

const id = (n: number) => `proof ${n}`
const use = (n: number, expiresAt = 0) => ({ id: id(n), expiresAt })

t.test('white-box: a proof is known for as long as any clock lets it be accepted', async (t) => {
  const isNew = proofMemory()
  t.equal(isNew(use(1), 1000), true)
  t.equal(isNew(use(2), 1080), true)
  // A proof is accepted from 10 s before its `iat` to 70 s after it.
  for (const after of [0, 40, 80, 81]) t.equal(isNew(use(1), 1000 + after), false, `${after} s`)
  t.equal(isNew(use(3), 1082), true, 'the memory begins another set')
  t.strictSame([isNew(use(1), 1082), isNew(use(2), 1161)], [false, false])
  t.equal(isNew(use(4), 1163), true)
  t.equal(isNew(use(1), 1163), false, 'the sets last 81 s')
  t.equal(isNew(use(4), 1164), false)
  t.equal(isNew(use(1), 1164), true, 'and forgets the first')
})

t.test('white-box: the memory of proofs is bounded', async (t) => {
  const isNew = proofMemory()
  for (let n = 0; n < 199_999; n++) isNew(use(n), 1000)
  t.equal(isNew(use(0), 1000), false)
  t.strictSame([isNew(use(199_999), 1000), isNew(use(200_000), 1000)], [true, true])
  t.equal(isNew(use(0), 1000), true, 'the oldest of more than 200,000')
  t.equal(isNew(use(199_999), 1000), false)
})
