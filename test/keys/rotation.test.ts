import { compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import t, { type Test } from 'tap'
import { remove, update } from '../../src/domain/decision.ts'
import { type Handle, type HandleKind, openHandle, sealHandle } from '../../src/domain/handle.ts'
import { type KeyAlgorithm, keyAlgorithms } from '../../src/domain/key-term.ts'
import type { StoredKey } from '../../src/domain/model.ts'
import { changeKeys } from '../../src/keys/change-keys.ts'
import { type KeyRing, loadKeyRing } from '../../src/keys/key-ring.ts'
import { makeHandleKey } from '../../src/keys/make-keys.ts'
import { type KeyPolicy, rotateKeys, rotationNeeds } from '../../src/keys/rules.ts'
import { deriveSealingKey, WrongSecret } from '../../src/keys/seal.ts'
import { openStore } from '../../src/storage/open.ts'
import type { Store } from '../../src/storage/store.ts'
import { seededRandom, type TestClock, testClock } from '../helpers/clock.ts'

const secret = 'a secret of at least thirty-two characters'
const policy: KeyPolicy = {
  algorithms: keyAlgorithms,
  rotationSeconds: 1000,
  publishAheadSeconds: 100,
  overlapSeconds: { signing: 500, handle: 2000 },
}
const claims = { iss: 'http://localhost:9400', sub: 'user_1' }
const grantSecret = 'AAAAAAAAAAAAAAAAAAAAAA'

/** One store with any number of servers; `reads` counts how often the keys were listed. */
async function oneStore(t: Test) {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  const clock = testClock()
  let reads = 0
  const counting: Store = {
    ...store,
    list: (kind) => {
      reads += 1
      return store.list(kind)
    },
  }
  let servers = 0
  const server = (changes: Partial<KeyPolicy> = {}) => {
    servers += 1
    const random = seededRandom(`server ${servers}`)
    return loadKeyRing({ store: counting, secret, policy: { ...policy, ...changes }, clock, random })
  }
  return { store, clock, server, reads: () => reads }
}

/** Does what an operator's `keys rotate --now` does. */
async function rotateNow(
  store: Store,
  clock: TestClock,
  algorithms: readonly KeyAlgorithm[] = keyAlgorithms,
) {
  const sources = {
    store,
    clock,
    sealingKey: await deriveSealingKey(secret),
    random: seededRandom('operator'),
  }
  return changeKeys(sources, {
    needs: (ring, now) => rotationNeeds(ring, algorithms, now),
    decide: (ring, fresh, now) => rotateKeys(ring, { algorithms, at: 'once' }, fresh, policy, now),
  })
}

function sealed(ring: KeyRing, clock: TestClock, kind: HandleKind = 'code', seq = 0): string {
  const now = clock()
  const handle: Handle = { kind, grantId: 'AAAAAAAAAAAAAAAA', seq, issuedAt: now, expiresAt: now + 60 }
  return sealHandle(handle, ring.handles.current, grantSecret)
}

const published = (ring: KeyRing) => ring.jwks().keys.map(({ kid }) => kid)
const signerOf = async (ring: KeyRing) =>
  decodeProtectedHeader(await ring.sign('RS256', 'JWT', claims)).kid ?? ''

t.test(
  '[oidc-core-10.1.1-rotation] a successor is published before it signs, and signatures of the old key verify until all have expired',
  async (t) => {
    const { clock, server } = await oneStore(t)
    const ring = await server()
    const old = await ring.sign('RS256', 'JWT', claims)
    const before = await signerOf(ring)
    clock.advance(1000)
    const { added } = await ring.reload()
    t.equal(added.length, 4)
    const next =
      added.find((kid) => ring.jwks().keys.some((key) => key.kid === kid && key.alg === 'RS256')) ?? ''
    t.same(published(ring).length, 6)
    t.equal(await signerOf(ring), before, 'published, and not yet signing')
    clock.advance(99)
    t.equal(await signerOf(ring), before)
    clock.advance(1)
    t.equal(await signerOf(ring), next)
    clock.advance(499)
    t.match(await ring.verify(old, 'JWT'), claims)
    const jwk = ring.jwks().keys.find(({ kid }) => kid === before)
    await t.resolves(compactVerify(old, await importJWK(jwk ?? {}, 'RS256')), 'by the published key')
    clock.advance(1)
    t.equal(await ring.verify(old, 'JWT'), undefined)
    t.notOk(published(ring).includes(before))
    t.same(published(ring).length, 3)
    t.same(ring.algorithms, ['RS256', 'ES256', 'EdDSA'])
  },
)

t.test(
  'handles of an older handle key open until it is retired; afterwards its id causes no reload',
  async (t) => {
    const { clock, server, reads } = await oneStore(t)
    const ring = await server()
    const code = sealed(ring, clock)
    clock.advance(1000)
    await ring.reload()
    t.equal(ring.handles.current.id, 1)
    clock.advance(100)
    t.equal(ring.handles.current.id, 2)
    t.equal((await ring.open(code, 'code'))?.grantId, 'AAAAAAAAAAAAAAAA')
    t.equal(await ring.open(code, 'access', 'refresh'), undefined, 'of another kind')
    clock.advance(1999)
    t.ok(openHandle(ring.handles, code, 'code'))
    clock.advance(1)
    const before = reads()
    t.equal(await ring.open(code, 'code'), undefined)
    t.equal(reads(), before)
  },
)

t.test('an access token that was opened before is not opened once its key is retired', async (t) => {
  const { clock, server } = await oneStore(t)
  const ring = await server()
  const token = sealed(ring, clock, 'access')
  for (const time of ['first', 'second']) {
    t.equal((await ring.open(token, 'access'))?.kind, 'access', `for the ${time} time`)
    t.equal(await ring.open(token, 'refresh', 'code'), undefined, 'as a token of another kind')
  }
  clock.advance(1000)
  await ring.reload()
  t.equal((await ring.open(token, 'access'))?.kind, 'access')
  clock.advance(2100)
  t.equal(await ring.open(token, 'access'), undefined)
})

t.test('a code opens the same at the server that made it, once more, and at another server', async (t) => {
  const { clock, server } = await oneStore(t)
  const [ring, other] = [await server(), await server()]
  const [issuedAt, expiresAt] = [clock(), clock() + 60]
  const contents = { kind: 'code', grantId: 'AAAAAAAAAAAAAAAA', seq: 0, issuedAt, expiresAt } as const
  const code = ring.sealCode(contents, grantSecret)
  t.equal(code, sealed(ring, clock))
  t.equal(await ring.open(code, 'access', 'refresh'), undefined, 'of another kind')
  for (const [at, opened] of Object.entries({
    'the first time': await ring.open(code, 'code'),
    'the second time': await ring.open(code, 'code'),
    'another server': await other.open(code, 'code'),
  })) {
    const { hasTagOf, tokenId, ...rest } = opened ?? {}
    t.strictSame(rest, contents, at)
    t.equal(tokenId, (await other.open(code, 'code'))?.tokenId, at)
    t.ok(hasTagOf?.(grantSecret), at)
    t.notOk(hasTagOf?.('BBBBBBBBBBBBBBBBBBBBBB'), at)
  }
})

t.test('a code that is kept does not outlive its key', async (t) => {
  const { clock, server } = await oneStore(t)
  const ring = await server()
  const [issuedAt, expiresAt] = [clock(), clock() + 60]
  const code = ring.sealCode(
    { kind: 'code', grantId: 'AAAAAAAAAAAAAAAA', seq: 0, issuedAt, expiresAt },
    grantSecret,
  )
  clock.advance(1000)
  await ring.reload()
  clock.advance(2100)
  t.equal(await ring.open(code, 'code'), undefined)
})

t.test('more access tokens than are kept all open', async (t) => {
  const { clock, server } = await oneStore(t)
  const ring = await server()
  const tokens = Array.from({ length: 5000 }, (_, seq) => sealed(ring, clock, 'access', seq))
  for (const _ of ['kept', 'kept or not'])
    for (const [seq, token] of tokens.entries())
      if ((await ring.open(token, 'access'))?.seq !== seq) t.fail(`token ${seq} does not open`)
})

t.test('a handle that names no key is opened by every usable key, the current one first', async (t) => {
  const { clock, server } = await oneStore(t)
  const ring = await server()
  const old = ring.handles.current.secret
  clock.advance(1000)
  await ring.reload()
  clock.advance(100)
  t.same(ring.handleSecrets, [ring.handles.current.secret, old])
  clock.advance(2000)
  t.same(ring.handleSecrets, [ring.handles.current.secret])
})

t.test('two servers that rotate at the same time end up with one successor per algorithm', async (t) => {
  const { store, clock, server } = await oneStore(t)
  const rings = [await server(), await server()]
  clock.advance(1000)
  await Promise.all(rings.map((ring) => ring.reload()))
  const stored = await store.list('key')
  t.equal(stored.length, 8)
  for (const algorithm of keyAlgorithms)
    t.equal(stored.filter((key) => key.algorithm === algorithm).length, 2)
  t.same(published(rings[0] as KeyRing).sort(), published(rings[1] as KeyRing).sort())
})

t.test(
  'a server loads what another one added or retired, and loads nothing if nothing changed',
  async (t) => {
    const { store, clock, server } = await oneStore(t)
    const [one, other] = [await server(), await server()]
    const jwks = other.jwks()
    t.same(await other.reload(), { added: [], removed: [] })
    t.equal(other.jwks(), jwks, 'the very same document')
    clock.advance(1000)
    const { added } = await one.reload()
    t.same([...(await other.reload()).added].sort(), [...added].sort())
    t.not(other.jwks(), jwks)
    const waiting = (await store.list('key')).find(({ id }) => added.includes(id) && id !== '2') as StoredKey
    await store.write(remove('key', waiting.id))
    t.same((await other.reload()).removed, [waiting.id])
    const active = (await store.list('key')).find(({ id }) => id === '1') as StoredKey
    await store.write(update('key', { ...active, retiredAt: clock() }))
    t.same((await other.reload()).removed, ['1'], 'a retired key is gone, though its row is kept')
    t.notOk(published(other).includes(waiting.id))
  },
)

t.test('a key that is active at once is loaded when the first token names it', async (t) => {
  const { store, clock, server } = await oneStore(t)
  const [one, other] = [await server(), await server()]
  clock.advance(5)
  await rotateNow(store, clock)
  await one.reload()
  const [code, jws] = [sealed(one, clock), await one.sign('RS256', 'JWT', claims)]
  t.equal(one.handles.current.id, 2)
  t.equal(openHandle(other.handles, code, 'code'), undefined, 'unknown to the other')
  t.ok(await other.open(code, 'code'))
  t.equal(other.handles.current.id, 2)
  t.match(await other.verify(jws, 'JWT'), claims)
})

t.test('the same for a signature, with no other reload pending', async (t) => {
  const { store, clock, server } = await oneStore(t)
  const [one, other] = [await server(), await server()]
  clock.advance(5)
  await rotateNow(store, clock, ['ES256'])
  await one.reload()
  t.match(await other.verify(await one.sign('ES256', 'at+jwt', claims), 'at+jwt'), claims)
})

t.test('requests that name random keys reload the store at most once a second', async (t) => {
  const { clock, server, reads } = await oneStore(t)
  const ring = await server()
  const stranger = await (await oneStore(t)).server()
  const jws = await stranger.sign('RS256', 'JWT', claims)
  const [kind, body] = ['lyc_code_', Buffer.alloc(58, 7)]
  const named = (id: number) => {
    body[1] = id
    return kind + body.toString('base64url')
  }
  const flood = () =>
    Promise.all([
      ...Array.from({ length: 50 }, (_, id) => ring.open(named(id + 2), 'code')),
      ...Array.from({ length: 50 }, () => ring.verify(jws, 'JWT')),
    ])
  const before = reads()
  t.ok((await flood()).every((result) => result === undefined))
  t.equal(reads() - before, 0, 'just after a reading')
  clock.advance(1)
  await flood()
  await flood()
  t.equal(reads() - before, 1)
  clock.advance(-60)
  await flood()
  t.equal(reads() - before, 2, 'a clock set back does not keep it from looking')
  await Promise.all(['garbage', 'lyc_code_', '', 'a.b.c'].map((text) => ring.open(text, 'code')))
  t.equal(reads() - before, 2)
})

t.test('a server that cannot read the store keeps its keys, and reloads when it can', async (t) => {
  const { store, clock } = await oneStore(t)
  let down = false
  const failing: Store = {
    ...store,
    list: (kind) => (down ? Promise.reject(new Error('down')) : store.list(kind)),
  }
  const ring = await loadKeyRing({ store: failing, secret, policy, clock, random: seededRandom() })
  const kid = await signerOf(ring)
  down = true
  clock.advance(1000)
  await t.rejects(ring.reload(), { message: 'down' })
  t.equal(await signerOf(ring), kid)
  down = false
  t.equal((await ring.reload()).added.length, 4)
})

t.test('without a policy the ring is loaded and nothing is created', async (t) => {
  const { store, clock, server } = await oneStore(t)
  await server()
  clock.advance(5000)
  const reader = await loadKeyRing({ store, secret, clock, random: seededRandom() })
  t.equal((await store.list('key')).length, 4)
  t.equal(published(reader).length, 3)
  await t.rejects(loadKeyRing({ store, secret: `${secret}!`, clock, random: seededRandom() }), WrongSecret)
})

t.test('an operator with a wrong secret changes nothing', async (t) => {
  const { store, clock, server } = await oneStore(t)
  await server()
  const before = await store.list('key')
  const sealingKey = await deriveSealingKey(`${secret}!`)
  const sources = { store, clock, sealingKey, random: seededRandom() }
  const change = {
    needs: () => keyAlgorithms,
    decide: (ring: readonly StoredKey[], fresh: readonly StoredKey[], now: number) =>
      rotateKeys(ring, { algorithms: keyAlgorithms, at: 'once' }, fresh, policy, now),
  }
  await t.rejects(changeKeys(sources, change), WrongSecret)
  t.same(await store.list('key'), before)
})

t.test('ids wrap around: the next is the free one after the newest', async (t) => {
  const making = { sealing: [Buffer.alloc(32)], random: seededRandom(), now: 5, development: false }
  const ring = (...ids: number[]) =>
    ids.map((id, index) => ({ ...makeHandleKey([], making), id: String(id), createdAt: index }))
  const every = Array.from({ length: 255 }, (_, index) => index + 1)
  t.equal(makeHandleKey([], making).id, '1')
  t.equal(makeHandleKey(ring(1), making).id, '2')
  t.equal(makeHandleKey(ring(4, 9), making).id, '10', 'not the first that is free')
  t.equal(makeHandleKey(ring(3, 255), making).id, '1', 'after the last the first')
  t.equal(makeHandleKey(ring(1, 2, 255), making).id, '3', 'past those that are taken')
  t.throws(() => makeHandleKey(ring(...every), making), { message: 'all 255 handle key ids are taken' })
})
