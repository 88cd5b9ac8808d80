import { createHmac } from 'node:crypto'
import t from 'tap'
import {
  hashSecret,
  isSameText,
  mintSecret,
  secretBytes,
  secretMatches,
  secretPrefix,
} from '../../src/domain/secret.ts'
import { openKnownBrowser, sealKnownBrowser } from '../../src/users/rules/known-browser.ts'

t.test('a secret has 256 bits and a prefix for its kind', async (t) => {
  t.equal(secretBytes, 32)
  const kinds = [
    ['clientSecret', 'lyc_secret_'],
    ['registration', 'lyc_registration_'],
    ['initialToken', 'lyc_initial_'],
    ['session', 'lyc_session_'],
    ['browser', 'lyc_browser_'],
    ['link', 'lyc_link_'],
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

t.test('a known-browser cookie opens with its own key and for its own user only', async (t) => {
  const [key, nonce] = ['a'.repeat(43), 'n'.repeat(22)]
  const [alice, bob] = [
    { id: 'alice', passwordHash: '$one' },
    { id: 'bob', passwordHash: '$one' },
  ]
  const cookie = sealKnownBrowser(alice, nonce, key)
  t.strictSame(openKnownBrowser(cookie, alice, key), { userId: 'alice', nonce, isBound: true })
  t.equal(openKnownBrowser(cookie, alice, 'b'.repeat(43)), undefined)
  t.equal(openKnownBrowser(cookie, bob, key), undefined)
  const other = sealKnownBrowser(bob, nonce, key)
  const mac = cookie.split('.')[2] ?? ''
  for (const forged of [
    undefined,
    '',
    cookie.slice(0, -1),
    `${cookie}A`,
    cookie.replace('alice', 'bob'),
    `${other.split('.').slice(0, 2).join('.')}.${mac}`,
    `alice.${nonce}.${'A'.repeat(43)}`,
    `alice..${mac}`,
    '\0'.repeat(80),
  ]) {
    for (const owner of [alice, bob])
      t.equal(openKnownBrowser(forged, owner, key), undefined, JSON.stringify(forged))
  }
})

t.test('a known-browser cookie is valid until the password, a passkey or the codes change', async (t) => {
  const [key, nonce] = ['a'.repeat(43), 'n'.repeat(22)]
  const cookie = sealKnownBrowser({ id: 'alice', passwordHash: '$one' }, nonce, key)
  for (const owner of [{ id: 'alice', passwordHash: '$two' }, { id: 'alice' }])
    t.equal(openKnownBrowser(cookie, owner, key), undefined)
  const withoutPassword = sealKnownBrowser({ id: 'alice' }, nonce, key)
  t.match(openKnownBrowser(withoutPassword, { id: 'alice' }, key), { isBound: true })
  const [plain, codes] = [
    { id: 'alice', passwordHash: '$one' },
    { sealedSecret: 's', confirmedAt: 5 },
  ]
  const owners = [
    plain,
    { ...plain, passkeys: [{ id: 'a' }] },
    { ...plain, passkeys: [{ id: 'a' }, { id: 'b' }] },
    { ...plain, secondFactor: codes },
    { ...plain, secondFactor: { ...codes, sealedSecret: 'other' } },
  ]
  for (const [sealed, owner] of owners.entries()) {
    const bound = sealKnownBrowser(owner, nonce, key)
    for (const [opened, other] of owners.entries())
      t.equal(openKnownBrowser(bound, other, key) !== undefined, sealed === opened, `${sealed} ${opened}`)
  }
  const reordered = { ...plain, passkeys: [{ id: 'b' }, { id: 'a' }] }
  t.ok(openKnownBrowser(sealKnownBrowser(reordered, nonce, key), owners[2] ?? plain, key))
  t.ok(
    openKnownBrowser(cookie, { ...plain, secondFactor: { sealedSecret: 'begun' } }, key),
    'not confirmed yet',
  )
})

t.test('a known-browser cookie of an earlier version is recognised as not bound', async (t) => {
  const [key, nonce] = ['a'.repeat(43), 'n'.repeat(22)]
  const mac = createHmac('sha256', key).update(`device alice ${nonce}`).digest('base64url')
  for (const passwordHash of ['$one', '$two']) {
    const opened = openKnownBrowser(`alice.${nonce}.${mac}`, { id: 'alice', passwordHash }, key)
    t.strictSame(opened, { userId: 'alice', nonce, isBound: false })
  }
})
