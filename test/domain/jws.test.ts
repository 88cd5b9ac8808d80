import t from 'tap'
import {
  assertSignature,
  foreignMember,
  isInstant,
  type Jws,
  parseJws,
  verifies,
} from '../../src/domain/jws.ts'
import { type ClientAlgorithm, keyObject, type PublicKey, parseKeySet } from '../../src/domain/key-set.ts'
import { type AssertionAlgorithm, type ClientKey, makeClientKey, signJws } from '../helpers/assertions.ts'
import { passedDuring } from '../helpers/checks.ts'

const ec = makeClientKey('ES256', 'one')
const rsa = makeClientKey('RS256', 'two')
const keysOf = (...keys: readonly ClientKey[]) => parseKeySet({ keys: keys.map(({ jwk }) => jwk) })
const encode = (text: string | Buffer) => Buffer.from(text).toString('base64url')

t.test('a JWT is three parts of base64url, of which two are JSON objects', async (t) => {
  const text = `${encode('{"alg":"ES256"}')}.${encode('{"iss":"é"}')}.${encode('sign')}`
  t.strictSame(parseJws(text), {
    header: { alg: 'ES256' },
    claims: { iss: 'é' },
    signed: text.slice(0, text.lastIndexOf('.')),
    signature: Buffer.from('sign'),
  })
  const [header = '', claims = ''] = text.split('.')
  const others = [
    '',
    'a.b.c',
    `${header}.${claims}`,
    `${header}.${claims}.`,
    ` ${text}`,
    `${text} `,
    `${text}.${header}`,
    `.${text}`,
    `${encode('[]')}.${claims}.c2ln`,
    `${header}.${encode('1')}.c2ln`,
    `${header}.${encode('{"a":1,"a":2}')}.c2ln`,
    `${header}.${encode(Buffer.from([123, 34, 255, 34, 58, 49, 125]))}.c2ln`,
  ]
  for (const other of others) t.equal(parseJws(other), undefined, other)
})

const rules = {
  code: 'invalid_client',
  signature: 'rule-of-signature',
  algorithm: 'rule-of-algorithm',
} as const

function check(
  key: ClientKey,
  header: Readonly<Record<string, unknown>>,
  keys: readonly PublicKey[],
  registered?: ClientAlgorithm,
) {
  const jws = parseJws(signJws(key, { alg: key.alg, ...header }, { a: 1 })) as Jws
  return () => assertSignature(jws, registered, keys, rules)
}

t.test('a signature is checked with the key that kid names, or the only one', async (t) => {
  const both = keysOf(ec, rsa)
  t.doesNotThrow(check(ec, { kid: 'one' }, both))
  t.doesNotThrow(check(rsa, { kid: 'two' }, both))
  t.doesNotThrow(check(ec, {}, keysOf(ec)))
  t.doesNotThrow(check(ec, {}, both, 'ES256'), 'the other key is not of the registered algorithm')
  const passed = passedDuring(check(ec, { kid: 'one' }, both))
  t.strictSame(
    passed.map(({ rule, found }) => [rule, found]),
    [
      ['rule-of-signature', 'rule-of-signature'],
      ['rule-of-algorithm', 'rule-of-algorithm'],
      ['rule-of-signature', 'the signature is that of a registered key'],
    ].map(([rule, found]) => [rule, found === rule ? found?.replace('rule-', '').replace('-', ' ') : found]),
  )
  const wrong = (work: () => void, message: string, detail: object) =>
    t.throws(work, { code: 'invalid_client', message, detail })
  const none = { rule: 'rule-of-signature', stored: ['one', 'two'], received: 'three' }
  wrong(check(ec, { kid: 'three' }, both), 'there is no such key', none)
  wrong(check(ec, { kid: 'one' }, both, 'RS256'), 'there is no such key', { ...none, received: 'one' })
  const several = 'there are several keys, and kid is missing'
  wrong(check(ec, {}, both), several, { ...none, received: undefined })
  const unnamed = both.map(({ kid: _, ...key }) => key)
  wrong(check(ec, {}, unnamed), several, { rule: 'rule-of-signature', stored: ['', ''] })
  const algorithm = { rule: 'rule-of-algorithm', stored: 'ES256', received: 'RS256' }
  const message = 'alg is not the algorithm of the registered key'
  wrong(check(ec, { kid: 'one', alg: 'RS256' }, both), message, algorithm)
  wrong(check(makeClientKey('ES256'), {}, keysOf(ec)), 'the signature is wrong', {
    rule: 'rule-of-signature',
  })
})

