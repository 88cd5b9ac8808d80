import type { Test } from 'tap'
import { readMigrations } from '../../src/storage/migrations.ts'
import type { Store } from '../../src/storage/store.ts'
import * as sample from './samples.ts'

/** An empty database that no version of this server has seen, and the store that opens it. */
export interface BareDatabase {
  run(statement: string): Promise<void>
  insert(table: string, row: Readonly<Record<string, unknown>>): Promise<void>
  open(): Promise<Store>
}

/** The table in which drizzle keeps what a database has had. */
const journals = {
  sqlite:
    'create table __drizzle_migrations (id integer primary key autoincrement, hash text not null, created_at numeric)',
  postgres:
    'create schema drizzle; create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)',
}

/** The last migration before grants named client and user by number. */
const before = 4
const bytes = (text: string) => Buffer.from(text, 'base64url')
const instant = sample.grant.approvedAt

/** A grant as it was kept: every text and instant, whether another told it or not. */
function keptGrant(id: string, changes: Readonly<Record<string, unknown>>, on = true) {
  return {
    id: bytes(id),
    secret: bytes(sample.grant.secret),
    client_id: sample.client.id,
    account_id: sample.user.id,
    scope: 'openid email',
    resource: 'https://api.example',
    redirect_uri: sample.grant.redirectUri,
    redirect_uri_sent: on,
    code_challenge: bytes(sample.digest(8)),
    nonce: Buffer.from('n-0S6'),
    authenticated_at: instant,
    methods: 'pwd otp',
    auth_time_owed: on,
    claims: null,
    approved_at: instant,
    code_expires_at: instant + 60,
    seq: 0,
    absolute_expires_at: 9000,
    expires_at: instant + 60,
    ...changes,
  }
}

const common = {
  ...sample.grant,
  scope: ['openid', 'email'],
  resource: ['https://api.example'],
  redirectUriSent: true,
  methods: ['pwd', 'otp'],
  authTimeOwed: true,
}
/** An id that begins with the instant of its approval, as those that are minted do. */
const mintedId = Buffer.concat([Buffer.from('000003e8', 'hex'), Buffer.alloc(8, 9)]).toString('base64url')
const [openId, redeemedId, endedId, orphanId] = [1, 2, 3, 4].map(sample.grantId) as [
  string,
  string,
  string,
  string,
] // Four of four.

/** What a store makes of a database of an earlier version. */
export function migrations(
  t: Test,
  dialect: 'sqlite' | 'postgres',
  openBare: (t: Test) => Promise<BareDatabase>,
): void {
  t.test('grants of an earlier version live on, whatever had become of them', async (t) => {
    const database = await openBare(t)
    const store = await opened(database, dialect)
    const redeemed = { seq: 2, rotatedAt: 1020, refreshExpiresAt: 3000, expiresAt: 3000 }
    const kept = bytes(sample.digest(8)).subarray(0, 8).toString('base64url')
    const whole = { codeChallenge: sample.digest(8), nonce: 'n-0S6' }
    t.strictSame(await store.find('grant', openId), { ...common, id: openId, ...whole })
    t.strictSame(await store.find('grant', redeemedId), {
      ...common,
      id: redeemedId,
      ...redeemed,
      codeChallenge: kept,
    })
    t.strictSame(await store.find('grant', endedId), {
      ...common,
      id: endedId,
      seq: 1,
      rotatedAt: 1010,
      expiresAt: 4000,
      revokedAt: 1030,
      revokedBy: 'rfc7009-2.1-refresh-cascades',
      codeChallenge: kept,
    })
    t.strictSame(await store.find('grant', mintedId), { ...common, id: mintedId, ...whole })
    t.equal(await store.find('grant', orphanId), undefined)
    const { id } = sample.user
    t.strictSame(
      (await store.listOf('grant', id)).map((grant) => grant.id),
      [openId, redeemedId, endedId, mintedId],
    )
    await store.write({
      op: 'rotateGrant',
      grantId: redeemedId,
      fromSeq: 2,
      at: 1100,
      refreshExpiresAt: 3100,
      expiresAt: 3100,
    })
    t.match(await store.find('grant', redeemedId), { seq: 3, rotatedAt: 1100, expiresAt: 3100 })
  })

  t.test('clients and people of an earlier version are as they were, and new ones join them', async (t) => {
    const store = await opened(await openBare(t), dialect)
    t.strictSame(await store.find('client', sample.client.id), sample.client)
    t.strictSame(await store.find('user', sample.user.id), sample.user)
    await store.write(
      { op: 'insertClient', client: sample.fullClient },
      { op: 'insertUser', user: sample.fullUser },
    )
    t.equal((await store.list('client')).length, 2)
    t.equal((await store.list('user')).length, 2)
  })
}

async function opened(database: BareDatabase, dialect: 'sqlite' | 'postgres'): Promise<Store> {
  await database.run(journals[dialect])
  for (const { sql, hash, folderMillis } of readMigrations(dialect).slice(0, before + 1)) {
    for (const statement of sql) await database.run(statement)
    const journal = dialect === 'sqlite' ? '__drizzle_migrations' : 'drizzle.__drizzle_migrations'
    await database.run(`insert into ${journal} (hash, created_at) values ('${hash}', ${folderMillis})`)
  }
  const { id, origin, issuedAt, usedAt, ...metadata } = sample.client
  const client = { id, origin, issued_at: issuedAt, used_at: usedAt, metadata: JSON.stringify(metadata) }
  await database.insert('clients', client)
  const { username, passwordHash, createdAt, updatedAt } = sample.user
  await database.insert('accounts', {
    id: sample.user.id,
    username,
    password_hash: passwordHash,
    claims: '{}',
    seeded: false,
    created_at: createdAt,
    updated_at: updatedAt,
  })
  const ends = { refresh_expires_at: 3000, expires_at: 3000 }
  for (const grant of [
    keptGrant(openId, {}),
    keptGrant(redeemedId, { seq: 2, rotated_at: 1020, ...ends }),
    keptGrant(endedId, {
      seq: 1,
      rotated_at: 1010,
      expires_at: 4000,
      revoked_at: 1030,
      revoked_by: 'rfc7009-2.1-refresh-cascades',
    }),
    keptGrant(mintedId, {}),
    keptGrant(orphanId, { client_id: 'gone' }),
  ]) {
    await database.insert('grants', grant)
  }
  return database.open()
}
