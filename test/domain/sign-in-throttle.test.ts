import t from 'tap'
import { put, remove } from '../../src/domain/decision.ts'
import type { Throttle } from '../../src/domain/model.ts'
import { addressPrefix } from '../../src/http/address-prefix.ts'
import { countAttempts, refundOf, signedIn } from '../../src/users/rules/attempts.ts'
import {
  type Bucket,
  bucketsOf,
  countAttempt,
  countUser,
  forgetFailures,
  inARowRule,
  networkRows,
  networkRule,
  networkWeight,
  refundAttempt,
  secondFactorBuckets,
  throttleKind,
} from '../../src/users/rules/throttle.ts'

const limits = {
  failuresPerAccountAndPrefix: 3,
  failuresPerPrefix: 10,
  failuresPerPrefixAndUser: 2,
  failuresPerAccount: 20,
  failuresInARow: 50,
  windowSeconds: 900,
}
const bucket = { key: 'k', limit: 3 }

const attempt = { login: 'alice', isUser: true, prefix: '192.0.2.0/24', usersOfPrefix: 0 }
const knownBrowser = (nonce: string, isBound = true) => ({ userId: 'alice', nonce, isBound })
const keysOf = (buckets: readonly Bucket[]) => buckets.map(({ key }) => key)

t.test(
  'an attempt counts for the user in its network, for the network, for the user, and in a row',
  async (t) => {
    t.strictSame(bucketsOf(attempt, limits), [
      { key: 'failed alice 192.0.2.0/24', limit: 3 },
      { key: 'prefix 192.0.2.0/24', limit: 10, kind: 'network' },
      { key: 'failed alice all', limit: 20 },
      { key: 'in-a-row alice', limit: 50, kind: 'in-a-row' },
    ])
  },
)

t.test('the limit of a network grows with the number of users who signed in from it', async (t) => {
  const [, network] = bucketsOf({ ...attempt, usersOfPrefix: 30 }, limits)
  t.strictSame(network, { key: 'prefix 192.0.2.0/24', limit: 10 + 30 * 2, kind: 'network' })
})

t.test('a known browser has its own count, unaffected by guesses from elsewhere', async (t) => {
  const known = bucketsOf({ ...attempt, knownBrowser: knownBrowser('nonce') }, limits)
  t.strictSame(known, [
    { key: 'failed alice device nonce', limit: 3 },
    { key: 'failed alice devices', limit: 6 },
    { key: 'in-a-row devices alice', limit: 50, kind: 'in-a-row' },
  ])
  const others = keysOf(bucketsOf(attempt, limits))
  t.notOk(keysOf(known).some((key) => others.includes(key)))
})

t.test('all cookies that are not bound to the password share a count', async (t) => {
  const [one, two] = ['one', 'two'].map((nonce) =>
    bucketsOf({ ...attempt, knownBrowser: knownBrowser(nonce, false) }, limits),
  )
  t.strictSame(one, two)
  t.equal(one?.[0]?.key, 'failed alice device unbound')
})

t.test('unknown user names share a bounded number of rows', async (t) => {
  const names = Array.from({ length: 5000 }, (_, n) => `name ${n}`)
  const rows = names.map((login) => bucketsOf({ ...attempt, login, isUser: false }, limits).at(-1)?.key ?? '')
  const week = 7 * 86_400
  t.match(bucketsOf({ ...attempt, isUser: false }, limits).at(-1), { rowSeconds: week })
  for (const row of rows) t.match(row, /^in-a-row unknown [0-9a-f]{4}$/)
})

t.test('the first three failures for one name count once for its network', async (t) => {
  t.strictSame([1, 2, 3, 4, 5].map(networkWeight), [1, 0, 0, 1, 1])
  t.strictSame(countAttempt(undefined, bucket, limits, 100, 0), { result: 0, writes: [] })
})

t.test('consecutive failures have no window, and a success resets them', async (t) => {
  const inARow = { ...bucket, kind: 'in-a-row' } as const
  const year = 365 * 86_400
  t.strictSame(countAttempt({ key: 'k', failures: 2, expiresAt: 1000 }, inARow, limits, 100).writes, [
    put(throttleKind, { key: 'k', failures: 3, expiresAt: 100 + year }),
  ])
  const full = { key: 'k', failures: 3, expiresAt: 100 + year }
  t.throws(() => countAttempt(full, inARow, limits, 99_000), { code: 'temporarily_unavailable' })
  t.match(countAttempt(undefined, { ...inARow, rowSeconds: 60 }, limits, 100), {
    writes: [{ record: { expiresAt: 160 } }],
  })
  t.strictSame(refundAttempt(full, true).writes, [remove(throttleKind, 'k')])
})

