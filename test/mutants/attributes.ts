import type { Fault } from './fault.ts'

const rules = 'src/domain/attributes.ts'
const over = ['test/users/attributes.test.ts']
const byCommand = ['test/cli/user-attributes.test.ts']
const profile = 'src/pages/account/profile.ts'
const onPage = ['test/pages/account/attributes.test.ts']
const settings = ['test/settings/faults.test.ts']

/** Faults of custom attributes: who sees and changes them, and what they may be. */
export const attributeFaults = [
  {
    id: 'attribute-opened-by-every-scope',
    file: 'src/feature/service.ts',
    find: 'one.scope === scope.name ? one.name : []',
    replace: 'one.name',
    tests: ['test/dev/library.test.ts'],
  },
  {
    id: 'attribute-named-like-a-reserved-claim',
    file: rules,
    find: '!reservedClaims.has(name)',
    replace: 'true',
    tests: settings,
  },
  {
    id: 'attribute-named-like-a-known-claim',
    file: rules,
    find: '!knownClaims.includes(name)',
    replace: 'true',
    tests: settings,
  },
  {
    id: 'attribute-editable-and-not-visible',
    file: 'src/settings/checks.ts',
    find: "if (editable === 'user' && visible !== 'user')",
    replace: 'if (false)',
    tests: settings,
  },
  {
    id: 'attribute-not-declared',
    file: rules,
    find: 'attribute !== undefined || (isRemoval && after.has(name))',
    replace: 'true',
    tests: byCommand,
  },
  {
    id: 'attribute-of-any-type',
    file: rules,
    find: "fault === undefined,\n      'lychgate-attribute-value'",
    replace: "true,\n      'lychgate-attribute-value'",
    tests: byCommand,
  },
  {
    id: 'attribute-released-although-not-allowed',
    file: rules,
    find: 'value === undefined || attributeFault(attribute, value)',
    replace: 'value === undefined',
    tests: over,
  },
  {
    id: 'attribute-of-administrators-on-the-account-page',
    file: profile,
    find: "config.accounts.attributes.filter((one) => one.visible === 'user')",
    replace: 'config.accounts.attributes',
    tests: onPage,
  },
  {
    id: 'attribute-changed-by-a-user-who-only-sees-it',
    file: profile,
    find: "visible.filter((one) => one.editable === 'user')",
    replace: 'visible',
    tests: onPage,
  },
  {
    id: 'attribute-of-administrators-in-the-copy-of-data',
    file: 'src/pages/account/copy-of-data.ts',
    find: "config.accounts.attributes.filter((one) => one.visible === 'user')",
    replace: 'config.accounts.attributes',
    tests: onPage,
  },
] as const satisfies readonly Fault[]
