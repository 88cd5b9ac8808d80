import { createHmac, hkdfSync, scryptSync } from 'node:crypto'
import { CompactSign, calculateJwkThumbprint, compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import t, { type Test } from 'tap'
import { keyAlgorithms } from '../../src/domain/key-term.ts'
import type { StoredKey } from '../../src/domain/model.ts'
import { type KeyRing, type KeyRingSources, loadKeyRing } from '../../src/keys/key-ring.ts'
import { deriveSealingKey, seal, unseal, WrongSecret } from '../../src/keys/seal.ts'
import { openStore } from '../../src/storage/open.ts'
import type { Store } from '../../src/storage/store.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { seededRandom, testClock } from '../helpers/clock.ts'

const secret = 'a secret of at least thirty-two characters'
const policy = {
  algorithms: keyAlgorithms,
  rotationSeconds: 1000,
  publishAheadSeconds: 100,
  overlapSeconds: { signing: 500, handle: 2000 },
}
const claims = { iss: 'http://localhost:9400', sub: 'user_1' }

async function emptyStore(t: Test): Promise<Store> {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  return store
}

function load(sources: Omit<KeyRingSources, 'secret' | 'policy'>): Promise<KeyRing> {
  return loadKeyRing({ ...sources, secret, policy })
}

async function only(keys: Promise<readonly StoredKey[]>, algorithm: string): Promise<StoredKey> {
  const [key] = (await keys).filter((one) => one.algorithm === algorithm)
  if (key === undefined) throw new Error(`no ${algorithm} key`)
  return key
}

t.test('an empty store gets one signing key per algorithm and one handle key', async (t) => {
  const store = await emptyStore(t)
  const clock = testClock()
  const ring = await load({ store, clock, random: seededRandom() })
  const stored = await store.list('key')
  t.same(stored.map(({ algorithm }) => algorithm).sort(), ['ES256', 'EdDSA', 'HS256', 'RS256'])
  t.same(ring.algorithms, ['RS256', 'ES256', 'EdDSA'])
  t.equal(ring.handles.current.id, 1)
  t.match(ring.handles.current.secret, /^[\w-]{43}$/)
  t.equal(ring.handles.find(1)?.secret, ring.handles.current.secret)
  t.equal(ring.handles.find(2), undefined)
  for (const key of stored) t.match(key, { createdAt: clock(), activeAt: clock(), retiredAt: undefined })
})

t.test("a user's secret opens only in this ring, under its own id and unaltered", async (t) => {
  const store = await emptyStore(t)
  const sources = { store, clock: testClock(), random: seededRandom() }
  const ring = await load(sources)
  const sealed = ring.seal(Buffer.from('of alice'), 'alice', secondFactorKind)
  t.equal(ring.unseal(sealed, 'alice').toString(), 'of alice')
  t.equal((await load(sources)).unseal(sealed, 'alice').toString(), 'of alice', 'after a restart')
  t.not(ring.seal(Buffer.from('of alice'), 'alice', secondFactorKind), sealed)
  const undeclared = { name: 'passkey' }
  t.throws(() => ring.seal(Buffer.from('of alice'), 'alice', undeclared), /passkey does not declare/)
  t.throws(() => ring.unseal(sealed, 'bob'), WrongSecret)
  t.throws(() => ring.unseal(`A${sealed.slice(1)}`, 'alice'), WrongSecret)
  const [key] = await store.list('key')
  t.throws(
    () => ring.unseal(key?.sealedPrivate ?? '', key?.id ?? ''),
    WrongSecret,
    'no key of the ring comes out',
  )
})

t.test('the JWK Set has public members only, each key named by its thumbprint', async (t) => {
  const store = await emptyStore(t)
  const ring = await load({ store, clock: testClock(), random: seededRandom() })
  const { keys } = ring.jwks()
  t.equal(new Set(keys.map(({ kid }) => kid)).size, 3)
  for (const key of keys) {
    t.equal(key.use, 'sig')
    t.equal(key.kid, await calculateJwkThumbprint(key))
    t.strictSame(
      ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k'].filter((member) => member in key),
      [],
    )
  }
  t.equal(Buffer.from(String(keys.find(({ alg }) => alg === 'RS256')?.['n']), 'base64url').length, 256)
})

t.test('keys made before a clock was set back are still found, and no others are made', async (t) => {
  const store = await emptyStore(t)
  const clock = testClock()
  const before = await load({ store, clock, random: seededRandom() })
  clock.advance(-2_592_000)
  const jws = await before.sign('RS256', 'JWT', claims)
  t.match(await before.verify(jws, 'JWT'), claims)
  t.equal(before.handles.current.id, 1)
  const restarted = await load({ store, clock, random: seededRandom('later') })
  t.same(restarted.jwks(), before.jwks())
})

t.test('the same store and secret give the same keys again', async (t) => {
  const store = await emptyStore(t)
  const first = await load({ store, clock: testClock(), random: seededRandom('one') })
  const second = await load({ store, clock: testClock(), random: seededRandom('two') })
  t.same(second.jwks(), first.jwks())
  t.same(second.handles.current, first.handles.current)
  t.equal((await store.list('key')).length, 4)
  t.match(await second.verify(await first.sign('ES256', 'JWT', claims), 'JWT'), claims)
})

t.test('a signature has alg, kid and typ in its header, and verifies with the published key', async (t) => {
  const store = await emptyStore(t)
  const ring = await load({ store, clock: testClock(), random: seededRandom() })
  for (const algorithm of ring.algorithms) {
    for (const type of ['JWT', 'at+jwt'] as const) {
      const jws = await ring.sign(algorithm, type, claims)
      const jwk = ring.jwks().keys.find(({ alg }) => alg === algorithm)
      if (jwk === undefined) throw new Error(`no ${algorithm} key is published`)
      t.strictSame(decodeProtectedHeader(jws), { alg: algorithm, kid: jwk.kid, typ: type })
      const { payload } = await compactVerify(jws, await importJWK(jwk, algorithm))
      t.strictSame(JSON.parse(Buffer.from(payload).toString()), claims)
      t.strictSame(await ring.verify(jws, type), claims)
      t.equal(await ring.verify(jws, type === 'JWT' ? 'at+jwt' : 'JWT'), undefined, 'of the other type')
    }
  }
})

t.test('a text that none of these keys signed yields no claims and no exception', async (t) => {
  const store = await emptyStore(t)
  const ring = await load({ store, clock: testClock(), random: seededRandom() })
  const other = await load({ store: await emptyStore(t), clock: testClock(), random: seededRandom() })
  const genuine = await ring.sign('RS256', 'JWT', claims)
  const [header = '', payload = '', signature = ''] = genuine.split('.')
  const { kid } = decodeProtectedHeader(genuine)
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const published = ring.jwks().keys.find((key) => key.kid === kid)
  const confused = `${encoded({ alg: 'HS256', kid, typ: 'JWT' })}.${payload}`
  const forgeries = {
    empty: '',
    'not a JWS': 'garbage',
    'dots only': '..',
    'five parts': 'a.b.c.d.e',
    'binary garbage': '\u0000.\ud800.é',
    'alg none': `${encoded({ alg: 'none', kid, typ: 'JWT' })}.${payload}.`,
    'HS256 with the public key': `${confused}.${createHmac('sha256', JSON.stringify(published)).update(confused).digest('base64url')}`,
    'another algorithm of the same key': `${encoded({ alg: 'RS384', kid, typ: 'JWT' })}.${payload}.${signature}`,
    'no kid': `${encoded({ alg: 'RS256', typ: 'JWT' })}.${payload}.${signature}`,
    'other claims': `${header}.${encoded({ ...claims, sub: 'user_2' })}.${signature}`,
    'no signature': `${header}.${payload}.`,
    'a stranger with our kid': await strangersJws(other, kid),
    'a stranger': await other.sign('RS256', 'JWT', claims),
  }
  for (const [name, jws] of Object.entries(forgeries)) t.equal(await ring.verify(jws, 'JWT'), undefined, name)
  t.match(await ring.verify(genuine, 'JWT'), claims, 'while the genuine one verifies')
})

async function strangersJws(other: KeyRing, kid: string | undefined): Promise<string> {
  const jws = await other.sign('RS256', 'JWT', claims)
  const [, payload, signature] = jws.split('.')
  const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid, typ: 'JWT' })).toString('base64url')
  return `${header}.${payload}.${signature}`
}

