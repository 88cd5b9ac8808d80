import { channel } from 'node:diagnostics_channel'
import t from 'tap'
import { check, passedChecks, recordCheck } from '../../src/domain/check.ts'
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
  })
  const matched = { rule, found: 'it matches', stored: 'a', received: 'b' }
  t.strictSame(passed, [matched, matched])
  t.equal(channel('lychgate:rule'), passedChecks, 'other packages know it by this name')
})

t.test('a passed check without a text shows the name of its rule', async (t) => {
  const names = {
    'rfc7636-4.5-verifier-required': 'verifier required',
    'rfc7523bis-4-audience': 'audience',
    'oidc-core-3.1.2.1-max-age': 'max age',
    'oidc-bcl-2.4-events': 'events',
    'oauth21-2.3.1-complete-uri-all': 'complete uri all',
    'fapi2-5.3.2.1-dpop': 'dpop',
    'cimd-4-no-redirects': 'no redirects',
    'service-7-insufficient-scope-403': 'insufficient scope 403',
    'lychgate-account-username': 'account username',
  }
  for (const [id, found] of Object.entries(names)) {
    const passed = passedDuring(() => check(true, id, 'invalid_request', 'it is wrong'))
    t.strictSame(passed, [{ rule: id, found, stored: undefined, received: undefined }])
  }
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
