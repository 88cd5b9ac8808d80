import { createHmac } from 'node:crypto'
import { CompactSign, calculateJwkThumbprint, compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import t, { type Test } from 'tap'
import { openHandle, sealHandle } from '../../src/domain/handle.ts'
import type { StoredKey } from '../../src/domain/model.ts'
import { type KeyRing, loadKeyRing, WrongSecret } from '../../src/keys/key-ring.ts'
import { makeHandleKey, makeSigningKey } from '../../src/keys/make-keys.ts'
import { deriveSealingKey, seal, unseal } from '../../src/keys/seal.ts'
import { openStore } from '../../src/storage/open.ts'
import type { Store } from '../../src/storage/store.ts'
import { seededRandom, testClock } from '../helpers/clock.ts'

const secret = 'a secret of at least thirty-two characters'
const claims = { iss: 'http://localhost:9400', sub: 'person_1' }

async function emptyStore(t: Test): Promise<Store> {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  return store
}

function newMaking(sealingKey: Buffer, now: number) {
  return { sealingKey, random: seededRandom(`keys at ${now}`), now }
}

async function only(keys: Promise<readonly StoredKey[]>, algorithm: string): Promise<StoredKey> {
  const [key] = (await keys).filter((one) => one.algorithm === algorithm)
  if (key === undefined) throw new Error(`no ${algorithm} key`)
  return key
}

t.test('an empty store gets one signing key an algorithm and one handle key', async (t) => {
  const store = await emptyStore(t)
  const clock = testClock()
  const ring = await loadKeyRing({ store, secret, clock, random: seededRandom() })
  const stored = await store.list('key')
  t.same(stored.map(({ algorithm }) => algorithm).sort(), ['ES256', 'EdDSA', 'HS256', 'RS256'])
  t.same(ring.algorithms, ['RS256', 'ES256', 'EdDSA'])
  t.equal(ring.handles.current.id, 1)
  t.match(ring.handles.current.secret, /^[\w-]{43}$/)
  t.equal(ring.handles.find(1)?.secret, ring.handles.current.secret)
  t.equal(ring.handles.find(2), undefined)
  for (const key of stored) t.match(key, { createdAt: clock(), activeAt: clock(), retiredAt: undefined })
})

t.test('the JWK Set has public members only, each key named by its thumbprint', async (t) => {
  const store = await emptyStore(t)
  const ring = await loadKeyRing({ store, secret, clock: testClock(), random: seededRandom() })
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

t.test('a clock set back behind the making of the keys still finds them, and makes no others', async (t) => {
  const store = await emptyStore(t)
  const clock = testClock()
  const before = await loadKeyRing({ store, secret, clock, random: seededRandom() })
  clock.advance(-2_592_000)
  const jws = await before.sign('RS256', 'JWT', claims)
  t.match(await before.verify(jws, 'JWT'), claims)
  t.equal(before.handles.current.id, 1)
  const restarted = await loadKeyRing({ store, secret, clock, random: seededRandom('later') })
  t.same(restarted.jwks(), before.jwks())
})

t.test('the same store and secret give the same keys again', async (t) => {
  const store = await emptyStore(t)
  const first = await loadKeyRing({ store, secret, clock: testClock(), random: seededRandom('one') })
  const second = await loadKeyRing({ store, secret, clock: testClock(), random: seededRandom('two') })
  t.same(second.jwks(), first.jwks())
  t.same(second.handles.current, first.handles.current)
  t.equal((await store.list('key')).length, 4)
  t.match(await second.verify(await first.sign('ES256', 'JWT', claims), 'JWT'), claims)
})

t.test('a signature has alg, kid and typ in its header, and verifies by the published key', async (t) => {
  const store = await emptyStore(t)
  const ring = await loadKeyRing({ store, secret, clock: testClock(), random: seededRandom() })
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

t.test('whatever was not signed by one of these keys is no claims, and no exception', async (t) => {
  const store = await emptyStore(t)
  const ring = await loadKeyRing({ store, secret, clock: testClock(), random: seededRandom() })
  const other = await loadKeyRing({
    store: await emptyStore(t),
    secret,
    clock: testClock(),
    random: seededRandom(),
  })
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
    'other claims': `${header}.${encoded({ ...claims, sub: 'person_2' })}.${signature}`,
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

t.test('a genuine signature over anything but an object is no claims', async (t) => {
  const store = await emptyStore(t)
  const ring = await loadKeyRing({ store, secret, clock: testClock(), random: seededRandom() })
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

t.test('a wrong secret is refused, and nothing is written', async (t) => {
  const store = await emptyStore(t)
  await loadKeyRing({ store, secret, clock: testClock(), random: seededRandom() })
  const before = await store.list('key')
  const attempt = loadKeyRing({ store, secret: `${secret}!`, clock: testClock(), random: seededRandom() })
  await t.rejects(attempt, WrongSecret)
  await t.rejects(attempt, { message: /^the secret does not open the stored keys[^\n]*$/ })
  t.same(await store.list('key'), before)
})

t.test('a private key is sealed under its own id', async (t) => {
  const sealingKey = await deriveSealingKey(secret)
  const sealed = seal(Buffer.from('private'), 'one', sealingKey, seededRandom()(12))
  t.equal(unseal(sealed, 'one', sealingKey).toString(), 'private')
  t.notMatch(Buffer.from(sealed, 'base64url').toString('latin1'), /private/)
  t.throws(() => unseal(sealed, 'two', sealingKey), WrongSecret)
  t.throws(() => unseal(`${sealed.slice(0, -4)}AAAA`, 'one', sealingKey), WrongSecret)
  t.throws(() => unseal('', 'one', sealingKey), WrongSecret)
})

t.test('no private key is in the store in the clear', async (t) => {
  const store = await emptyStore(t)
  await loadKeyRing({ store, secret, clock: testClock(), random: seededRandom() })
  for (const { sealedPrivate } of await store.list('key')) {
    t.notMatch(Buffer.from(sealedPrivate, 'base64url').toString('latin1'), /"kty"/)
  }
})

t.test('processes that start together on one store end with the same keys', async (t) => {
  const store = await emptyStore(t)
  const rings = await Promise.all(
    ['one', 'two', 'three'].map((seed) =>
      loadKeyRing({ store, secret, clock: testClock(), random: seededRandom(seed) }),
    ),
  )
  t.equal((await store.list('key')).length, 4)
  const [first] = rings
  for (const ring of rings) {
    t.same(ring.jwks(), first?.jwks())
    t.same(ring.handles.current, first?.handles.current)
  }
})

t.test(
  '[oidc-core-10.1.1-rotation] a newer key signs, and what the older one signed still verifies',
  async (t) => {
    const store = await emptyStore(t)
    const clock = testClock()
    const before = await loadKeyRing({ store, secret, clock, random: seededRandom() })
    const old = await before.sign('RS256', 'JWT', claims)
    const making = newMaking(await deriveSealingKey(secret), clock())
    const next = { ...(await makeSigningKey('RS256', making)), activeAt: clock() + 100 }
    await store.write({ op: 'insertKey', key: next })
    const ring = await loadKeyRing({ store, secret, clock, random: seededRandom() })
    const published = () => ring.jwks().keys.map(({ kid }) => kid)
    t.ok(published().includes(next.id), 'published before it signs')
    t.not(decodeProtectedHeader(await ring.sign('RS256', 'JWT', claims)).kid, next.id)
    clock.advance(100)
    t.equal(decodeProtectedHeader(await ring.sign('RS256', 'JWT', claims)).kid, next.id)
    t.match(await ring.verify(old, 'JWT'), claims)
    const jwk = ring.jwks().keys.find(({ kid }) => kid === decodeProtectedHeader(old).kid)
    await t.resolves(compactVerify(old, await importJWK(jwk ?? {}, 'RS256')), 'by the published key')
  },
)

t.test('a retired key neither verifies nor is published, from that second on', async (t) => {
  const store = await emptyStore(t)
  const clock = testClock()
  await loadKeyRing({ store, secret, clock, random: seededRandom() })
  const key = await only(store.list('key'), 'ES256')
  await store.write({ op: 'updateKey', key: { ...key, retiredAt: clock() + 10 } })
  const ring = await loadKeyRing({ store, secret, clock, random: seededRandom() })
  const jws = await ring.sign('ES256', 'JWT', claims)
  clock.advance(9)
  t.match(await ring.verify(jws, 'JWT'), claims)
  clock.advance(1)
  t.equal(await ring.verify(jws, 'JWT'), undefined)
  t.notOk(ring.jwks().keys.some(({ kid }) => kid === key.id))
  t.same(ring.algorithms, ['RS256', 'EdDSA'])
  await t.rejects(ring.sign('ES256', 'JWT', claims), { message: 'there is no active ES256 key' })
  const reloaded = await loadKeyRing({ store, secret, clock, random: seededRandom('later') })
  t.same(reloaded.algorithms, ['RS256', 'ES256', 'EdDSA'], 'a start makes the missing one')
})

t.test('handles of an older handle key open until it is retired; its id is not used again', async (t) => {
  const store = await emptyStore(t)
  const clock = testClock()
  const first = await loadKeyRing({ store, secret, clock, random: seededRandom() })
  const grant = { grantId: 'AAAAAAAAAAAAAAAA', seq: 0, issuedAt: clock(), expiresAt: clock() + 60 }
  const handle = sealHandle({ kind: 'code', ...grant }, first.handles.current, 'AAAAAAAAAAAAAAAAAAAAAA')
  const old = await only(store.list('key'), 'HS256')
  clock.advance(5)
  const next = makeHandleKey([old.id], newMaking(await deriveSealingKey(secret), clock()))
  await store.write({ op: 'insertKey', key: next })
  await store.write({ op: 'updateKey', key: { ...old, retiredAt: clock() + 60 } })
  const ring = await loadKeyRing({ store, secret, clock, random: seededRandom() })
  t.equal(ring.handles.current.id, 2)
  t.equal(openHandle(ring.handles, handle, 'code')?.grantId, grant.grantId)
  clock.advance(60)
  t.equal(openHandle(ring.handles, handle, 'code'), undefined)
  const taken = (await store.list('key')).map(({ id }) => id)
  t.equal(makeHandleKey(taken, newMaking(await deriveSealingKey(secret), clock())).id, '3')
  const all = Array.from({ length: 255 }, (_, index) => String(index + 1))
  t.throws(() => makeHandleKey(all, newMaking(Buffer.alloc(32), clock())), {
    message: 'all 255 handle key ids are taken',
  })
})
