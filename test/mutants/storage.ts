import type { Fault } from './fault.ts'

const checkpoints = ['test/storage/checkpoints.test.ts'] as const
const copy = ['test/storage/copy-database.test.ts'] as const
const sqlite = ['test/storage/sqlite.test.ts'] as const

/** Faults of storage and of stored secrets. */
export const storageFaults = [
  {
    id: 'decision-on-what-was-read-before',
    rule: 'rfc6749-4.1.2-code-single-use',
    file: 'src/storage/create-store.ts',
    find: 'transact(() => decideOn(kind, key, decide), locksOf(kind, key))',
    replace:
      'read(reads.load(kind, key)).then((record) => transact(() => decideOn(kind, key, () => decide(record)), locksOf(kind, key)))',
  },
  {
    id: 'acknowledged-before-the-commit',
    file: 'src/storage/sqlite/group-commit.ts',
    find: 'const settles = batch.map((job) => job.run())',
    replace:
      'const settles = batch.map((job) => job.run())\n      for (const settle of settles.splice(0)) settle()',
    tests: ['test/storage/group-commit.test.ts'],
  },
  {
    id: 'writes-not-flushed-beside-a-used-proof',
    file: 'src/storage/sqlite/group-commit.ts',
    find: 'batch.some(({ isBrief }) => !isBrief)',
    replace: 'batch.every(({ isBrief }) => !isBrief)',
    tests: ['test/storage/group-commit.test.ts'],
  },
  {
    id: 'uses-not-in-the-order-of-time',
    file: 'src/domain/record.ts',
    find: "String(expiresAt).padStart(12, '0')",
    replace: 'String(expiresAt)',
    tests: ['test/storage/sqlite.test.ts'],
  },
  {
    id: 'use-deleted-before-it-expires',
    file: 'src/storage/sweep.ts',
    find: 'useKey(now + 1)',
    replace: 'useKey(now + 2)',
    tests: ['test/storage/sqlite.test.ts'],
  },
  {
    id: 'journal-that-is-never-brought-into-the-file',
    file: 'src/storage/sqlite/group-commit.ts',
    find: 'if (this.#isCheckpointDue) this.#checkpoints.run()\n      else if',
    replace: 'if',
    tests: checkpoints,
  },
  {
    id: 'checkpoint-and-commit-in-one-turn',
    file: 'src/storage/sqlite/group-commit.ts',
    find: 'this.#checkpoints.run()\n      else if',
    replace: 'this.#checkpoints.run()\n      if',
    tests: checkpoints,
  },
  {
    id: 'checkpoint-in-the-commit',
    file: 'src/storage/sqlite/checkpoints.ts',
    find: "'wal_autocheckpoint = 0'",
    replace: "'wal_autocheckpoint = 100'",
    tests: checkpoints,
  },
  {
    id: 'checkpoint-kept-out-by-a-read-of-this-server',
    file: 'src/storage/sqlite/checkpoints.ts',
    find: '      prepare()\n',
    replace: '',
    tests: checkpoints,
  },
  {
    id: 'checkpoint-as-long-as-it-takes',
    file: 'src/storage/sqlite/checkpoints.ts',
    find: 'within(wantedMilliseconds / milliseconds, 0.5, 1.25)',
    replace: '1.25',
    tests: checkpoints,
  },
  {
    id: 'checkpoint-that-a-reader-stopped-counts',
    file: 'src/storage/sqlite/checkpoints.ts',
    find: 'if (copied === written)',
    replace: 'if (copied <= written)',
    tests: checkpoints,
  },
  {
    id: 'commit-without-waiting-for-the-disk',
    file: 'src/storage/sqlite/open-database.ts',
    find: "'synchronous = FULL'",
    replace: "'synchronous = NORMAL'",
    tests: sqlite,
  },
  {
    id: 'database-readable-by-others',
    file: 'src/storage/sqlite/open-database.ts',
    find: '0o600',
    replace: '0o644',
    tests: sqlite,
  },
  {
    id: 'backup-readable-by-others',
    file: 'src/storage/sqlite/backup.ts',
    find: '0o600',
    replace: '0o644',
    tests: copy,
  },
  {
    id: 'backup-not-checked',
    file: 'src/storage/sqlite/backup.ts',
    find: "    assertOurs(schema === 'missing' ? 'foreign' : schema)\n",
    replace: '',
    tests: copy,
  },
  {
    id: 'database-replaced-under-a-server',
    file: 'src/storage/sqlite/backup.ts',
    find: 'const alone = takeAlone(file)',
    replace: "const alone = new Database(':memory:')",
    tests: copy,
  },
  {
    id: 'secrets-stored-as-they-are',
    rule: 'rfc6749-10.3-tokens-protected-at-rest',
    file: 'src/domain/secret.ts',
    find: "return hash('sha256', secret, 'base64url')",
    replace: "return secret.padEnd(hash('sha256', secret, 'base64url').length)",
  },
  {
    id: 'secrets-too-short',
    rule: 'oidc-core-16.19-secret-entropy',
    file: 'src/domain/secret.ts',
    find: 'secretBytes = 32',
    replace: 'secretBytes = 12',
  },
  {
    id: 'client-remembered-beyond-its-turn',
    file: 'src/storage/sqlite/batched-reads.ts',
    find: 'forget()\n',
    replace: '\n',
    tests: ['test/storage/read-turns.test.ts'],
  },
  {
    id: 'handle-without-key',
    file: 'src/domain/handle.ts',
    find: '!isTag(keyTag, key.secret, signed)',
    replace: 'keyTag.length !== tagBytes',
    tests: ['test/domain/handle.test.ts'],
  },
  {
    id: 'handle-of-any-grant',
    file: 'src/domain/handle.ts',
    find: '&& handle.hasTagOf(grant.secret)',
    replace: '',
    tests: ['test/domain/handle.test.ts'],
  },
  {
    id: 'handle-in-many-spellings',
    file: 'src/domain/handle.ts',
    find: " || bytes.toString('base64url') !== encoded",
    replace: '',
    tests: ['test/domain/handle.test.ts'],
  },
  {
    id: 'sessions-survive-a-new-password',
    file: 'src/users/rules/user.ts',
    find: '    endSessionsOf(user.id, context.at, stays),\n',
    replace: '',
    tests: ['test/domain/user.test.ts'],
  },
  {
    id: 'store-of-a-newer-version-taken',
    tests: ['test/storage/sqlite.test.ts'],
    file: 'src/storage/migrations.ts',
    find: 'isComplete && added.every(({ hash }) => hash.endsWith(compatibleMark))',
    replace: 'isComplete',
  },
] as const satisfies readonly Fault[]