t.test('of several keys with one kid the algorithm decides', async (t) => {
  const [first, second] = [makeClientKey('ES256', 'k'), makeClientKey('RS256', 'k')]
  const doubled = keysOf(first, second)
  t.doesNotThrow(check(first, { kid: 'k' }, doubled))
  t.doesNotThrow(check(second, { kid: 'k' }, doubled))
  t.throws(check(first, { kid: 'k', alg: 'PS256' }, doubled), {
    message: 'there is no such key',
    code: rules.code,
  })
  const twice = keysOf(first, makeClientKey('ES256', 'k'))
  t.throws(check(first, { kid: 'k' }, twice), { message: /^there are several keys/, code: rules.code })
})

t.test('a signature verifies by its algorithm, and by no other', async (t) => {
  const all: readonly AssertionAlgorithm[] = ['ES256', 'RS256', 'PS256', 'EdDSA']
  const signed = Buffer.from('e30.e30')
  for (const alg of all) {
    const key = makeClientKey(alg)
    const [material] = keysOf(key).map(keyObject)
    const signature = Buffer.from(signJws(key, {}, {}).split('.')[2] ?? '', 'base64url')
    if (material === undefined) throw new Error('it is a key')
    const verify = (algorithm: ClientAlgorithm, bytes = signature) =>
      verifies(algorithm, material, signed, bytes)
    t.equal(verify(alg as ClientAlgorithm), true, alg)
    t.equal(verify(alg as ClientAlgorithm, Buffer.alloc(signature.length)), false, alg)
    if (alg === 'RS256' || alg === 'PS256') t.equal(verify(alg === 'RS256' ? 'PS256' : 'RS256'), false)
    if (alg === 'ES256')
      for (const bytes of [signature.subarray(1), Buffer.concat([signature, Buffer.alloc(1)])])
        t.equal(verify(alg, bytes), false, `${bytes.length} bytes`)
  }
})

/**
 * Signatures of `signed` with numbers of every length that DER can give them: r, s, and the public key that was
 * computed from them.
 */
const unusual = [
  ['5', '1', 'iUf1Tbcp7Ttsh_vzgn6l5rNR4SSGfw3VY8FuZxQDEZs', 'DkUPrLRW33HklJU8o-qAUE0Sq9lQwDseXsa56Ukr2Mw'],
  ['7f', '7f', 'Ow66OjDyJG_vPh-2llUgirNEtHEtoemTE6r8atak7hY', 'nxc91UM29YHjqxu6JTaAlgIRvKC1so5PBIdPhTDHd3g'],
  ['80', '80', 'Ah7CXjTF5hELlq9oGM82CniFecOJWMlpTH9R_S7Pg_c', '0jPgrsQiVu1fFZRIhXr8OtBn41me3m_6oY2UPHCj-Ic'],
  [
    `7f${'0'.repeat(59)}1`,
    `80${'0'.repeat(60)}`,
    'ab2rimG5VyGTGfrwUqdmFkWIQNNQFNscKPkVLQlXkPQ',
    '_tuvcnVq0iYLDGbTYO_qzdHnBLauSTwf-ZnmzRWbLkc',
  ],
  [
    `ff${'0'.repeat(62)}`,
    `7f${'0'.repeat(62)}`,
    'wg17LWZfc4v6DCapC7p_ZC9WUFd2VAbES9Q04OELpLs',
    'cC1DxIvrNwRMNmXt2UeOvwkRqIfLlLkFqJiusrCIjgw',
  ],
  [
    `80${'0'.repeat(59)}1`,
    `f0${'0'.repeat(62)}`,
    'BrysvNmo9gNj97l2U0Ws_-tTNAWztgfhoCxLdhABgBY',
    '8iezNo-IXIbxNpZUTUN0p6P0_oPAGE4VUP1dOhdh6Qs',
  ],
] as const

t.test('an ES256 signature verifies whatever zeros its numbers begin with', async (t) => {
  for (const [r, s, x, y] of unusual) {
    const material = keyObject({ kty: 'EC', crv: 'P-256', x, y })
    if (material === undefined) throw new Error('it is on the curve')
    const signature = Buffer.from(r.padStart(64, '0') + s.padStart(64, '0'), 'hex')
    t.equal(verifies('ES256', material, Buffer.from('signed'), signature), true, `${r} ${s}`)
    t.equal(verifies('ES256', material, Buffer.from('other'), signature), false)
  }
  const [key] = keysOf(ec).map(keyObject)
  t.equal(key && verifies('ES256', key, Buffer.from('signed'), Buffer.alloc(64)), false, 'two zeros')
})

t.test('a header that brings a key, or changes what is signed, is noticed', async (t) => {
  for (const name of ['crit', 'jwk', 'jku', 'x5u', 'x5c', 'b64', 'zip'])
    t.equal(foreignMember({ alg: 'ES256', [name]: 1 }), name)
  t.equal(foreignMember({ alg: 'ES256', typ: 'JWT', kid: 'k' }), undefined)
  t.strictSame([0, -1.5, 1e9].map(isInstant), [true, true, true])
  t.strictSame(['5', undefined, null, Infinity, Number.NaN].map(isInstant), Array(5).fill(false))
})
