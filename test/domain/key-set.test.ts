import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import {
  algorithmNamed,
  algorithmNames,
  algorithmOf,
  hasPrivatePart,
  keyObject,
  parseKey,
  parseKeySet,
  prepareKey,
  readKeyFile,
} from '../../src/domain/key-set.ts'
import { parseStrictJson } from '../../src/domain/strict-json.ts'

const pairs = {
  ec: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  p384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  short: generateKeyPairSync('rsa', { modulusLength: 1024 }),
  ed: generateKeyPairSync('ed25519'),
}
const publicJwk = (name: keyof typeof pairs) => pairs[name].publicKey.export({ format: 'jwk' })

t.test('JSON with two members of the same name is rejected', async (t) => {
  const good = [
    '{}',
    '[]',
    '1',
    '{"a":1,"b":{"a":2}}',
    '[{"a":1},{"a":1}]',
    '{"a":"a","b":"a:"}',
    '{"a":"\\"b\\":1","b":1}',
  ]
  for (const text of good) t.strictSame(parseStrictJson(text), JSON.parse(text), text)
  const bad = [
    '',
    '{',
    '{"a":1,}',
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '{"b":{"a":1, "a" :1}}',
    '[{"a":1,"a":2}]',
  ]
  for (const text of bad) t.equal(parseStrictJson(text), undefined, text)
})

t.test('the keys of a set that can verify are read, with their thumbprint as kid', async (t) => {
  const keys = parseKeySet({
    keys: [
      { ...publicJwk('ec'), kid: 'one', use: 'sig', alg: 'ES256', x5c: ['ignored'] },
      { ...publicJwk('ed'), key_ops: ['verify'] },
      { ...publicJwk('rsa'), alg: 'PS256', kid: 'two' },
    ],
  })
  t.strictSame(
    keys.map(({ kty, kid, alg }) => [kty, kid?.length, alg]),
    [
      ['EC', 3, 'ES256'],
      ['OKP', 43, undefined],
      ['RSA', 3, 'PS256'],
    ],
  )
  t.notOk(keys.some((key) => 'x5c' in key || 'use' in key))
  // RFC 7638 §3.1
  const n =
    '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw'
  const [key] = parseKeySet({ keys: [{ kty: 'RSA', n, e: 'AQAB', alg: 'RS256' }] })
  t.equal(key?.kid, 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs')
})

t.test('keys that cannot verify are left out, and a set without any is rejected', async (t) => {
  const ec = publicJwk('ec')
  const useless = [
    null,
    'key',
    { kty: 'oct' },
    { ...ec, crv: 'P-384' },
    { ...ec, crv: 'secp256k1' },
    publicJwk('p384'),
    publicJwk('short'),
    { ...publicJwk('rsa'), e: `AQAB${'A'.repeat(20)}` },
    { ...publicJwk('rsa'), n: 'A'.repeat(1000) },
    { ...ec, use: 'enc' },
    { ...ec, key_ops: ['encrypt'] },
    { ...ec, key_ops: 'verify' },
    { ...ec, alg: 'ES384' },
    { ...ec, alg: 'RS256' },
    { ...ec, alg: 'none' },
    { ...ec, y: ec.x },
    { ...ec, x: `${ec.x}=` },
    { ...ec, kid: 1 },
    { ...ec, kid: 'k'.repeat(257) },
  ]
  for (const key of useless) {
    t.throws(() => parseKeySet({ keys: [key] }), { message: /^has no key for/ }, JSON.stringify(key))
    t.equal(parseKeySet({ keys: [key, publicJwk('ed')] }).length, 1)
  }
})

t.test('a member that is null or an empty list is absent', async (t) => {
  const lists = { key_ops: [], x5c: [], oth: [] }
  const nothing = { alg: null, use: null, kid: null, x5u: null, d: null, p: null, k: null }
  for (const name of ['ec', 'rsa', 'ed'] as const)
    t.strictSame(parseKey({ ...publicJwk(name), ...nothing, ...lists }), parseKey(publicJwk(name)), name)
  t.equal(parseKeySet({ keys: [{ ...publicJwk('ec'), ...nothing, ...lists, n: null }] }).length, 1)
  const secret = { message: 'has a private or symmetric key' }
  for (const d of ['', 'AQAB', 0, false, {}, [null]])
    t.throws(() => parseKeySet({ keys: [{ ...publicJwk('ec'), ...nothing, d }] }), secret, JSON.stringify(d))
})

t.test('what is no set of public keys is rejected', async (t) => {
  for (const value of [undefined, null, [], 'x', {}, { keys: {} }])
    t.throws(() => parseKeySet(value), { message: 'is not a JWK set' })
  const secret = { message: 'has a private or symmetric key' }
  t.throws(
    () => parseKeySet({ keys: [publicJwk('ec'), pairs.ed.privateKey.export({ format: 'jwk' })] }),
    secret,
  )
  t.throws(() => parseKeySet({ keys: [{ kty: 'oct', k: 'c2VjcmV0' }] }), secret)
  t.throws(() => parseKeySet({ keys: Array(21).fill(publicJwk('ec')) }), { message: 'has more than 20 keys' })
  t.equal(parseKeySet({ keys: Array(20).fill(publicJwk('ec')) }).length, 20)
  for (const name of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])
    t.equal(hasPrivatePart({ kty: 'RSA', [name]: 'x' }), true, name)
  t.equal(hasPrivatePart(publicJwk('rsa')), false)
})

