import type { Fault } from './fault.ts'

const consentSource = 'src/pages/sign-in/consent.ts'
const login = 'src/pages/sign-in/login.ts'
const signIn = ['test/conformance/interaction-login.test.ts'] as const
const cookies = ['test/http/cookies.test.ts'] as const
const throttle = ['test/conformance/sign-in-throttle.test.ts'] as const

/** Faults of sign-in, consent, the session and the throttle. */
export const interactionFaults = [
  {
    id: 'csrf-not-compared-at-consent',
    rule: 'rfc6749-10.12-csrf-approval',
    file: consentSource,
    find: '    assertOwnForm(sent, csrfOf(pending, session), pageUrl(pending))\n',
    replace: '',
  },
  {
    id: 'consent-for-what-was-not-shown',
    file: consentSource,
    find: 'approved && shown !== shownOf(pending)',
    replace: "approved && shown === ''",
    tests: ['test/conformance/interaction-consent.test.ts'],
  },
  {
    id: 'consent-forgets-the-links-shown',
    file: consentSource,
    find: 'JSON.stringify([name, localized, clientUri, policyUri, tosUri,',
    replace: 'JSON.stringify([name, localized, clientUri, clientUri, tosUri,',
    tests: ['test/conformance/interaction-consent.test.ts'],
  },
  {
    id: 'redirect-given-up-still-answered',
    file: 'src/pages/sign-in/pending.ts',
    find: '    assertRegisteredRedirect(wanted.redirectUri, client)\n',
    replace: '',
    tests: ['test/conformance/interaction-consent.test.ts'],
  },
  {
    id: 'csrf-not-bound-to-the-login',
    rule: 'rfc6749-10.12-csrf-approval',
    file: consentSource,
    find: "'consent', interaction.id, session.id)",
    replace: "'consent', interaction.id, session.id.slice(99))",
  },
  {
    id: 'csrf-not-compared-at-sign-in',
    rule: 'rfc6749-10.12-csrf-approval',
    file: login,
    find: '      assertOwnForm(sent, forms.csrfOf(pending), forms.pageUrl(pending))\n',
    replace: '',
  },
  {
    id: 'form-of-another-site',
    rule: 'rfc6749-10.12-csrf-approval',
    file: 'src/pages/sign-in/plugin.ts',
    find: "  app.addHook('preValidation', assertSameSite)\n",
    replace: '',
  },
  {
    id: 'registered-client-not-asked-about',
    rule: 'rfc8252-8.6-no-automatic-approval',
    file: 'src/domain/interaction.ts',
    find: "return remembersConsent(request, client) ? 'remembered' : 'asked'",
    replace:
      "if (client.origin === 'registered') return 'none'\n  return remembersConsent(request, client) ? 'remembered' : 'asked'",
  },
  {
    id: 'refusal-overtaken-by-another-tab',
    rule: 'rfc6749-4.1.2.1-access-denied',
    file: consentSource,
    find: "const isOver = approved && pending.step !== 'consent'",
    replace: "const isOver = pending.step !== 'consent'",
  },
  {
    id: 'answered-page-works-again',
    rule: 'rfc6749-4.1.2.1-access-denied',
    file: 'src/pages/sign-in/pending.ts',
    find: 'return accept(undefined, remove(interactionKind, interaction.id), ...others, ...ending)',
    replace: 'return accept(undefined)',
  },
  {
    id: 'page-of-another-browser',
    file: 'src/pages/sign-in/pending.ts',
    find: 'if (interaction.browserHash !== hashSecret(browserSecret)) throw interactionExpired()',
    replace: '',
    tests: signIn,
  },
  {
    id: 'any-password-signs-in',
    file: login,
    find: 'if (!isRight || user === undefined) {',
    replace: 'if (user === undefined) {',
    tests: signIn,
  },
  {
    id: 'old-session-survives-sign-in',
    file: 'src/users/rules/session.ts',
    find: 'over: signedIn.filter((session) => !beside.includes(session)) }',
    replace: 'over: [] }',
    tests: signIn,
  },
  {
    id: 'session-cookie-keeps-its-value',
    file: 'src/users/browser.ts',
    find: "mintSecret('session', random(secretBytes))",
    replace: "mintSecret('session', Buffer.alloc(secretBytes))",
    tests: signIn,
  },
  {
    id: 'session-without-idle-end',
    rule: 'rfc6749-3.1-owner-authenticated-first',
    file: 'src/users/rules/session.ts',
    find: 'now < session.idleExpiresAt && ',
    replace: '',
  },
  {
    id: 'cookie-open-to-script',
    file: 'src/users/browser.ts',
    find: 'httpOnly: true',
    replace: 'httpOnly: false',
    tests: signIn,
  },
  {
    id: 'cookie-sent-in-the-clear',
    rule: 'rfc6750-5.3-not-in-clear-cookies',
    file: 'src/http/cookies.ts',
    find: 'secure: https',
    replace: 'secure: false',
  },
  {
    id: 'cookies-of-two-ports-have-one-name',
    file: 'src/http/cookies.ts',
    find: 'hashSecret(`${host}${pathname}`)',
    replace: 'hashSecret(pathname)',
    tests: cookies,
  },
  {
    id: 'cookies-of-two-paths-have-one-name',
    file: 'src/http/cookies.ts',
    find: 'hashSecret(`${host}${pathname}`)',
    replace: 'hashSecret(host)',
    tests: cookies,
  },
  {
    id: 'cookies-of-another-server-replaced',
    file: 'src/users/browser.ts',
    find: 'session !== undefined && (await isStored(session))',
    replace: 'session !== undefined',
    tests: cookies,
  },
  {
    id: 'browser-secret-of-another-server-adopted',
    file: 'src/users/browser.ts',
    find: 'await opensInteraction(request, secret)',
    replace: 'secret',
    tests: cookies,
  },
  {
    id: 'former-cookie-before-that-of-today',
    file: 'src/http/cookies.ts',
    find: 'sentBy(request)[nameOf(kind)] === undefined ? ',
    replace: 'kind ? ',
    tests: cookies,
  },
  {
    id: 'throttle-off',
    file: 'src/users/rules/throttle.ts',
    find: 'current.failures >= bucket.limit',
    replace: 'current.failures < 0',
    tests: throttle,
  },
  {
    id: 'throttle-counts-names-as-typed',
    file: 'src/users/throttling.ts',
    find: "user?.id ?? login ?? ''",
    replace: "login ?? ''",
    tests: throttle,
  },
  {
    id: 'owner-locked-out-by-guesses',
    file: 'src/users/rules/throttle.ts',
    find: 'if (knownBrowser !== undefined) {',
    replace: "if (knownBrowser === '') {",
    tests: throttle,
  },
] as const satisfies readonly Fault[]
