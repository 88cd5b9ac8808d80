/** The OpenID Foundation's basic certification plan: the modules about scopes and the claims they open. */
import t from 'tap'
import { type Suite, startSuite } from '../helpers/openid-suite.ts'

const profile = {
  name: 'Alice Ångström',
  given_name: 'Alice',
  family_name: 'Ångström',
  middle_name: 'Maria',
  nickname: 'Ali',
  preferred_username: 'alice',
  profile: 'https://people.example/alice',
  picture: 'https://people.example/alice.png',
  website: 'https://alice.example',
  gender: 'female',
  birthdate: '1990-04-01',
  zoneinfo: 'Europe/Stockholm',
  locale: 'sv-SE',
}
const email = { email: 'alice@example.test', email_verified: true }
const address = {
  address: { street_address: 'Storgatan 1', locality: 'Uppsala', postal_code: '753 31', country: 'Sweden' },
}
const phone = { phone_number: '+46855512345', phone_number_verified: true }

/** The claims of UserInfo with this scope, without sub; the ID Token must have none of them. */
async function toldBy(t: Test, suite: Suite, scope: string): Promise<Record<string, unknown>> {
  const login = await suite.signIn(t, { scope })
  t.strictSame(login.tokens.scope.split(' ').sort(), scope.split(' ').sort())
  const { sub: _sub, updated_at: updatedAt, ...told } = await suite.userInfo(t, login)
  t.equal(Number.isInteger(updatedAt), scope.includes('profile'))
  return told
}

type Test = Parameters<Suite['userInfo']>[0]

const suite = await startSuite(t)
/** The same with a catalogue that has all the scopes of OpenID Connect Core §5.4. */
const extended = await startSuite(t, 'query', {
  scopes: [
    ...suite.server.deps.config.scopes,
    identityScope('address', ['address']),
    identityScope('phone', ['phone_number', 'phone_number_verified']),
  ],
})

t.test(
  '[oidc-core-5.4-profile-claims] [oidc-core-5.3.2-content-type] oidcc-scope-profile: the scope opens every profile claim',
  async (t) =>
    t.strictSame(await toldBy(t, suite, 'openid profile'), profile, '[oidc-core-5.4-profile-claims]'),
)

t.test('[oidc-core-5.4-email-claims] oidcc-scope-email: the scope opens the email claims', async (t) =>
  t.strictSame(await toldBy(t, suite, 'openid email'), email),
)

t.test(
  '[oidc-core-5.4-address-phone] oidcc-scope-address, oidcc-scope-phone and oidcc-scope-all are skipped as the scopes are not offered, and the scopes are rejected',
  async (t) => {
    const offered = suite.metadata['scopes_supported'] as string[]
    for (const scope of ['address', 'phone']) {
      t.notOk(offered.includes(scope))
      const { members } = await suite.authorize(t, { scope: `openid ${scope}` })
      t.equal(members['error'], 'invalid_scope')
    }
  },
)

t.test('oidcc-scope-address: the scope opens the address', async (t) =>
  t.strictSame(await toldBy(t, extended, 'openid address'), address),
)

t.test('oidcc-scope-phone: the scope opens the phone claims', async (t) =>
  t.strictSame(await toldBy(t, extended, 'openid phone'), phone),
)

t.test(
  '[oidc-core-5.1-claim-types] [oidc-core-5.1-email-syntax] oidcc-scope-all: all of them together open every standard claim, each of its type',
  async (t) => {
    const told = await toldBy(t, extended, 'openid profile email address phone')
    t.strictSame(told, { ...profile, ...email, ...address, ...phone })
    t.match(told['phone_number'], /^\+[1-9]\d{1,14}$/)
    t.match(told['email'], /^[^@\s]+@[^@\s]+$/)
    t.match(told['birthdate'], /^\d{4}(-\d\d-\d\d)?$/)
    t.strictSame(Intl.getCanonicalLocales(String(told['locale'])), [told['locale']])
    t.strictSame(
      Object.values(told['address'] as object).filter((value) => typeof value !== 'string'),
      [],
    )
  },
)

function identityScope(name: string, claims: string[]) {
  return { name, group: name, access: 'identity' as const, description: `Know your ${name}`, claims }
}
