import t from 'tap'
import {
  actingKey,
  isRetired,
  keyAlgorithms,
  offeredAlgorithms,
  signingAlgorithms,
  stateOf,
  termsOf,
} from '../../src/domain/key-term.ts'
import type { StoredKey } from '../../src/domain/model.ts'
import { describeKey } from '../../src/keys/rules.ts'

const now = 20_000

function key(id: string, term: Partial<StoredKey> = {}): StoredKey {
  const times = { createdAt: 10_000, activeAt: 10_000 }
  return { id, kind: 'signing', algorithm: 'ES256', sealedPrivate: `sealed ${id}`, ...times, ...term }
}

const idOf = (one: StoredKey | undefined) => one?.id

t.test('EdDSA is offered where the setting says so, and the other algorithms always', async (t) => {
  t.strictSame(signingAlgorithms, ['RS256', 'ES256', 'EdDSA'])
  t.strictSame(keyAlgorithms, ['RS256', 'ES256', 'EdDSA', 'HS256'])
  t.strictSame(offeredAlgorithms({ ed25519: 'on' }), ['RS256', 'ES256', 'EdDSA'])
  t.strictSame(offeredAlgorithms({ ed25519: 'off' }), ['RS256', 'ES256'])
})

t.test('a key is retired from the second of its end', async (t) => {
  t.equal(isRetired(key('a'), now), false)
  t.equal(isRetired(key('a', { retiredAt: now + 1 }), now), false)
  t.equal(isRetired(key('a', { retiredAt: now }), now), true)
})

t.test('a retired key neither acts nor hides that another one does', async (t) => {
  const older = key('older')
  const newer = key('newer', { activeAt: 15_000, retiredAt: now })
  t.equal(idOf(actingKey([older, newer], now - 1)), undefined, 'the newest key has an end')
  t.equal(idOf(actingKey([older, newer], now)), 'older')
  t.strictSame(termsOf([newer, older], 'ES256', now), {
    terms: [older],
    acting: older,
    position: 0,
    waiting: undefined,
  })
})

t.test('without a key that acts, each one verifies only and none waits', async (t) => {
  const ring = [key('a', { retiredAt: now + 500 }), key('b', { activeAt: 11_000, retiredAt: now + 9 })]
  t.match(termsOf(ring, 'ES256', now), { acting: undefined, position: 2, waiting: undefined })
  for (const one of ring) t.equal(stateOf(one, ring, now), 'verifies only', one.id)
  t.strictSame(termsOf(ring, 'RS256', now), { terms: [], acting: undefined, position: 0, waiting: undefined })
})

t.test(
  'keys act in the order of their beginning, then of their making, and the id breaks ties',
  async (t) => {
    const inOrder = [
      key('c', { activeAt: 11_000, createdAt: 9_000 }),
      key('a', { activeAt: 12_000, createdAt: 1_000 }),
      key('b', { activeAt: 12_000, createdAt: 2_000 }),
      key('f', { activeAt: 12_000, createdAt: 3_000 }),
      key('e', { activeAt: 12_000, createdAt: 3_000 }),
      key('d', { activeAt: 12_000, createdAt: 3_000 }),
    ]
    const [c, a, b, f, e, d] = inOrder
    for (const ring of [inOrder, inOrder.toReversed(), [d, f, e, b, c, a], [f, d, b, a, e, c]]) {
      const present = ring.filter((one) => one !== undefined)
      t.strictSame(termsOf(present, 'ES256', now).terms.map(idOf), ['c', 'a', 'b', 'f', 'e', 'd'])
      t.equal(idOf(actingKey(present, now)), 'd', 'the last one')
      t.equal(idOf(actingKey(present, 11_500)), 'c')
      t.equal(idOf(actingKey(present, 5)), 'c', 'the first one, if none has begun')
    }
  },
)

t.test('the state of a key follows from where it is in its ring', async (t) => {
  const ring = [
    key('old', { retiredAt: now + 100 }),
    key('present', { activeAt: 15_000 }),
    key('next', { activeAt: now + 1 }),
    key('gone', { activeAt: 1, retiredAt: 10 }),
    key('other', { algorithm: 'RS256', activeAt: 16_000 }),
  ]
  t.strictSame(
    ring.map((one) => stateOf(one, ring, now)),
    ['verifies only', 'active', 'waiting', 'retired', 'active'],
  )
  t.equal(idOf(termsOf(ring, 'ES256', now).waiting), 'next')
})

t.test('an operator sees a key without its private part, and its end if it has one', async (t) => {
  const [old, present] = [key('old', { retiredAt: now + 100 }), key('present', { activeAt: 15_000 })]
  const ring = [old, present]
  const common = { kind: 'signing', algorithm: 'ES256', created_at: 10_000 }
  t.strictSame(describeKey(old, ring, now), {
    kid: 'old',
    ...common,
    state: 'verifies only',
    active_from: 10_000,
    retires_at: now + 100,
  })
  t.strictSame(describeKey(present, ring, now), {
    kid: 'present',
    ...common,
    state: 'active',
    active_from: 15_000,
  })
})
