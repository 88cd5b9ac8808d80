import t from 'tap'
import {
  availableAcrs,
  contextClasses,
  contextClassOf,
  type Factors,
  lacksAcr,
  methodsOf,
  multiFactor,
  requestedAcr,
} from '../../src/domain/authentication-context.ts'

const password = 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport'
const factors = (...names: readonly (keyof Factors)[]): Factors => ({
  password: names.includes('password'),
  codes: names.includes('codes'),
  passkey: names.includes('passkey'),
})
/** The factors, whether the passkey verified its user, the references of RFC 8176, the strongest class. */
const rows: readonly [Factors, boolean, string[], string | undefined][] = [
  [factors('password'), false, ['pwd'], password],
  [factors('password', 'codes'), false, ['pwd', 'otp', 'mfa'], multiFactor],
  [factors('password', 'passkey'), false, ['pwd', 'pop', 'user', 'mfa'], 'phr'],
  [factors('passkey'), true, ['pop', 'user', 'mfa'], 'phr'],
  [factors('passkey'), false, ['pop', 'user'], 'phr'],
  [factors('codes'), false, ['otp'], undefined],
  [factors(), false, [], undefined],
]

t.test('amr and acr name the factors of the sign-in', async (t) => {
  for (const [shown, ownerChecked, methods, acr] of rows) {
    t.strictSame(methodsOf(shown, ownerChecked), methods)
    t.equal(contextClassOf(methods), acr, methods.join(' '))
  }
  t.strictSame(
    methodsOf(factors('passkey')),
    ['pop', 'user'],
    'unless it says so, a passkey did not verify its user',
  )
})

t.test('of several classes a sign-in has, acr names the most wanted', async (t) => {
  const methods = methodsOf(factors('password', 'passkey'))
  for (const values of [[password], [multiFactor, password], ['phr']]) {
    t.equal(contextClassOf(methods, { values, essential: false }), values[0])
  }
  t.equal(contextClassOf(['pwd'], { values: ['phr', password], essential: true }), password)
  t.equal(contextClassOf(['pwd'], { values: ['phr'], essential: false }), password)
})

t.test('a sign-in does not satisfy a class it has no factor of', async (t) => {
  const wanted = { values: ['phr', multiFactor], essential: false }
  t.equal(lacksAcr(['pwd'], wanted), true)
  t.equal(lacksAcr(['pwd', 'otp', 'mfa'], wanted), false)
  t.equal(lacksAcr([], undefined), false)
})

t.test('the factors of a user decide which classes they can reach, and codes alone reach none', async (t) => {
  t.strictSame(availableAcrs(factors('password')), [password])
  t.strictSame(availableAcrs(factors('password', 'codes')), [multiFactor, password])
  t.strictSame(availableAcrs(factors('passkey')), ['phr', multiFactor])
  t.strictSame(availableAcrs(factors('password', 'passkey')), contextClasses)
  t.strictSame(availableAcrs(factors('codes')), [])
})

t.test('unknown classes are ignored; an essential class that no user can have is rejected', async (t) => {
  t.equal(requestedAcr(undefined, []), undefined)
  t.equal(requestedAcr(undefined, ['urn:example:gold']), undefined)
  t.strictSame(requestedAcr(undefined, ['urn:example:gold', 'phr']), { values: ['phr'], essential: false })
  t.strictSame(requestedAcr([multiFactor], ['phr']), { values: [multiFactor], essential: true })
  for (const essential of [[], ['urn:example:gold']]) {
    t.throws(() => requestedAcr(essential, ['phr']), {
      code: 'unmet_authentication_requirements',
      detail: { rule: 'oidc-core-5.5.1.1-acr-essential' },
    })
  }
})
