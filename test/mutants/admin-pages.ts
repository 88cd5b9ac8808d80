import type { Fault } from './fault.ts'

const file = 'src/admin/pages/admin-page.ts'
/** What the account page has in common with these. */
const kit = 'src/pages/kit.ts'
const tests = ['test/admin/pages.test.ts']
const formTests = ['test/admin/forms.test.ts']

/** Faults of the admin pages: each opens one to someone who must not have it. */
export const adminPageFaults = [
  { id: 'admin-page-any-user', tests, file, find: 'await assertAdministrator(user)', replace: '' },
  {
    id: 'admin-page-form-of-another-site',
    tests,
    file: kit,
    find: 'if (isForm) assertOwnForm(form, csrf, action)',
    replace: '',
  },
  {
    id: 'admin-page-form-of-another-session',
    tests,
    file: kit,
    find: 'app.browser.csrfToken(secret, ...purpose, session.id, ...ids)',
    replace: "app.browser.csrfToken('', ...purpose, ...ids)",
  },
  {
    id: 'admin-page-one-factor',
    tests,
    file,
    find: '!lacksAcr(methods, acr) && now - authenticatedAt <= secondFactorSeconds',
    replace: 'now - authenticatedAt <= secondFactorSeconds',
  },
  {
    id: 'admin-page-old-second-factor',
    tests,
    file,
    find: '!lacksAcr(methods, acr) && now - authenticatedAt <= secondFactorSeconds',
    replace: '!lacksAcr(methods, acr)',
  },
  {
    id: 'admin-page-form-without-second-factor',
    tests,
    file,
    find: '(isForm || page.isForm) && !isStrong(session, now)',
    replace: 'page.isForm && !isForm && !isStrong(session, now)',
  },
  {
    id: 'admin-page-of-one-who-left',
    tests,
    file,
    find: '{ ...store, ...storeRequiring(store, () => requireAdministrator(user)) }',
    replace: 'store',
  },
  {
    id: 'admin-keys-rotated-by-one-who-left',
    tests,
    file: 'src/admin/operations/keys.ts',
    find: 'withWrites(decision, ...call.requireMay({}), ...keep(respond(decision.result)))',
    replace: 'withWrites(decision, ...keep(respond(decision.result)))',
  },
  {
    id: 'admin-key-retired-by-one-who-left',
    tests,
    file: 'src/admin/operations/keys.ts',
    find: 'withWrites(decision, ...call.requireMay({}), ...keep(kept))',
    replace: 'withWrites(decision, ...keep(kept))',
  },
  {
    id: 'admin-page-cross-site-form',
    tests,
    file: 'src/pages/forms.ts',
    find: "app.addHook('preValidation', assertSameSite)",
    replace: '',
  },
  {
    id: 'admin-act-not-typed',
    tests,
    file: 'src/admin/pages/act-page.ts',
    find: "!isTyped || single(visit.form, 'confirm')?.trim() === name",
    replace: 'true',
  },
  {
    id: 'admin-key-retired-without-typing',
    tests,
    file: 'src/admin/pages/keys.ts',
    find: 'isTyped: true',
    replace: 'isTyped: false',
  },
  {
    id: 'admin-key-retired-by-no-one',
    tests,
    file: 'src/admin/operations/keys.ts',
    find: 'context) requireFound(done,',
    replace: '{}); requireFound(done,',
  },
  {
    id: 'key-retired-twice',
    tests,
    file: 'src/keys/rules.ts',
    find: "key === undefined || was === undefined || was === 'retired'",
    replace: 'key === undefined || was === undefined',
  },
  {
    id: 'admin-page-removes-the-last-passkey',
    tests,
    file: 'src/admin/operations/user-acts.ts',
    find: 'keepsAdministrator: true,\n    decide: (current, { context }) => removePasskeys',
    replace: 'decide: (current, { context }) => removePasskeys',
  },
  {
    id: 'last-key-of-a-client-removed',
    tests,
    file: 'src/clients/keys.ts',
    find: "if (left.length === 0) throw rejection('it is the only key; add another one first')",
    replace: '',
  },
  {
    id: 'late-form-of-another-browser',
    tests: formTests,
    file: 'src/admin/pages/late-form.ts',
    find: 'isOwn && late.path === at.path',
    replace: 'late.path === at.path',
  },
  {
    id: 'late-form-of-another-page',
    tests: formTests,
    file: 'src/admin/pages/late-form.ts',
    find: 'isOwn && late.path === at.path',
    replace: 'isOwn',
  },
  {
    id: 'late-form-not-of-the-session-kept',
    tests: formTests,
    file,
    find: "isSameText(single(form, 'csrf'), app.browser.csrfToken(secret, 'admin', path, session))",
    replace: 'true',
  },
  {
    id: 'late-form-keeps-what-may-be-a-secret',
    tests: formTests,
    file: 'src/admin/pages/late-form.ts',
    find: 'Object.keys(typed.fields)',
    replace: 'Object.keys(typed.form)',
  },
  {
    id: 'admin-form-overwrites-an-app',
    tests: formTests,
    file: 'src/admin/pages/client.ts',
    find: 'assertVersion(form, formOf(now as Client))',
    replace: 'undefined',
  },
  {
    id: 'admin-form-overwrites-keys',
    tests: formTests,
    file: 'src/admin/pages/client-keys.ts',
    find: 'assertVersion(visit.form, shownOf(client as Client))',
    replace: 'undefined',
  },
  {
    id: 'admin-form-overwrites-a-group',
    tests: formTests,
    file: 'src/admin/pages/group.ts',
    find: 'assertVersion(form, shownOf(record as Group))',
    replace: 'undefined',
  },
  {
    id: 'admin-form-overwrites-attributes',
    tests: formTests,
    file: 'src/admin/pages/user-attributes.ts',
    find: '(record: object) => assertVersion(form, attributesOf(declared, record))',
    replace: '() => undefined',
  },
] as const satisfies readonly Fault[]
