import t from 'tap'
import {
  hashSecret,
  isSameText,
  mintSecret,
  secretBytes,
  secretMatches,
  secretPrefix,
} from '../../src/domain/secret.ts'

t.test('a secret has 256 bits and a prefix for its kind', async (t) => {
  t.equal(secretBytes, 32)
  const kinds = [
    ['clientSecret', 'lyc_secret_'],
    ['registration', 'lyc_registration_'],
    ['initialToken', 'lyc_initial_'],
    ['personalToken', 'lyc_personal_'],
    ['session', 'lyc_session_'],
    ['browser', 'lyc_browser_'],
    ['link', 'lyc_link_'],
    ['held', 'lyc_held_'],
    ['sealing', 'lyc_sealing_'],
  ] as const
  for (const [kind, prefix] of kinds)
    t.equal(mintSecret(kind, Buffer.alloc(secretBytes, 255)), `${prefix}${'_'.repeat(42)}8`)
  t.strictSame(secretPrefix, Object.fromEntries(kinds), 'there is no other kind')
})

t.test('a secret is stored as its SHA-256', async (t) => {
  t.equal(hashSecret('abc'), 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0')
})

t.test('only the exact secret matches its hash', async (t) => {
  const secret = mintSecret('clientSecret', Buffer.alloc(secretBytes, 1))
  const stored = hashSecret(secret)
  t.ok(secretMatches(secret, stored))
  for (const other of ['', `${secret} `, secret.slice(0, -1), secret.toUpperCase(), stored]) {
    t.notOk(secretMatches(other, stored), other)
  }
  t.notOk(secretMatches(secret, ''))
  t.notOk(secretMatches(secret, `${stored}=`))
})

t.test('equal texts match to the last character, and an absent one matches none', async (t) => {
  t.ok(isSameText('token', 'token'))
  for (const other of [undefined, '', 'toke', 'tokem', 'token ', 'TOKEN']) t.notOk(isSameText(other, 'token'))
})

t.test('nothing matches an absent hash, not even the empty secret', async (t) => {
  for (const secret of ['', 'x', 'undefined']) t.notOk(secretMatches(secret, undefined))
})
