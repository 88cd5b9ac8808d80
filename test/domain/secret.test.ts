import t from 'tap'
import { openDevice, sealDevice } from '../../src/domain/device.ts'
import {
  hashSecret,
  isSameText,
  mintSecret,
  secretBytes,
  secretMatches,
  secretPrefix,
} from '../../src/domain/secret.ts'

t.test('a secret has 256 bits and names its kind', async (t) => {
  t.equal(secretBytes, 32)
  for (const kind of ['clientSecret', 'registration', 'session', 'browser', 'link', 'sealing'] as const) {
    const secret = mintSecret(kind, Buffer.alloc(secretBytes, 255))
    t.equal(secret, `${secretPrefix[kind]}${'_'.repeat(42)}8`)
  }
  t.equal(new Set(Object.values(secretPrefix)).size, 6)
})

t.test('a secret is kept as its SHA-256', async (t) => {
  t.equal(hashSecret('abc'), 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0')
})

t.test('only the very secret matches its hash', async (t) => {
  const secret = mintSecret('clientSecret', Buffer.alloc(secretBytes, 1))
  const stored = hashSecret(secret)
  t.ok(secretMatches(secret, stored))
  for (const other of ['', `${secret} `, secret.slice(0, -1), secret.toUpperCase(), stored]) {
    t.notOk(secretMatches(other, stored), other)
  }
  t.notOk(secretMatches(secret, ''))
  t.notOk(secretMatches(secret, `${stored}=`))
})

t.test('two texts are the same to the last character, and an absent one is none', async (t) => {
  t.ok(isSameText('token', 'token'))
  for (const other of [undefined, '', 'toke', 'tokem', 'token ', 'TOKEN']) t.notOk(isSameText(other, 'token'))
})

t.test('nothing matches where no secret is stored, not even the empty one', async (t) => {
  for (const secret of ['', 'x', 'undefined']) t.notOk(secretMatches(secret, undefined))
})

t.test('a device cookie opens as it was sealed, by its own key only', async (t) => {
  const key = 'a'.repeat(43)
  const device = { accountId: 'alice', nonce: 'n'.repeat(22) }
  const cookie = sealDevice(device, key)
  t.strictSame(openDevice(cookie, key), device)
  t.equal(openDevice(cookie, 'b'.repeat(43)), undefined)
  const other = sealDevice({ ...device, accountId: 'bob' }, key)
  const mac = cookie.split('.')[2] ?? ''
  for (const forged of [
    undefined,
    '',
    cookie.slice(0, -1),
    `${cookie}A`,
    cookie.replace('alice', 'bob'),
    `${other.split('.').slice(0, 2).join('.')}.${mac}`,
    `alice.${'n'.repeat(22)}.${'A'.repeat(43)}`,
    `alice..${mac}`,
    '\0'.repeat(80),
  ]) {
    t.equal(openDevice(forged, key), undefined, JSON.stringify(forged))
  }
})
