import { TOTP } from 'otpauth'
import t from 'tap'
import { endSession, endSessionsOf, insert, put, remove, update } from '../../src/domain/decision.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import {
  ask,
  assertErrorRedirect,
  integrate,
  pageOf,
  sentAway,
  signedIn,
  title,
} from '../helpers/authorization.ts'
import { authorize, claimsOf, exchange, type Tokens } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

// OpenID Connect Core §3.1.2.1 and §5.5.1.1: alice has one-time codes, bob only a password.
const server = await startServer(t)
const portal = await integrate(server, { consent: 'skip' })
const mfa = 'https://refeds.org/profile/mfa'
const password = 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport'
const essential = (...values: string[]) => JSON.stringify({ id_token: { acr: { essential: true, values } } })
const { store, keys } = server.deps
const users = await Promise.all(['alice', 'bob'].map((name) => store.find('userByLogin', name)))
const [aliceId = '', bobId = ''] = users.map((user) => user?.id)
const totp = new TOTP()
const code = () => totp.generate({ timestamp: server.now() * 1000 })

async function claimsAt(parameters: Record<string, string>): Promise<Record<string, unknown>> {
  const tokens = (await (await exchange(server, portal, parameters['code'] ?? '')).json()) as Tokens
  return claimsOf(tokens.id_token)
}

/** A browser in which alice signed in with her password before she set up codes. */
const early = await signedIn(server, portal)
await store.write(
  put(secondFactorKind, {
    userId: aliceId,
    sealedSecret: keys.seal(Buffer.from(totp.secret.bytes), aliceId, secondFactorKind),
    confirmedAt: server.now(),
    recoveryHashes: [],
    createdAt: server.now(),
  }),
)

t.test(
  '[oidc-reg-2-default-acr-values] the classes that a client registered count where a request names none',
  async (t) => {
    const [strict, lax] = await Promise.all(
      [mfa, password].map((value) =>
        integrate(server, { consent: 'skip' }, { extra: { default_acr_values: [value] } }),
      ),
    )
    if (strict === undefined || lax === undefined) throw new Error('two clients')
    t.equal(title(pageOf(await ask(server, strict, {}, early))), 'Confirm that it is you')
    t.match(sentAway(await ask(server, lax, {}, early)), { code: /./ })
    t.equal(title(pageOf(await ask(server, lax, { acr_values: mfa }, early))), 'Confirm that it is you')
    const claims = JSON.stringify({ id_token: { acr: { values: [password] } } })
    for (const fields of [{ acr_values: password }, { claims }, { prompt: 'none' }])
      t.match(sentAway(await ask(server, strict, fields, early)), { code: /./ }, JSON.stringify(fields))
  },
)

t.test(
  'a password session steps up with a code, keeps its auth_time, and gets a new identifier',
  async (t) => {
    const before = await claimsAt(sentAway(await ask(server, portal, { max_age: '10000' }, early)))
    t.match(before, { acr: password, amr: ['pwd'] })
    server.advance(100)
    const ends = (await store.listOf('session', aliceId))[0]?.expiresAt
    const cookie = early.cookie('session')
    const second = pageOf(
      await ask(server, portal, { acr_values: `urn:example:gold ${mfa}`, max_age: '10000' }, early),
    )
    t.equal(title(second), 'Confirm that it is you')
    t.notMatch(second.html, 'name="password"')
    const after = await claimsAt(sentAway(await early.submit(second, { code: code() })))
    t.match(after, { sub: aliceId, acr: mfa, amr: ['pwd', 'otp', 'mfa'], auth_time: before['auth_time'] })
    t.not(early.cookie('session'), cookie)
    const [session] = await store.listOf('session', aliceId)
    t.equal(session?.expiresAt, ends, 'and it ends when it would have')
    for (const fields of [{ claims: essential(mfa) }, { acr_values: mfa, prompt: 'none' }]) {
      t.equal(
        (await claimsAt(sentAway(await ask(server, portal, fields, early))))['acr'],
        mfa,
        'silently from here on',
      )
    }
  },
)

t.test('of several classes a sign-in has, acr is the one requested first', async (t) => {
  for (const [wanted, told] of [
    [`${password} ${mfa}`, password],
    [`phr ${mfa}`, mfa],
  ] as const) {
    const { acr } = await claimsAt(sentAway(await ask(server, portal, { acr_values: wanted }, early)))
    t.equal(acr, told)
  }
})

