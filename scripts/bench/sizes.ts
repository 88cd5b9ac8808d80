/** `npm run bench -- sizes`: what each stored row takes in PostgreSQL, with its indexes and in its log. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { consentKind } from '../../src/domain/connections.ts'
import { insert, insertUse, type Write } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { patient } from '../../test/helpers/nodes.ts'
import { startPostgres } from '../../test/storage/postgres-server.ts'
import * as sample from '../../test/storage/samples.ts'
import { readCount, scriptCommand } from '../command.ts'
import { planOf } from './plan.ts'

const { rows } = scriptCommand(
  'bench -- sizes',
  'Inserts rows of each kind into an empty PostgreSQL, in transactions of a hundred, and divides what the table, its ' +
    'indexes and the log have grown by. Then computes what 1, 10 and 100 million users need.',
)
  .option('--rows <number>', 'how many of each kind', readCount, 20_000)
  .parse()
  .opts<{ rows: number }>()

const now = 1_700_000_000
const idOf = (n: number, size = 16) => {
  const bytes = randomBytes(size)
  // As ids are: in the order of time.
  bytes.writeUInt32BE(now + n)
  return bytes.toString('base64url')
}
const userIds = Array.from({ length: rows }, () => randomBytes(16).toString('base64url'))
const owner = (n: number) => userIds[n % rows] ?? ''
const clientId = 'client-1'
const passwordHash = `$argon2id$v=19$m=19456,t=2,p=1$${'c'.repeat(22)}$${'a'.repeat(43)}`
const scope = ['openid', 'profile', 'email']
const kinds: Readonly<Record<string, readonly [table: string, write: (n: number) => Write]>> = {
  user: [
    'users',
    (n) =>
      insert('user', {
        ...sample.fullUser,
        passwordHash,
        id: owner(n),
        username: `user${n}`,
        email: `user${n}@example.org`,
      }),
  ],
  session: [
    'sessions',
    (n) =>
      insert('session', {
        ...sample.fullSession,
        id: randomBytes(32).toString('base64url'),
        userId: owner(n),
      }),
  ],
  grant: [
    'grants',
    (n) => {
      const grant = {
        ...sample.grant,
        id: idOf(n, 12),
        secret: randomBytes(16).toString('base64url'),
        userId: owner(n),
        clientId,
        scope,
        redirectUri: 'https://app.example.org/callback',
        methods: ['pwd'],
        codeChallenge: randomBytes(32).toString('base64url'),
        approvedAt: now + n,
      }
      return { op: 'insertGrant', grant }
    },
  ],
  'remembered consent': [
    'records',
    (n) =>
      insert(consentKind, {
        ...sample.consent,
        userId: owner(n),
        clientId,
        allowed: [{ resource: 'https://api.example', scope }],
      }),
  ],
  'audit event': [
    'audit_events',
    (n) => insert('auditEvent', { ...sample.fullAuditEvent, at: now + n, userId: owner(n), clientId }),
  ],
  'use of a proof (DPoP)': [
    'records',
    (n) => insertUse({ id: randomBytes(32).toString('base64url'), expiresAt: now + n }),
  ],
}

const ends: (() => unknown)[] = []
const t = { teardown: (end: () => unknown) => void ends.push(end) }
try {
  const postgres = await startPostgres(t)
  const url = await postgres.createDatabase()
  const store = await openStore(url, patient)
  t.teardown(() => store.close())
  const observer = new pg.Client(url)
  await observer.connect()
  t.teardown(() => observer.end())
  const sizesOf = async (table: string) => {
    const { rows } = await observer.query(
      "select pg_total_relation_size($1::regclass)::float8 as total, pg_indexes_size($1::regclass)::float8 as indexes, (pg_current_wal_insert_lsn() - '0/0')::float8 as wal",
      [table],
    )
    return rows[0] as { total: number; indexes: number; wal: number } // of this statement
  }
  await store.write(insert('client', sample.client))
  process.stdout.write(
    '| row | bytes, with indexes | of these, indexes | bytes of log |\n| --- | --- | --- | --- |\n',
  )
  const totals: Record<string, number> = {}
  for (const [name, [table, write]] of Object.entries(kinds)) {
    const before = await sizesOf(table)
    for (let n = 0; n < rows; n += 100)
      await store.write(...Array.from({ length: Math.min(100, rows - n) }, (_, k) => write(n + k)))
    const after = await sizesOf(table)
    const each = (['total', 'indexes', 'wal'] as const).map((part) =>
      Math.round((after[part] - before[part]) / rows),
    )
    totals[name] = each[0] ?? 0
    process.stdout.write(`| ${[name, ...each].join(' | ')} |\n`)
  }
  process.stdout.write(
    '\n| computed | 1 million users | 10 million | 100 million |\n| --- | --- | --- | --- |\n',
  )
  for (const line of planOf([1e6, 1e7, 1e8], totals)) process.stdout.write(`${line}\n`)
} finally {
  for (const end of ends.reverse()) await end()
}
