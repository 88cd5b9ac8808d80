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
  {
    id: 'copied-rows-are-locked',
    file: 'src/storage/postgres/distributed-script.ts',
    find: "forShare: '' }, [clients, users])",
    replace: "forShare: '' }, [clients])",
    tests: ['test/storage/distributed.test.ts'],
  },
  {
    id: 'grant-does-not-wait-for-the-lock-of-its-user',
    file: 'src/storage/postgres/distributed-script.ts',
    find: '  sessionOfGrant: ({ userId }) => shared(`user ${userId}`),\n',
    replace: '',
    tests: ['test/storage/distributed.test.ts'],
  },
  {
    id: 'end-of-a-client-is-not-waited-for',
    file: 'src/storage/postgres/distributed-script.ts',
    find: "  'update client': ({ id }) => alone(`client ${id}`),\n",
    replace: '',
    tests: ['test/storage/distributed.test.ts'],
  },
  {
    id: 'exchanged-grant-outlives-what-it-was-exchanged-for',
    file: 'src/storage/postgres/distributed-script.ts',
    find: 'hasEnded: row?.hasEnded ?? true',
    replace: 'hasEnded: row?.hasEnded ?? false',
    tests: ['test/storage/distributed.test.ts'],
  },
  {
    id: 'untried-layout-is-served',
    file: 'src/storage/postgres/placement.ts',
    find: 'if (differing.length === 0 && groups.size === 1) return true',
    replace: 'if (groups.size === 1) return true',
    tests: ['test/storage/distributed.test.ts'],
  },
  {
    id: 'a-worker-is-taken-for-the-coordinator',
    file: 'src/storage/postgres/placement.ts',
    find: 'if (!rows[0]?.coordinator)',
    replace: 'if (rows[0]?.coordinator === undefined)',
    tests: ['test/storage/distributed.test.ts'],
  },
  {
    id: 'lost-worker-is-an-error-of-the-server',
    file: 'src/storage/postgres/open-pool.ts',
    find: ' || isLostWorker(error)',
    replace: '',
    tests: ['test/storage/distributed.test.ts'],
  },
]
