import { createHmac } from 'node:crypto'
import t from 'tap'
import {
  type KnownBrowserOwner,
  knownBrowserSeconds,
  openKnownBrowser,
  sealKnownBrowser,
} from '../../src/domain/known-browser.ts'
import { hashSecret } from '../../src/domain/secret.ts'

const nonce = 'n'.repeat(22)
const secret = 'a'.repeat(43)
const alice: KnownBrowserOwner = { id: 'alice', passwordHash: '$one' }
const bound = { userId: 'alice', nonce, isBound: true }
const codes = { sealedSecret: 'sealed', confirmedAt: 5 }

// Browsers have these cookies: another text would make every one of them unknown.
t.test('a cookie has the keyed hash of its user, its nonce and the factors', async (t) => {
  const cookieOf = (text: string) =>
    `alice.${nonce}.${createHmac('sha256', secret).update(text).digest('base64url')}`
  const passkeys = [{ id: 'b' }, { id: 'a' }]
  const [one, none] = [hashSecret('$one'), hashSecret('')]
  for (const [owner, text] of [
    [alice, `device alice ${nonce} ${one}`],
    [{ id: 'alice' }, `device alice ${nonce} ${none}`],
    [{ ...alice, passkeys }, `device alice ${nonce} ${one} a b`],
    [{ ...alice, passkeys, secondFactor: codes }, `device alice ${nonce} ${one} a b sealed`],
    [{ ...alice, secondFactor: { sealedSecret: 'sealed' } }, `device alice ${nonce} ${one}`],
  ] as const) {
    const cookie = cookieOf(text)
    t.equal(sealKnownBrowser(owner, nonce, secret), cookie, JSON.stringify(owner))
    t.strictSame(openKnownBrowser(cookie, owner, secret), bound, JSON.stringify(owner))
  }
})

t.test('a cookie opens with any of the secrets, the current one or an earlier one', async (t) => {
  const cookie = sealKnownBrowser(alice, nonce, secret)
  const [current, older] = ['b'.repeat(43), 'c'.repeat(43)]
  t.strictSame(openKnownBrowser(cookie, alice, current, secret), bound)
  t.strictSame(openKnownBrowser(cookie, alice, secret, current), bound)
  t.equal(openKnownBrowser(cookie, alice, current, older), undefined)
  t.equal(openKnownBrowser(cookie, alice), undefined, 'with no secret at all')
})

t.test('a value with more before or after the cookie does not open', async (t) => {
  const cookie = sealKnownBrowser(alice, nonce, secret)
  for (const value of [`x.${cookie}`, ` ${cookie}`, `${cookie}.`, `${cookie} `, `${cookie}A`, '', undefined])
    t.equal(openKnownBrowser(value, alice, secret), undefined, JSON.stringify(value))
})

t.test('a browser keeps its cookie for half a year', async (t) => {
  t.equal(knownBrowserSeconds, 15_552_000)
})

t.test('a cookie opens with its own key and for its own user only', async (t) => {
  const bob = { id: 'bob', passwordHash: '$one' }
  const cookie = sealKnownBrowser(alice, nonce, secret)
  t.strictSame(openKnownBrowser(cookie, alice, secret), bound)
  t.equal(openKnownBrowser(cookie, alice, 'b'.repeat(43)), undefined)
  t.equal(openKnownBrowser(cookie, bob, secret), undefined)
  const other = sealKnownBrowser(bob, nonce, secret)
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
      t.equal(openKnownBrowser(forged, owner, secret), undefined, JSON.stringify(forged))
  }
})

t.test('a cookie is valid until the password, a passkey or the codes change', async (t) => {
  const cookie = sealKnownBrowser(alice, nonce, secret)
  for (const owner of [{ id: 'alice', passwordHash: '$two' }, { id: 'alice' }])
    t.equal(openKnownBrowser(cookie, owner, secret), undefined)
  const withoutPassword = sealKnownBrowser({ id: 'alice' }, nonce, secret)
  t.match(openKnownBrowser(withoutPassword, { id: 'alice' }, secret), { isBound: true })
  const owners = [
    alice,
    { ...alice, passkeys: [{ id: 'a' }] },
    { ...alice, passkeys: [{ id: 'a' }, { id: 'b' }] },
    { ...alice, secondFactor: codes },
    { ...alice, secondFactor: { ...codes, sealedSecret: 'other' } },
  ]
  for (const [sealed, owner] of owners.entries()) {
    const made = sealKnownBrowser(owner, nonce, secret)
    for (const [opened, other] of owners.entries())
      t.equal(openKnownBrowser(made, other, secret) !== undefined, sealed === opened, `${sealed} ${opened}`)
  }
  const reordered = { ...alice, passkeys: [{ id: 'b' }, { id: 'a' }] }
  t.ok(openKnownBrowser(sealKnownBrowser(reordered, nonce, secret), owners[2] ?? alice, secret))
  t.ok(
    openKnownBrowser(cookie, { ...alice, secondFactor: { sealedSecret: 'begun' } }, secret),
    'not confirmed yet',
  )
})

t.test('a cookie of an earlier version is recognised as not bound', async (t) => {
  const mac = createHmac('sha256', secret).update(`device alice ${nonce}`).digest('base64url')
  for (const passwordHash of ['$one', '$two']) {
    const opened = openKnownBrowser(`alice.${nonce}.${mac}`, { id: 'alice', passwordHash }, secret)
    t.strictSame(opened, { userId: 'alice', nonce, isBound: false })
  }
})
