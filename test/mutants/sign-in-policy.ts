import type { Fault } from './fault.ts'

const rules = 'src/users/policy/rules.ts'
const plugin = 'src/users/policy/plugin.ts'
const over = ['test/users/sign-in-policy.test.ts']

/** Faults of the policy of sign-ins: what is required, and where it is checked. */
export const signInPolicyFaults = [
  {
    id: 'policy-passkey-satisfied-by-codes',
    file: rules,
    find: "kind === 'passkey' ? phishingResistant : multiFactor",
    replace: 'multiFactor',
    tests: over,
  },
  {
    id: 'policy-of-a-client-without-passkeys',
    file: 'src/users/policy/feature.ts',
    find: "requirement.kind === 'passkey' && declared?.withoutPasskeys",
    replace: 'declared === null',
    tests: over,
  },
  {
    id: 'policy-of-groups-ignored',
    file: plugin,
    find: 'required.ofGroups ? [...atClient, ...required.of(await groupsOf(store, userId))] : atClient',
    replace: 'atClient',
    tests: over,
  },
  {
    id: 'policy-not-read-again-at-exchanges',
    file: 'src/specs/rfc8693-token-exchange/plugin.ts',
    find: 'app.seams.exchanges.collect(exchanged, client) ?? []',
    replace: '[]',
    tests: over,
  },
  {
    id: 'policy-postponed-when-it-is-due',
    file: 'src/pages/sign-in/pending.ts',
    find: 'isBinding(denial) || isNews ? denial : undefined',
    replace: 'isNews ? denial : undefined',
    tests: over,
  },
  {
    id: 'policy-of-admin-pages-ignored',
    file: 'src/admin/pages/admin-page.ts',
    find: 'if (isBinding(denial)) {',
    replace: 'if (isBinding(denial) && isForm) {',
    tests: over,
  },
  {
    id: 'factor-list-without-groups',
    file: 'src/admin/operations/access.ts',
    find: '.judge({ groups, factors,',
    replace: '.judge({ groups: [], factors,',
    tests: ['test/admin/access.test.ts'],
  },
  {
    id: 'factor-list-of-locked-users',
    file: 'src/admin/operations/access.ts',
    find: "after: from, only: 'unlocked'",
    replace: 'after: from',
    tests: ['test/admin/access.test.ts'],
  },
  {
    id: 'past-access-as-now',
    file: 'src/observability/past-access.ts',
    find: 'next === undefined ? isSo : next.name !== began',
    replace: 'isSo',
    tests: ['test/admin/access.test.ts'],
  },
  {
    id: 'past-client-as-now',
    file: 'src/observability/past-access.ts',
    find: 'if (later.length === 0) return',
    replace: 'return',
    tests: ['test/admin/access.test.ts'],
  },
  {
    id: 'past-settings-as-if-logged',
    file: 'src/admin/operations/explain-access.ts',
    find: 'if (ofSettings && isPast)',
    replace: 'if (ofSettings && !isPast)',
    tests: ['test/admin/access.test.ts'],
  },
  {
    id: 'past-before-the-log',
    file: 'src/admin/operations/explain-access.ts',
    find: 'auditSeconds === 0 || at >= clock() - auditSeconds',
    replace: 'true',
    tests: ['test/admin/access.test.ts'],
  },
  {
    id: 'access-without-group',
    file: 'src/users/groups/rules.ts',
    find: 'groups.find(({ id }) => allowed.includes(id))',
    replace: 'groups[0]',
    tests: ['test/admin/access.test.ts'],
  },
  {
    id: 'passkey-maker-over-typed-name',
    file: 'src/pages/passkey-creation.ts',
    find: '(isSuggested ? verified.maker : undefined) ??',
    replace: 'verified.maker ??',
    tests: ['test/pages/account/passkeys.test.ts'],
  },
] as const satisfies readonly Fault[]