t.test('a key has a kid of at most 256 characters, and numbers of 32 bytes', async (t) => {
  const ec = publicJwk('ec')
  t.equal(parseKey({ ...ec, kid: 'k'.repeat(256) })?.kid?.length, 256)
  t.equal(parseKey({ ...ec, kid: 'k'.repeat(257) }), undefined)
  const withZero = Buffer.concat([Buffer.alloc(1), Buffer.from(ec.x ?? '', 'base64url')])
  t.equal(parseKey({ ...ec, x: withZero.toString('base64url') }), undefined, 'the same number in 33 bytes')
  t.strictSame(algorithmNames, ['ES256', 'PS256', 'RS256', 'EdDSA', 'Ed25519'])
  t.equal(algorithmOf({ kty: 'OKP' }, 'EdDSA'), 'EdDSA')
})

t.test('an operator may give a set, one key, or a public key as PEM', async (t) => {
  const [jwk, pem] = [publicJwk('ec'), pairs.ec.publicKey.export({ format: 'pem', type: 'spki' }).toString()]
  const { keys } = readKeyFile(pem)
  t.strictSame(
    keys.map(({ x }) => x),
    [jwk.x],
  )
  t.strictSame(readKeyFile(JSON.stringify(jwk)).keys, keys)
  t.strictSame(readKeyFile(JSON.stringify({ keys: [jwk] })).keys, keys)
  const secret = pairs.ec.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
  t.throws(() => readKeyFile(secret), { message: 'has a private or symmetric key' })
  const traditional = pairs.rsa.privateKey.export({ format: 'pem', type: 'pkcs1' }).toString()
  t.throws(() => readKeyFile(traditional), { message: 'has a private or symmetric key' })
  for (const content of ['', '{}', 'text', '-----BEGIN PUBLIC KEY-----', '[]'])
    t.throws(() => readKeyFile(content), { message: 'is not a JWK set' }, content)
})

t.test('the registered algorithm counts, then that of the key, then the usual one of its type', async (t) => {
  t.equal(algorithmOf({ kty: 'EC' }, undefined), 'ES256')
  t.equal(algorithmOf({ kty: 'RSA' }, undefined), 'RS256')
  t.equal(algorithmOf({ kty: 'OKP' }, undefined), 'EdDSA')
  t.equal(algorithmNamed('Ed25519'), 'EdDSA', 'RFC 9864')
  t.equal(algorithmNamed('HS256'), undefined)
  t.equal(algorithmOf({ kty: 'RSA', alg: 'PS256' }, undefined), 'PS256')
  t.equal(algorithmOf({ kty: 'RSA' }, 'PS256'), 'PS256')
  t.equal(algorithmOf({ kty: 'RSA', alg: 'PS256' }, 'RS256'), undefined)
  t.equal(algorithmOf({ kty: 'EC' }, 'RS256'), undefined)
})

t.test('a key is made ready to verify once, also when its client is read from the store again', async (t) => {
  const [read] = parseKeySet({ keys: [publicJwk('ec')] })
  const [again] = parseKeySet(JSON.parse(JSON.stringify({ keys: [read] })))
  const [other] = parseKeySet({ keys: [publicJwk('ed')] })
  if (!read || !again || !other) throw new Error('three keys were given')
  t.not(read, again)
  t.equal(keyObject(read), keyObject(again))
  t.not(keyObject(read), keyObject(other))
})

t.test('white-box: 500 keys are kept ready', async (t) => {
  // Keys that differ in their exponent: no other one is generated.
  const { n = '' } = publicJwk('rsa')
  const prepare = (index: number) =>
    prepareKey({ kty: 'RSA', n, e: Buffer.from([1, index >> 8, index & 255, 1]).toString('base64url') })
  const isForgotten = (index: number, made: object | undefined) => prepare(index) !== made
  let [index, before, made] = [0, prepare(0), prepare(1)]
  // Up to the first that is forgotten, to make room: then two are kept, that one and its follower.
  while (!isForgotten(index, before)) {
    index += 1
    before = made
    made = prepare(index + 1)
  }
  for (let more = 2; more < 500; more += 1) prepare(index + more)
  t.equal(isForgotten(index + 1, made), false, '500 are kept')
  prepare(index + 500)
  t.equal(isForgotten(index + 1, made), true, 'the next one begins again')
})