t.test('the error of a full bucket says what it is about, and what ends it', async (t) => {
  const error = ['lychgate-other', 'too many of another kind'] as const
  const rows: readonly [changes: Partial<Bucket>, rule: string, message: string][] = [
    [{}, 'lychgate-sign-in-throttle', 'too many failed sign-ins; try again later'],
    [
      { kind: 'network' },
      'lychgate-sign-in-throttle-network',
      'too many failed sign-ins from this network (signInThrottle.failuresPerPrefix); try again later',
    ],
    [
      { kind: 'in-a-row' },
      'lychgate-failures-in-a-row',
      'too many failed sign-ins in a row (signInThrottle.failuresInARow); ' +
        'a new password or an operator ends it',
    ],
    [{ error }, ...error],
    [{ error, kind: 'network' }, ...error],
  ]
  const full = { key: 'k', failures: 3, expiresAt: 900 }
  for (const [changes, rule, message] of rows) {
    t.throws(
      () => countAttempt(full, { ...bucket, ...changes }, limits, 100, 0),
      {
        code: 'temporarily_unavailable',
        message,
        status: 429,
        detail: { rule },
        // Failures in a row do not end by waiting.
        headers: changes.kind === 'in-a-row' ? {} : { 'retry-after': '800' },
      },
      rule,
    )
  }
  t.strictSame([networkRule, inARowRule], [rows[1]?.[1], rows[2]?.[1]])
})

t.test('a counter is stored by its bucket, until its window ends', async (t) => {
  t.match(throttleKind.rowOf({ key: 'k', failures: 3, expiresAt: 900 }), {
    kind: 'throttle',
    id: 'k',
    expiresAt: 900,
  })
})

t.test('a user who signs in from a network is counted once a week, for the week after', async (t) => {
  const week = 7 * 86_400
  const [now, later] = [10 * week + 5, 11 * week]
  const rows = networkRows('p', 'alice', now)
  t.strictSame(rows.user, { key: 'seen p 10 alice', expiresAt: 11 * week })
  t.strictSame(rows.users, { key: 'users p 10', expiresAt: 12 * week })
  t.equal(networkRows('p', 'bob', later).before.key, rows.users.key)
  t.strictSame(countUser(undefined, rows.users), {
    result: undefined,
    writes: [put(throttleKind, { key: 'users p 10', failures: 1, expiresAt: 12 * week })],
  })
  t.match(countUser({ key: 'k', failures: 4, expiresAt: 9 }, rows.users), {
    writes: [{ record: { body: /"failures":5/, expiresAt: 12 * week } }],
  })
})

t.test('a success that is counted at the same time as another makes room once', async (t) => {
  const rows = networkRows('p', 'alice', 5)
  const { keys, writes } = signedIn('alice', rows)
  t.strictSame(keys, ['in-a-row alice', 'in-a-row devices alice', rows.user.key, rows.users.key])
  const one = { failures: 1, expiresAt: 9 }
  const before = new Map([[rows.users.key, { ...one, key: rows.users.key }]])
  t.match(writes(before), [{ record: { body: /"failures":1/ } }, { record: { body: /"failures":2/ } }])
  t.strictSame(writes(new Map([...before, [rows.user.key, { ...one, key: rows.user.key }]])), [])
  const failed = new Map([['in-a-row alice', { ...one, key: 'in-a-row alice' }]])
  t.strictSame(signedIn('alice').writes(failed), [remove(throttleKind, 'in-a-row alice')])
})

t.test('an attempt counts in every bucket, or in none', async (t) => {
  const other = { key: 'other', limit: 1, kind: 'in-a-row' } as const
  const counted = countAttempts(new Map(), [bucket, other], limits, 100)
  t.match(counted, { result: { counted: [bucket, other], isLast: true } })
  t.equal(counted.writes.length, 2)
  const full = new Map([['other', { key: 'other', failures: 1, expiresAt: 200 }]])
  t.throws(() => countAttempts(full, [bucket, other], limits, 100), { code: 'temporarily_unavailable' })
  t.strictSame(refundOf([bucket, other]).writes(full), [remove(throttleKind, 'other')])
})

