import type { Fault } from './fault.ts'

const notices = ['test/account/notices.test.ts']

const test = (name: string) => [`test/account/${name}.test.ts`]

/** Faults of the account page. */
export const accountFaults = [
  {
    id: 'notice-to-the-new-address-only',
    tests: notices,
    file: 'src/pages/emails/notices.ts',
    find: 'new Set([user.email, former])',
    replace: 'new Set([user.email])',
  },
  {
    id: 'notice-of-known-browsers',
    tests: notices,
    file: 'src/pages/emails/notices.ts',
    find: "facts['browser'] === 'new' ? 'browser' : undefined",
    replace: "'browser'",
  },
  {
    id: 'notice-although-off',
    tests: notices,
    file: 'src/pages/emails/notices.ts',
    find: "sender === undefined || config.mail.notices === 'off'",
    replace: 'sender === undefined',
  },
  {
    id: 'notice-of-new-browsers-without-limit',
    tests: notices,
    file: 'src/pages/emails/notices.ts',
    find: 'if (!isDue) return',
    replace: 'if (isDue === undefined) return',
  },
  {
    id: 'grant-of-somebody-else-ended',
    file: 'src/domain/connections.ts',
    find: 'grant.userId !== userId || ',
    replace: '',
    tests: test('apps'),
  },
  {
    id: 'consent-outlives-its-grant',
    file: 'src/domain/connections.ts',
    find: '...(userId === undefined ? [] : [remove(consentKind, consentKey(userId, clientId))]),',
    replace: '',
    tests: test('apps'),
  },
  {
    id: 'disconnected-app-keeps-its-tokens',
    rule: 'oidc-core-16.18-user-revocation',
    file: 'src/domain/connections.ts',
    find: "    { op: 'revokeGrantsOf', userId, clientId, at: context.at, rule: withdrawn },\n",
    replace: '',
  },
  {
    id: 'every-app-but-none',
    file: 'src/domain/connections.ts',
    find: "    { op: 'revokeGrantsOf', userId, at: context.at, rule },\n",
    replace: '',
    tests: test('apps'),
  },
  {
    id: 'csrf-not-compared-on-own-pages',
    file: 'src/pages/account/account-page.ts',
    find: '    if (isForm) assertOwnForm(parametersOf(request.body), csrf, url)\n',
    replace: '',
    tests: test('apps'),
  },
  {
    id: 'csrf-of-own-pages-not-bound-to-the-login',
    file: 'src/pages/account/account-page.ts',
    find: "'own', page.path, session.id)",
    replace: "'own', page.path)",
    tests: test('apps'),
  },
  {
    id: 'own-form-of-another-site',
    file: 'src/pages/account/plugin.ts',
    find: "  app.addHook('preValidation', assertSameSite)\n",
    replace: '',
    tests: test('apps'),
  },
  {
    id: 'locked-user-looks-after-the-account',
    file: 'src/pages/signed-in.ts',
    find: ' && user.lockedAt === undefined',
    replace: '',
    tests: test('sessions'),
  },
  {
    id: 'old-sign-in-is-enough',
    file: 'src/users/rules/session.ts',
    find: 'now - session.authenticatedAt <= recentSeconds',
    replace: 'now >= session.authenticatedAt',
    tests: test('password'),
  },
  {
    id: 'password-changed-without-the-current-one',
    file: 'src/pages/account/password.ts',
    find: 'if (await isPassword(request, { user, password }, now)) return undefined',
    replace: 'return undefined',
    tests: test('password'),
  },
  {
    id: 'apps-survive-a-new-password',
    rule: 'rfc9700-4.14.2-revoke-on-event',
    file: 'src/pages/account/password.ts',
    find: '        ...(disconnects ? endConnections(connections, { userId, ...context }, revocationRule) : []),\n',
    replace: '',
  },
  {
    id: 'new-address-counts-as-proven',
    file: 'src/users/rules/user.ts',
    find: 'email === before && verified === true',
    replace: 'verified === true',
    tests: ['test/domain/profile.test.ts'],
  },
  {
    id: 'user-changes-what-the-operator-keeps',
    file: 'src/pages/account/profile.ts',
    find: 'const typed = editable.map((claim)',
    replace: 'const typed = textClaims.map((claim)',
    tests: test('profile'),
  },
  {
    id: 'copy-with-the-hash-of-the-password',
    file: 'src/pages/account/copy-of-data.ts',
    find: 'has_password: passwordHash !== undefined',
    replace: 'has_password: passwordHash',
    tests: test('privacy'),
  },
  {
    id: 'account-deleted-by-any-word',
    file: 'src/pages/account/privacy.ts',
    find: "if (!isSameName(single(form, 'username') ?? '', user.username))",
    replace: "if (single(form, 'username') === undefined)",
    tests: test('privacy'),
  },
] as const satisfies readonly Fault[]
