import t from 'tap'
import { reportFailure } from '../../src/cli/failure.ts'

t.test('a host name without an address is one line that names the setting', async (t) => {
  const written = t.capture(process.stderr, 'write', () => true)
  const fault = { syscall: 'getaddrinfo', code: 'ENOTFOUND', hostname: 'auth.example' }
  t.equal(reportFailure(Object.assign(new Error('getaddrinfo ENOTFOUND auth.example'), fault)), 1)
  t.strictSame(
    written().map(({ args }) => args),
    [['lychgate: auth.example has no address (ENOTFOUND); name one with --host or LYCHGATE_HOST\n']],
  )
})
