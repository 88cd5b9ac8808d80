import { createHmac } from 'node:crypto'
import t from 'tap'
import { hashSecret } from '../../src/domain/secret.ts'
import {
  type KnownBrowserOwner,
  knownBrowserSeconds,
  openKnownBrowser,
  sealKnownBrowser,
} from '../../src/users/rules/known-browser.ts'

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
