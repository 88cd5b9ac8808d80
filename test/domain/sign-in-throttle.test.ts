import t from 'tap'
import { addressPrefix } from '../../src/domain/address-prefix.ts'
import type { Throttle } from '../../src/domain/model.ts'
import {
  bucketsOf,
  countAttempt,
  refundAttempt,
  secondFactorBuckets,
} from '../../src/domain/sign-in-throttle.ts'

const limits = {
  failuresPerAccountAndPrefix: 3,
  failuresPerPrefix: 10,
  failuresPerAccount: 20,
  windowSeconds: 900,
}
const bucket = { key: 'k', limit: 3 }

t.test('an attempt counts against its network, the account from there, and the account', async (t) => {
  t.strictSame(bucketsOf('alice', '192.0.2.0/24', undefined, limits), [
    { key: 'prefix 192.0.2.0/24', limit: 10 },
    { key: 'account 192.0.2.0/24 alice', limit: 3 },
    { key: 'account alice', limit: 20 },
  ])
})

t.test('a browser that signed in before counts by itself, whoever guesses elsewhere', async (t) => {
  const known = bucketsOf('alice', '192.0.2.0/24', 'nonce', limits)
  t.equal(known.length, 1)
  t.equal(known[0]?.limit, 3)
  const others = bucketsOf('alice', '192.0.2.0/24', undefined, limits)
  t.notOk(others.some(({ key }) => key === known[0]?.key))
  t.not(known[0]?.key, bucketsOf('bob', '192.0.2.0/24', 'nonce', limits)[0]?.key)
})

t.test('attempts are counted up to the limit and then refused until the window ends', async (t) => {
  let throttle: Throttle | undefined
  for (const failures of [1, 2, 3]) {
    const { writes } = countAttempt(throttle, bucket, limits, 100 + failures)
    throttle = { key: 'k', failures, expiresAt: 1001 }
    t.strictSame(writes, [{ op: 'putThrottle', throttle }])
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
    writes: [{ throttle: { failures: 1, expiresAt: 1901 } }],
  })
})

t.test('an attempt that did not fail is taken back, the last one with its row', async (t) => {
  t.strictSame(refundAttempt(undefined).writes, [])
  t.strictSame(refundAttempt({ key: 'k', failures: 1, expiresAt: 9 }).writes, [
    { op: 'deleteThrottle', key: 'k' },
  ])
  t.strictSame(refundAttempt({ key: 'k', failures: 3, expiresAt: 9 }).writes, [
    { op: 'putThrottle', throttle: { key: 'k', failures: 2, expiresAt: 9 } },
  ])
})

t.test('a clock that ran ahead locks nobody out after it was set right', async (t) => {
  const full = { key: 'k', failures: 3, expiresAt: 1000 }
  t.throws(() => countAttempt(full, bucket, limits, 100), { code: 'temporarily_unavailable', status: 429 })
  t.strictSame(countAttempt(full, bucket, limits, 99).writes, [
    { op: 'putThrottle', throttle: { key: 'k', failures: 1, expiresAt: 999 } },
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

t.test(
  'second factors are counted apart, by person, or by a browser that finished a sign-in before',
  async (t) => {
    const limit = limits.failuresPerAccountAndPrefix
    const [stranger, known] = [undefined, 'nonce'].map((device) =>
      secondFactorBuckets('alice', device, limits),
    )
    t.strictSame(stranger, [{ key: 'second alice', limit }])
    t.strictSame(known, [{ key: 'second nonce alice', limit }])
    const passwords = bucketsOf('alice', '192.0.2.0/24', undefined, limits).map(({ key }) => key)
    t.notOk(passwords.includes('second alice'))
  },
)
