import t from 'tap'
import type { Factors } from '../../src/domain/authentication-context.ts'
import type { Decision } from '../../src/domain/decision.ts'
import type { SecondFactor } from '../../src/domain/model.ts'
import {
  beginCodes,
  confirmCodes,
  hashRecoveryCode,
  mintRecoveryCodes,
  renewRecoveryCodes,
  secondFactorKind,
  secondStepOf,
  takeCode,
  takeRecoveryCode,
} from '../../src/users/rules/second-factor.ts'

const begun: SecondFactor = { userId: 'alice', sealedSecret: 'sealed', recoveryHashes: [], createdAt: 1 }
const inUse: SecondFactor = { ...begun, confirmedAt: 2, usedStep: 10, recoveryHashes: ['a', 'b'] }
const kept = (decision: Decision<unknown>) =>
  decision.writes.flatMap((write) => (write.op === 'put' ? [secondFactorKind.parse(write.record.body)] : []))

t.test(
  'the step after the password depends on the factors of the user and the requested class',
  async (t) => {
    const [phr, mfa] = ['phr', 'https://refeds.org/profile/mfa']
    const want = (...values: string[]) => ({ values, essential: false })
    const rows: readonly [Partial<Factors>, ReturnType<typeof want> | undefined, object | undefined][] = [
      [{}, undefined, undefined],
      [{}, want(mfa), undefined],
      [{ codes: true }, undefined, { codes: true, passkey: false }],
      [{ codes: true, passkey: true }, undefined, { codes: true, passkey: true }],
      // A passkey alone is required only where the password is not enough.
      [{ passkey: true }, undefined, undefined],
      [{ passkey: true }, want(mfa), { codes: false, passkey: true }],
      [
        { passkey: true },
        want(mfa, 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport'),
        undefined,
      ],
      [{ codes: true, passkey: true }, want(phr), { codes: false, passkey: true }],
      [{ codes: true }, want(phr), { codes: true, passkey: false }],
    ]
    for (const [factors, acr, expected] of rows) {
      const whole = { password: true, codes: false, passkey: false, ...factors }
      t.strictSame(secondStepOf(whole, acr), expected, JSON.stringify([factors, acr]))
    }
  },
)

t.test('a code is accepted once, and no older one after it', async (t) => {
  for (const [step, isTaken] of [
    [undefined, false],
    [9, false],
    [10, false],
    [11, true],
  ] as const) {
    const decision = takeCode(inUse, inUse, step)
    t.match(decision, { result: isTaken })
    t.strictSame(kept(decision), isTaken ? [{ ...inUse, usedStep: step }] : [])
  }
})

t.test('a code is rejected when the codes were removed, replaced or are not yet confirmed', async (t) => {
  for (const current of [undefined, begun, { ...inUse, sealedSecret: 'another' }]) {
    t.match(takeCode(current, inUse, 11), { result: false, writes: [] })
  }
})

t.test('a recovery code is accepted once, however it is typed', async (t) => {
  const codes = mintRecoveryCodes(Buffer.from(Array.from({ length: 100 }, (_, index) => index * 7)))
  t.equal(new Set(codes).size, 10)
  for (const code of codes) t.match(code, /^([0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/)
  const [first = '', second = ''] = codes
  const full = { ...inUse, recoveryHashes: codes.map(hashRecoveryCode) }
  const taken = takeRecoveryCode(full, ` ${first.toUpperCase().replaceAll('-', ' ')} `)
  t.match(taken, { result: true })
  const [rest] = kept(taken)
  t.strictSame(rest?.recoveryHashes, full.recoveryHashes.slice(1))
  t.match(takeRecoveryCode(rest, first), { result: false, writes: [] })
  t.match(takeRecoveryCode(rest, second), { result: true })
  for (const wrong of ['', first.slice(1), 'a'])
    t.match(takeRecoveryCode(full, wrong), { result: false, writes: [] })
  t.match(takeRecoveryCode({ ...begun, recoveryHashes: full.recoveryHashes }, first), { result: false })
  t.match(takeRecoveryCode(undefined, first), { result: false })
})

t.test('codes are active once the first was entered', async (t) => {
  t.strictSame(kept(beginCodes(undefined, 'alice', 'new', 5)), [
    { ...begun, sealedSecret: 'new', createdAt: 5 },
  ])
  t.strictSame(kept(beginCodes(begun, 'alice', 'new', 5)), [{ ...begun, sealedSecret: 'new', createdAt: 5 }])
  t.throws(() => beginCodes(inUse, 'alice', 'new', 5), { code: 'invalid_request' })
  const confirmed = confirmCodes(begun, begun, 7, ['h'], 9)
  t.strictSame(kept(confirmed), [{ ...begun, confirmedAt: 9, usedStep: 7, recoveryHashes: ['h'] }])
  for (const [current, step] of [
    [begun, undefined],
    [undefined, 7],
    [inUse, 11],
    [{ ...begun, sealedSecret: 'another' }, 7],
  ] as const) {
    t.match(confirmCodes(current, begun, step, ['h'], 9), { result: false, writes: [] })
  }
})

t.test('new recovery codes replace the old ones', async (t) => {
  t.strictSame(kept(renewRecoveryCodes(inUse, ['n'])), [{ ...inUse, recoveryHashes: ['n'] }])
  for (const current of [undefined, begun]) {
    t.match(renewRecoveryCodes(current, ['n']), { result: false, writes: [] })
  }
})
