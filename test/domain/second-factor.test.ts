import t from 'tap'
import type { Factors } from '../../src/domain/authentication-context.ts'
import type { Decision } from '../../src/domain/decision.ts'
import type { SecondFactor } from '../../src/domain/model.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import {
  beginCodes,
  confirmCodes,
  hashRecoveryCode,
  mintRecoveryCodes,
  pendingSecondFactorSeconds,
  recoveryCodes,
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
      [{ codes: true, passkey: true }, want(mfa), { codes: true, passkey: true }],
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

t.test('before the first code was taken, none is too old', async (t) => {
  const { usedStep: _, ...unused } = inUse
  for (const step of [0, 1, 11]) {
    const decision = takeCode(unused, inUse, step)
    t.match(decision, { result: true })
    t.strictSame(kept(decision), [{ ...inUse, usedStep: step }])
  }
})

t.test('a second step may take ten minutes', async (t) => {
  t.equal(pendingSecondFactorSeconds, 600)
})

t.test('codes are stored by the id of their user, in the order of their creation', async (t) => {
  t.match(secondFactorKind.rowOf({ ...inUse, createdAt: 3 }), {
    kind: 'secondFactor',
    id: 'alice',
    userId: 'alice',
    madeAt: 3,
  })
})

t.test('a code is rejected when the codes were removed, replaced or are not yet confirmed', async (t) => {
  for (const current of [undefined, begun, { ...inUse, sealedSecret: 'another' }]) {
    t.match(takeCode(current, inUse, 11), { result: false, writes: [] })
  }
})

t.test('there are ten recovery codes of 80 bits each, in the digits of Crockford', async (t) => {
  t.strictSame(recoveryCodes, { count: 10, bytes: 10 })
  // The digits 0 to 31, five bits each.
  const digits = Buffer.from('00443214c74254b635cf84653a56d7c675be77df', 'hex')
  t.strictSame(mintRecoveryCodes(Buffer.concat([digits, Buffer.alloc(80)])), [
    '0123-4567-89ab-cdef',
    'ghjk-mnpq-rstv-wxyz',
    ...new Array(8).fill('0000-0000-0000-0000'),
  ])
})

t.test('a recovery code may be typed with what looks like its digits, and is stored as a hash', async (t) => {
  const stored = hashSecret('recovery 0123456789abcdef')
  for (const typed of ['0123-4567-89ab-cdef', 'oI23 4567 89AB CDEF', ' Ol23456789abcdef\n'])
    t.equal(hashRecoveryCode(typed), stored, typed)
  t.equal(hashRecoveryCode('iIlL-oO00-1111'), hashSecret('recovery 111100001111'))
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
  for (const before of [undefined, begun]) {
    const decision = beginCodes(before, 'alice', 'new', 5)
    t.match(decision, { result: true })
    t.strictSame(kept(decision), [{ ...begun, sealedSecret: 'new', createdAt: 5 }])
  }
  t.throws(() => beginCodes(inUse, 'alice', 'new', 5), {
    code: 'invalid_request',
    message: 'one-time codes are in use; remove them first',
    detail: { rule: 'lychgate-second-factor' },
  })
  const confirmed = confirmCodes(begun, begun, 7, ['h'], 9)
  t.match(confirmed, { result: true })
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
  const renewed = renewRecoveryCodes(inUse, ['n'])
  t.match(renewed, { result: true })
  t.strictSame(kept(renewed), [{ ...inUse, recoveryHashes: ['n'] }])
  for (const current of [undefined, begun]) {
    t.match(renewRecoveryCodes(current, ['n']), { result: false, writes: [] })
  }
})