t.test('a genuine signature over anything but an object yields no claims', async (t) => {
  const store = await emptyStore(t)
  const ring = await load({ store, clock: testClock(), random: seededRandom() })
  const stored = await only(store.list('key'), 'ES256')
  const jwk = JSON.parse(unseal(stored.sealedPrivate, stored.id, await deriveSealingKey(secret)).toString())
  const key = await importJWK(jwk, 'ES256')
  for (const payload of ['[]', 'null', '1', '{']) {
    const jws = await new CompactSign(Buffer.from(payload))
      .setProtectedHeader({ alg: 'ES256', kid: stored.id, typ: 'JWT' })
      .sign(key)
    t.equal(await ring.verify(jws, 'JWT'), undefined, payload)
  }
})

t.test('a wrong secret is rejected, and nothing is written', async (t) => {
  const store = await emptyStore(t)
  await load({ store, clock: testClock(), random: seededRandom() })
  const before = await store.list('key')
  const attempt = loadKeyRing({
    store,
    secret: `${secret}!`,
    policy,
    clock: testClock(),
    random: seededRandom(),
  })
  await t.rejects(attempt, WrongSecret)
  await t.rejects(attempt, { message: /^the secret does not open the stored keys[^\n]*$/ })
  t.same(await store.list('key'), before)
})

