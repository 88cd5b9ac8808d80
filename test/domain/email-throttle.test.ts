import t from 'tap'
import { put } from '../../src/domain/decision.ts'
import {
  countEmail,
  countRequest,
  emailBucket,
  requestBucket,
  throttleKind,
  tooManyEmails,
} from '../../src/users/rules/throttle.ts'

const now = 1234
const hour = 3600
const network = '192.0.2.0/24'

t.test('a user gets five emails an hour, and none is sent beyond that', async (t) => {
  const key = emailBucket('alice')
  t.equal(key, 'letters alice')
  t.strictSame(countEmail(undefined, 'alice', now), {
    result: true,
    writes: [put(throttleKind, { key, failures: 1, expiresAt: now + hour })],
  })
  const expiresAt = now + hour - 5
  t.strictSame(countEmail({ key, failures: 4, expiresAt }, 'alice', now), {
    result: true,
    writes: [put(throttleKind, { key, failures: 5, expiresAt })],
  })
  for (const failures of [5, 6])
    t.strictSame(countEmail({ key, failures, expiresAt }, 'alice', now), { result: false, writes: [] })
  t.strictSame(countEmail({ key, failures: 5, expiresAt }, 'alice', expiresAt), {
    result: true,
    writes: [put(throttleKind, { key, failures: 1, expiresAt: expiresAt + hour })],
  })
})

t.test('from one network twenty requests for emails are accepted in an hour', async (t) => {
  const key = requestBucket(network)
  t.equal(key, 'letters from 192.0.2.0/24')
  t.strictSame(countRequest(undefined, network, now), {
    result: undefined,
    writes: [put(throttleKind, { key, failures: 1, expiresAt: now + hour })],
  })
  const expiresAt = now + 50
  t.strictSame(countRequest({ key, failures: 19, expiresAt }, network, now), {
    result: undefined,
    writes: [put(throttleKind, { key, failures: 20, expiresAt })],
  })
  for (const failures of [20, 21])
    t.throws(() => countRequest({ key, failures, expiresAt }, network, now), {
      code: 'temporarily_unavailable',
      message: 'too many emails were requested; try again later',
      status: 429,
      headers: { 'retry-after': '50' },
      detail: { rule: 'lychgate-letter-throttle' },
    })
  t.strictSame(countRequest({ key, failures: 20, expiresAt }, network, expiresAt), {
    result: undefined,
    writes: [put(throttleKind, { key, failures: 1, expiresAt: expiresAt + hour })],
  })
})

t.test('an email beyond the limit of its user may be requested again in an hour', async (t) => {
  t.match(tooManyEmails(), { status: 429, headers: { 'retry-after': String(hour) } })
})
