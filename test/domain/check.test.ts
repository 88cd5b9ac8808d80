import t from 'tap'
import { type PassedCheck, passedChecks, recordCheck } from '../../src/domain/check.ts'

t.test('whoever listens hears which rule held, with what was stored and received', async (t) => {
  const heard: PassedCheck[] = []
  const hear = (passedCheck: unknown) => void heard.push(passedCheck as PassedCheck)
  recordCheck('rfc7636-4.6-verify-s256', 'nobody hears this')
  passedChecks.subscribe(hear)
  recordCheck('rfc7636-4.6-verify-s256', 'it matches', 'a', 'b')
  passedChecks.unsubscribe(hear)
  recordCheck('rfc7636-4.6-verify-s256', 'nor this')
  t.strictSame(heard, [{ rule: 'rfc7636-4.6-verify-s256', found: 'it matches', stored: 'a', received: 'b' }])
})