t.test('a secret that is marked as random is used unchanged, any other is stretched', async (t) => {
  const random = `lyc_sealing_${'A'.repeat(43)}`
  const taken = Buffer.from(hkdfSync('sha256', random, 'lychgate', 'key ring', 32))
  t.strictSame(await deriveSealingKey(random), taken)
  const cost = { N: 32_768, r: 8, p: 1, maxmem: 64 * 1024 * 1024 }
  for (const text of [
    `${random}A`,
    random.slice(0, -1),
    `${random}\n`,
    ` ${random}`,
    `lyc_link_${'A'.repeat(43)}`,
  ])
    t.strictSame(await deriveSealingKey(text), scryptSync(text, 'lychgate key ring', 32, cost))
})

t.test('a private key is sealed under its own id', async (t) => {
  const sealingKey = await deriveSealingKey(secret)
  const sealed = seal(Buffer.from('private'), 'one', {
    sealingKey,
    nonce: seededRandom()(12),
    development: false,
  })
  t.equal(unseal(sealed, 'one', sealingKey).toString(), 'private')
  t.notMatch(Buffer.from(sealed, 'base64url').toString('latin1'), /private/)
  t.throws(() => unseal(sealed, 'two', sealingKey), WrongSecret)
  t.throws(() => unseal(`${sealed.slice(0, -4)}AAAA`, 'one', sealingKey), WrongSecret)
  t.throws(() => unseal('', 'one', sealingKey), WrongSecret)
})

t.test('the store contains no private key in clear text', async (t) => {
  const store = await emptyStore(t)
  await load({ store, clock: testClock(), random: seededRandom() })
  for (const { sealedPrivate } of await store.list('key')) {
    t.notMatch(Buffer.from(sealedPrivate, 'base64url').toString('latin1'), /"kty"/)
  }
})

t.test('processes that start together on one store end up with the same keys', async (t) => {
  const store = await emptyStore(t)
  const rings = await Promise.all(
    ['one', 'two', 'three'].map((seed) => load({ store, clock: testClock(), random: seededRandom(seed) })),
  )
  t.equal((await store.list('key')).length, 4)
  const [first] = rings
  for (const ring of rings) {
    t.same(ring.jwks(), first?.jwks())
    t.same(ring.handles.current, first?.handles.current)
  }
})

t.test(
  'a pseudonym stands for its values on every node, after every rotation, under one secret',
  async (t) => {
    const clock = testClock()
    const sources = { store: await emptyStore(t), clock, random: seededRandom() }
    const ring = await load(sources)
    const known = ring.pseudonym('a', 'b')
    t.match(known, /^[\w-]{22}$/)
    t.equal((await load({ ...sources, random: seededRandom('other') })).pseudonym('a', 'b'), known)
    clock.advance(policy.rotationSeconds + policy.publishAheadSeconds)
    await ring.reload()
    t.equal(ring.pseudonym('a', 'b'), known)
    for (const other of [['b', 'a'], ['ab'], ['a', 'b', ''], ['a b']]) t.not(ring.pseudonym(...other), known)
    const elsewhere = {
      ...sources,
      store: await emptyStore(t),
      secret: `${secret} of another operator`,
      policy,
    }
    t.not((await loadKeyRing(elsewhere)).pseudonym('a', 'b'), known)
  },
)
