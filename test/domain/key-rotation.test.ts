import t from 'tap'
import type { Decision } from '../../src/domain/decision.ts'
import { actingKey, keyAlgorithms, stateOf } from '../../src/domain/key-term.ts'
import type { StoredKey } from '../../src/domain/model.ts'
import {
  dueKeys,
  type KeyPolicy,
  maintainKeys,
  retireKey,
  retirementNeeds,
  rotateKeys,
  rotationNeeds,
} from '../../src/keys/rules.ts'
import { resultOf } from '../helpers/samples.ts'

const policy: KeyPolicy = {
  algorithms: keyAlgorithms,
  rotationSeconds: 1000,
  publishAheadSeconds: 100,
  overlapSeconds: { signing: 500, handle: 2000 },
}
const day = 86_400
/** The instant at which the first keys begin. */
const start = 10_000

function key(id: string, algorithm: StoredKey['algorithm'], term: Partial<StoredKey> = {}): StoredKey {
  return {
    id,
    kind: algorithm === 'HS256' ? 'handle' : 'signing',
    algorithm,
    sealedPrivate: `sealed ${id}`,
    createdAt: start,
    activeAt: start,
    ...term,
  }
}

const [rsa, ec, ed, handle] = [key('rsa', 'RS256'), key('ec', 'ES256'), key('ed', 'EdDSA'), key('1', 'HS256')]
const first = [rsa, ec, ed, handle]
/** Young keys of the other algorithms, so that a table is about RS256 alone. */
const others = (now: number) => [ec, ed, handle].map((one) => ({ ...one, createdAt: now, activeAt: now }))
const fresh = [key('rsa 2', 'RS256'), key('ec 2', 'ES256'), key('ed 2', 'EdDSA'), key('2', 'HS256')]

/** The writes of a decision, short: `insert rsa 2 from 11100`. */
function writesOf(decision: Decision<unknown>): readonly string[] {
  return decision.writes.map((write) => {
    if (!('kind' in write) || write.kind !== 'key') throw new Error(write.op)
    if (write.op === 'delete') return `delete ${write.key}`
    if (write.op !== 'insert' && write.op !== 'update') throw new Error(write.op)
    const { id, activeAt, retiredAt } = write.record
    return `${write.op} ${id} from ${activeAt}${retiredAt === undefined ? '' : ` to ${retiredAt}`}`
  })
}

t.test('an empty ring gets an active key of every algorithm', async (t) => {
  t.same(
    dueKeys([], policy, start),
    keyAlgorithms.map((algorithm) => ({ algorithm, activeAt: start })),
  )
  t.same(writesOf(maintainKeys([], fresh, policy, start)), [
    'insert rsa 2 from 10000',
    'insert ec 2 from 10000',
    'insert ed 2 from 10000',
    'insert 2 from 10000',
  ])
})

t.test('maintenance, case by case', async (t) => {
  const due = start + 1000
  const waiting = key('rsa 2', 'RS256', { createdAt: due, activeAt: due + 100 })
  const replaced = { ...rsa, retiredAt: due + 600 }
  const young = { ...waiting, activeAt: due + day }
  const cases: [string, StoredKey[], number, string[]][] = [
    ['a key a second too young stays as it is', [rsa], due - 1, []],
    [
      'a key of that age gets a successor that waits, and its own end after the overlap',
      [rsa],
      due,
      ['update rsa from 10000 to 11600', 'insert rsa 2 from 11100'],
    ],
    ['a successor that waits is enough', [replaced, waiting], due + 50, []],
    ['one that has begun is no reason for another', [replaced, waiting], due + 500, []],
    [
      'it gets its own in its turn',
      [waiting],
      due + 1100,
      ['update rsa 2 from 11100 to 12700', 'insert 3 from 12200'],
    ],
    ['a retired key stays a day', [replaced, young], due + 600 + day - 1, []],
    ['and goes then', [replaced, young], due + 600 + day, ['delete rsa']],
    ['a successor by hand ends the old key, too', [rsa, waiting], due, ['update rsa from 10000 to 11600']],
    [
      'a key that was ended without a successor continues',
      [{ ...rsa, retiredAt: start + 50 }],
      start + 10,
      ['update rsa from 10000'],
    ],
    [
      'a ring whose last key retired gets one at once',
      [{ ...rsa, retiredAt: start }],
      start,
      ['insert rsa 2 from 10000'],
    ],
    ['a clock set back behind them all changes nothing', [replaced, waiting], start - 5000, []],
  ]
  for (const [name, ring, now, writes] of cases) {
    const made = [ring.some(({ id }) => id === 'rsa 2') ? key('3', 'RS256') : key('rsa 2', 'RS256')]
    t.same(writesOf(maintainKeys([...ring, ...others(now)], made, policy, now)), writes, name)
  }
})

