import t from 'tap'
import { check, recordCheck } from '../../src/domain/check.ts'
import { passedDuring } from '../helpers/checks.ts'

const rule = 'rfc7636-4.6-verify-s256'

t.test('a passed check is published with the stored and received values', async (t) => {
  recordCheck(rule, 'without a subscriber')
  check(true, rule, 'invalid_grant', 'it does not match')
  const passed = passedDuring(() => {
    recordCheck(rule, 'it matches', 'a', 'b')
    check(true, rule, 'invalid_grant', 'it does not match', {
      passed: 'it matches',
      stored: 'a',
      received: 'b',
    })
    check(true, 'oidc-core-3.1.2.1-max-age', 'invalid_request', 'max_age must be a number of seconds')
    check(true, 'lychgate-account-username', 'invalid_request', 'username is too long')
  })
  const matched = { rule, found: 'it matches', stored: 'a', received: 'b' }
  t.match(passed, [matched, matched, { found: 'max age' }, { found: 'account username' }])
  t.equal(passed.length, 4)
})

t.test('a failed check throws its error and publishes nothing', async (t) => {
  const detail = { passed: 'it matches', stored: 'a', received: 'b', status: 401 }
  const passed = passedDuring(() => {
    t.throws(() => check(false, rule, 'invalid_grant', 'it does not match', detail), {
      name: 'OAuthError',
      code: 'invalid_grant',
      message: 'it does not match',
      status: 401,
      detail: { rule, stored: 'a', received: 'b', passed: undefined },
    })
  })
  t.strictSame(passed, [])
})