t.test(
  '[oidc-core-3.1.2.1-max-age] a step-up beyond max_age asks for the password too, and renews auth_time',
  async (t) => {
    server.advance(60)
    const fields = { claims: essential(mfa), max_age: '30' }
    const login = pageOf(await ask(server, portal, fields, early))
    t.match(login.html, 'name="password"')
    const before = server.now()
    const second = pageOf(await early.submit(login, alice))
    const claims = await claimsAt(sentAway(await early.submit(second, { code: code() })))
    const renewed = Number(claims['auth_time'])
    t.ok(before <= renewed && renewed <= server.now())
  },
)

t.test(
  '[oidc-core-3.1.2.1-acr-values] a voluntary class that the user cannot have is ignored, and acr is the class of the sign-in',
  async (t) => {
    const visitor = await signedIn(server, portal, bob)
    for (const fields of [
      { acr_values: mfa },
      { acr_values: 'phr', prompt: 'none' },
      { acr_values: '1 2' },
    ]) {
      const claims = await claimsAt(sentAway(await ask(server, portal, fields, visitor)))
      t.match(claims, { sub: bobId, acr: password, amr: ['pwd'] })
    }
  },
)

t.test(
  '[oidc-core-5.5.1.1-acr-essential] an essential class that the user cannot have is an error, before and after a sign-in',
  async (t) => {
    const visitor = await signedIn(server, portal, bob)
    const fields = { claims: essential(mfa) }
    for (const more of [{}, { prompt: 'none' }]) {
      const response = await authorize(server, portal, { ...fields, ...more }, visitor)
      assertErrorRedirect(t, server, response, 'unmet_authentication_requirements', {
        to: portal.redirectUri,
      })
    }
    const fresh = new UserAgent(server.issuer)
    const rejected = sentAway(await fresh.submit(pageOf(await ask(server, portal, fields, fresh)), bob))
    t.equal(rejected['error'], 'unmet_authentication_requirements')
    t.notOk('code' in rejected)
  },
)

t.test('with prompt=none, an essential step-up that the user could do is login_required', async (t) => {
  const session = await store.listOf('session', aliceId)
  const [newest] = session.slice(-1)
  if (newest === undefined) throw new Error('alice is signed in')
  await store.write(endSession(newest.id, 0), insert('session', { ...newest, methods: ['pwd'] }))
  const silent = { claims: essential(mfa), prompt: 'none' }
  const response = await authorize(server, portal, silent, early)
  assertErrorRedirect(t, server, response, 'login_required', { to: portal.redirectUri })
  const wish = await claimsAt(sentAway(await ask(server, portal, { acr_values: mfa, prompt: 'none' }, early)))
  t.equal(wish['acr'], password)
})

t.test('a session that ends while its second factor is requested is not restored', async (t) => {
  server.advance(60)
  const second = pageOf(await ask(server, portal, { acr_values: mfa }, early))
  t.match(second.html, 'name="code"')
  await store.write(endSessionsOf(aliceId, 0))
  const login = pageOf(await early.submit(second, { code: code() }))
  t.match(login.html, 'name="password"')
  t.strictSame(await store.listOf('session', aliceId), [])
})

t.test('codes that are removed while one is typed in sign no user in', async (t) => {
  server.advance(60)
  const visitor = new UserAgent(server.issuer)
  const second = pageOf(await visitor.submit(pageOf(await ask(server, portal, {}, visitor)), alice))
  const factor = await store.find(secondFactorKind, aliceId)
  if (factor === undefined) throw new Error('alice has codes')
  await store.write(
    put(secondFactorKind, {
      ...factor,
      sealedSecret: keys.seal(Buffer.alloc(20), aliceId, secondFactorKind),
    }),
  )
  t.equal(pageOf(await visitor.submit(second, { code: code() })).status, 400)
  await store.write(remove(secondFactorKind, aliceId))
  const login = pageOf(await visitor.submit(second, { code: code() }))
  t.match(login.html, 'name="password"')
})

t.test('a locked user sees the lock only after the right password, and gets no session', async (t) => {
  const user = await store.find('user', bobId)
  if (user === undefined) throw new Error('no bob')
  await store.write(update('user', { ...user, lockedAt: server.now() }))
  const visitor = new UserAgent(server.issuer)
  const login = pageOf(await ask(server, portal, {}, visitor))
  const wrong = pageOf(await visitor.submit(login, { ...bob, password: 'wrong' }))
  t.notMatch(wrong.html, 'locked')
  const told = pageOf(await visitor.submit(wrong, bob))
  t.equal(told.status, 403)
  t.match(told.html, 'This account is locked.')
  t.equal(visitor.cookie('session'), undefined)
  await store.write(update('user', user))
  t.ok('code' in sentAway(await visitor.submit(told, bob)), 'the request is still pending')
})