t.test('a handle key stays for its own overlap', async (t) => {
  const now = start + 1000
  t.same(
    writesOf(
      maintainKeys([handle, ...[rsa, ec, ed].map((one) => ({ ...one, activeAt: now }))], fresh, policy, now),
    ),
    ['update 1 from 10000 to 13100', 'insert 2 from 11100'],
  )
})

t.test(
  'without rotation keys stay for ever, and a rotation that an operator began is still finished',
  async (t) => {
    const off = { ...policy, rotationSeconds: 0 }
    t.same(writesOf(maintainKeys(first, fresh, off, start + 1_000_000)), [])
    const waiting = key('rsa 2', 'RS256', { activeAt: start + 100 })
    const ring = [...first, waiting]
    t.same(writesOf(maintainKeys(ring, [], off, start)), ['update rsa from 10000 to 10600'])
    const eachSecond = { ...policy, rotationSeconds: 1 }
    t.same(dueKeys([...others(start), rsa], eachSecond, start), [])
    t.match(dueKeys([...others(start + 1), rsa], eachSecond, start + 1), [{ algorithm: 'RS256' }])
  },
)

t.test('the last key of an algorithm that is no longer offered ends after its overlap', async (t) => {
  const without = { ...policy, algorithms: ['RS256', 'ES256', 'HS256'] } as const
  t.same(writesOf(maintainKeys(first, [], without, start + 5)), ['update ed from 10000 to 10505'])
  const ending = [rsa, ec, handle, { ...ed, retiredAt: start + 505 }]
  t.same(writesOf(maintainKeys(ending, [], without, start + 50)), [], 'its end stays')
  t.same(writesOf(maintainKeys(ending, [], policy, start + 50)), ['update ed from 10000'], 'offered again')
})

t.test('a change of lifetimes never invalidates what was issued before', async (t) => {
  const now = start + 1200
  const waiting = key('rsa 2', 'RS256', { activeAt: start + 1100 })
  const ring = [{ ...rsa, retiredAt: start + 1600 }, waiting, ...others(now)]
  const longer = { ...policy, overlapSeconds: { signing: 900, handle: 2000 } }
  const shorter = { ...policy, overlapSeconds: { signing: 10, handle: 10 } }
  t.same(writesOf(maintainKeys(ring, [], longer, now)), ['update rsa from 10000 to 12000'], 'longer')
  t.same(writesOf(maintainKeys(ring, [], shorter, now)), [], 'shorter')
})

t.test('two decisions in a row about the same ring make one successor', async (t) => {
  const now = start + 1000
  const once = resultOf(maintainKeys(first, fresh, policy, now))
  t.equal(once.length, 8)
  t.same(dueKeys(once, policy, now), [])
  t.same(writesOf(maintainKeys(once, [], policy, now)), [])
})

t.test('each key passes through its four states, and one of each algorithm is always active', async (t) => {
  const now = start + 1000
  const ring = resultOf(maintainKeys(first, fresh, policy, now)).filter(
    ({ algorithm }) => algorithm === 'RS256',
  )
  const [old, next] = ring
  if (!old || !next) throw new Error('no successor')
  const states = (at: number) => [stateOf(old, ring, at), stateOf(next, ring, at), actingKey(ring, at)?.id]
  t.same(states(now), ['active', 'waiting', 'rsa'])
  t.same(states(now + 99), ['active', 'waiting', 'rsa'])
  t.same(states(now + 100), ['verifies only', 'active', 'rsa 2'])
  t.same(states(now + 599), ['verifies only', 'active', 'rsa 2'])
  t.same(states(now + 600), ['retired', 'active', 'rsa 2'])
  t.same(states(start - 1), ['active', 'waiting', 'rsa'], 'before them all')
})

t.test('an operator rotates the algorithms they name, and each successor is published first', async (t) => {
  const now = start + 10
  const algorithms = ['RS256', 'HS256'] as const
  const request = { algorithms, at: 'published' } as const
  t.same(rotationNeeds(first, algorithms, now), algorithms)
  const rotated = rotateKeys(first, request, fresh, policy, now)
  t.same(writesOf(rotated), [
    'update rsa from 10000 to 10610',
    'update 1 from 10000 to 12110',
    'insert rsa 2 from 10110',
    'insert 2 from 10110',
  ])
  const ring = resultOf(rotated)
  t.same(rotationNeeds(ring, algorithms, now), [], 'the successors that wait are enough')
  t.same(writesOf(rotateKeys(ring, request, [], policy, now)), [])
  t.same(rotationNeeds([], algorithms, now), [], 'an empty ring is for a server to fill')
})

