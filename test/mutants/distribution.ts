import type { Fault } from './fault.ts'

/** A database on several machines. */
export const distributionFaults: readonly Fault[] = [
  {
    id: 'revocation-sought-on-every-machine',
    file: 'src/storage/statements.ts',
    find: "${revokedAccessTokens.grantId} = ${value('key')}",
    replace: '${revokedAccessTokens.grantId} = ${grants.id}',
    tests: ['test/storage/plans.test.ts'],
  },
  {
    id: 'update-writes-the-key',
    file: 'src/storage/statements.ts',
    find: '.set(placeholders(table, key))',
    replace: '.set(placeholders(table))',
    tests: ['test/storage/plans.test.ts'],
  },
  {
    id: 'replaced-session-stays',
    file: 'src/storage/writes.ts',
    find: "        change('endSession', write, overtaken),\n",
    replace: '',
    tests: ['test/storage/sqlite.test.ts'],
  },
]