t.test('attempts are counted up to the limit and then rejected until the window ends', async (t) => {
  let throttle: Throttle | undefined
  for (const failures of [1, 2, 3]) {
    const { writes } = countAttempt(throttle, bucket, limits, 100 + failures)
    throttle = { key: 'k', failures, expiresAt: 1001 }
    t.strictSame(writes, [put(throttleKind, throttle)])
  }
  for (const [now, wait] of [
    [104, '897'],
    [1000, '1'],
  ] as const) {
    t.throws(() => countAttempt(throttle, bucket, limits, now), {
      code: 'temporarily_unavailable',
      status: 429,
      headers: { 'retry-after': wait },
    })
  }
  t.match(countAttempt(throttle, bucket, limits, 1001), {
    writes: [{ record: { body: /"failures":1/, expiresAt: 1901 } }],
  })
})

t.test('an attempt that did not fail is subtracted, and the last one deletes its row', async (t) => {
  t.strictSame(refundAttempt(undefined).writes, [])
  t.strictSame(refundAttempt({ key: 'k', failures: 1, expiresAt: 9 }).writes, [remove(throttleKind, 'k')])
  for (const failures of [2, 3])
    t.strictSame(refundAttempt({ key: 'k', failures, expiresAt: 9 }).writes, [
      put(throttleKind, { key: 'k', failures: failures - 1, expiresAt: 9 }),
    ])
})

t.test('a clock that ran ahead locks no user out once it is corrected', async (t) => {
  const full = { key: 'k', failures: 3, expiresAt: 1000 }
  t.throws(() => countAttempt(full, bucket, limits, 100), { code: 'temporarily_unavailable', status: 429 })
  t.strictSame(countAttempt(full, bucket, limits, 99).writes, [
    put(throttleKind, { key: 'k', failures: 1, expiresAt: 999 }),
  ])
})

t.test('an address counts as its network', async (t) => {
  const rows: [string, string][] = [
    ['192.0.2.7', '192.0.2.0/24'],
    ['192.0.2.255', '192.0.2.0/24'],
    ['::ffff:192.0.2.7', '192.0.2.0/24'],
    ['::FFFF:192.0.2.7', '192.0.2.0/24'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['1:2:3:4::', '1:2:3:4::/64'],
    ['192.0.2.7:51004', '192.0.2.0/24'],
    ['[2001:db8:1:2::7]:51004', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::7]', '2001:db8:1:2::/64'],
    ['::ffff:c000:207', '192.0.2.0/24'],
    ['0:0:0:0:0:ffff:192.0.2.7', '192.0.2.0/24'],
    ['0000:0000:0000:0000:0000:FFFF:C000:0207', '192.0.2.0/24'],
  ]
  for (const [address, prefix] of rows) t.equal(addressPrefix(address), prefix, address)
})

t.test('second factors are counted separately, by user, or by a known browser', async (t) => {
  const limit = limits.failuresPerAccountAndPrefix
  const inARow = { limit: 50, kind: 'in-a-row' }
  t.strictSame(secondFactorBuckets('alice', undefined, limits), [
    { key: 'failed alice second', limit },
    { key: 'in-a-row codes alice', ...inARow },
  ])
  t.strictSame(secondFactorBuckets('alice', knownBrowser('nonce'), limits), [
    { key: 'failed alice second nonce', limit },
    { key: 'failed alice second devices', limit: 2 * limit },
    { key: 'in-a-row codes of devices alice', ...inARow },
  ])
})

t.test('a new password or an operator resets every counter of one user, and none of a network', async (t) => {
  const writes = forgetFailures('alice')
  const isForgotten = (key: string) =>
    writes.some((write) =>
      write.op === 'deleteRecordsFrom'
        ? key.startsWith(write.prefix)
        : write.op === 'deleteRecord' && write.key === key,
    )
  const buckets = [undefined, knownBrowser('nonce')].flatMap((knownBrowser) => [
    ...bucketsOf({ ...attempt, knownBrowser }, limits),
    ...secondFactorBuckets('alice', knownBrowser, limits),
  ])
  for (const { key, kind } of buckets) t.equal(isForgotten(key), kind !== 'network', key)
  const others = keysOf(bucketsOf({ ...attempt, login: 'alice2' }, limits))
  t.notOk(others.some(isForgotten), 'of another user')
})