t.test('with --now a successor is active at once, whether or not it was waiting', async (t) => {
  const now = start + 10
  const request = { algorithms: ['RS256'], at: 'once' } as const
  t.same(writesOf(rotateKeys(first, request, fresh, policy, now)), [
    'update rsa from 10000 to 10510',
    'insert rsa 2 from 10010',
  ])
  const published = resultOf(rotateKeys(first, { ...request, at: 'published' }, fresh, policy, now))
  t.same(
    writesOf(rotateKeys(published, request, [], policy, now + 5)),
    ['update rsa 2 from 10015'],
    'the end of the old key does not come nearer',
  )
  const [update] = rotateKeys(first, request, fresh, policy, start).writes.slice(1)
  t.match(update, { record: { activeAt: start + 1 } }, 'never in the second in which the old one began')
  const both = [...published, key('ec 2', 'ES256', { activeAt: start + 110 })]
  t.strictSame(
    resultOf(rotateKeys(both, request, [], policy, now)).map(({ id, activeAt }) => [id, activeAt]),
    both.map(({ id, activeAt }) => [id, id === 'rsa 2' ? now : activeAt]),
    'the waiting key of another algorithm keeps waiting',
  )
})

t.test('retiring the active key creates its successor in the same decision', async (t) => {
  const now = start + 10
  t.same(retirementNeeds(first, 'rsa', now), ['RS256'])
  const retired = retireKey(first, 'rsa', fresh, policy, now)
  t.same(writesOf(retired), ['update rsa from 10000 to 10010', 'insert rsa 2 from 10010'])
  t.match(resultOf(retired), { was: 'active', successor: { id: 'rsa 2' } })
  const published = resultOf(
    rotateKeys(first, { algorithms: ['RS256'], at: 'published' }, fresh, policy, now),
  )
  t.same(retirementNeeds(published, 'rsa', now), [], 'a successor waits')
  t.same(writesOf(retireKey(published, 'rsa', [], policy, now + 5)), [
    'update rsa from 10000 to 10015',
    'update rsa 2 from 10015',
  ])
})

t.test('retiring a waiting key deletes it, and the active one continues without an end', async (t) => {
  const now = start + 10
  const published = resultOf(
    rotateKeys(first, { algorithms: ['RS256'], at: 'published' }, fresh, policy, now),
  )
  t.same(retirementNeeds(published, 'rsa 2', now), [])
  const retired = retireKey(published, 'rsa 2', [], policy, now)
  t.same(writesOf(retired), ['delete rsa 2', 'update rsa from 10000'])
  t.match(resultOf(retired), { was: 'waiting', successor: undefined })
})

t.test('behind a waiting key that is retired, the active one lasts until the next begins', async (t) => {
  // The clock was set back: two keys wait.
  const ring = [
    key('rsa 0', 'RS256', { activeAt: start - 1000, retiredAt: start + 300 }),
    { ...rsa, retiredAt: start + 700 },
    key('rsa 2', 'RS256', { activeAt: start + 100, retiredAt: start + 2500 }),
    key('rsa 3', 'RS256', { activeAt: start + 2000 }),
    // An operator ended it.
    { ...ec, retiredAt: start + 60 },
    key('ec 2', 'ES256', { activeAt: start + 60 }),
  ]
  t.same(
    writesOf(retireKey(ring, 'rsa 2', [], { ...policy, overlapSeconds: { signing: 200, handle: 1 } }, start)),
    ['delete rsa 2', 'update rsa from 10000 to 12200'],
  )
})

t.test('a retired key stays retired even for servers whose clock is behind', async (t) => {
  const now = start + 1200
  const waiting = key('rsa 2', 'RS256', { activeAt: start + 1100 })
  const ring = [{ ...rsa, retiredAt: start + 1600 }, waiting, ...others(now)]
  const replaced = retireKey(ring, 'rsa', [], policy, now)
  t.same(retirementNeeds(ring, 'rsa', now), [], 'it has a successor')
  t.same(writesOf(replaced), ['update rsa from 10000 to 11100'], 'one that verifies only')
  const active = resultOf(retireKey(first, 'rsa', fresh, policy, now))
  for (const behind of [0, 1, 30, 90]) {
    const rings = [resultOf(replaced)?.ring, active?.ring]
    for (const after of rings) {
      const kept = resultOf(
        maintainKeys(after ?? [], fresh.slice(1), { ...policy, rotationSeconds: 0 }, now - behind),
      )
      t.ok((kept.find(({ id }) => id === 'rsa')?.retiredAt ?? 0) <= now, `${behind} s behind`)
    }
  }
})

t.test('an unknown or retired key cannot be retired', async (t) => {
  const gone = { ...rsa, retiredAt: start }
  for (const id of ['nothing', 'rsa']) {
    const decision = retireKey([gone, key('rsa 2', 'RS256')], id, [], policy, start + 5)
    t.same(decision, { result: undefined, writes: [] }, id)
  }
})

t.test('a decision without the key it requested is an error of the caller', async (t) => {
  t.throws(() => maintainKeys([], [], policy, start), { message: 'a fresh RS256 key is missing' })
})
