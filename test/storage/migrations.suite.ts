import { readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { consentKey, consentKind } from '../../src/domain/connections.ts'
import { insert, removeUser } from '../../src/domain/decision.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import type { Grant } from '../../src/domain/model.ts'
import type { Store } from '../../src/storage/store.ts'
import { linkKinds } from '../../src/users/rules/one-time-link.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import * as sample from './samples.ts'

/** An empty database that no version of this server has opened, and the store that opens it. */
export interface BareDatabase {
  run(statement: string): Promise<void>
  insert(table: string, row: Readonly<Record<string, unknown>>): Promise<void>
  open(): Promise<Store>
}

/** The table in which drizzle records the applied migrations. */
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

/** A grant as it was stored: every text and instant, whether it can be derived from another or not. */
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
/** An id that begins with the instant it was approved, like real ones. */
const mintedId = Buffer.concat([Buffer.from('000003e8', 'hex'), Buffer.alloc(8, 9)]).toString('base64url')
const [openId, redeemedId, endedId, orphanId] = [1, 2, 3, 4].map(sample.grantId) as [
  string,
  string,
  string,
  string,
] // Four of four.

/** Opens a database of an earlier version with the store. */
export function migrations(
  t: Test,
  dialect: 'sqlite' | 'postgres',
  openBare: (t: Test) => Promise<BareDatabase>,
): void {
  t.test('grants of an earlier version are migrated in every state', async (t) => {
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

  t.test('records that had their own tables are migrated', async (t) => {
    const database = await openBare(t)
    await migrateTo(5, database, dialect)
    await fillTables(database)
    const store = await database.open()
    const { id } = sample.user
    t.match(await store.find('user', id), { id, username: 'ada' })
    t.match(await store.find('user', sample.fullUser.id), {
      email: 'grace@example.org',
      lockedAt: 1200,
      seeded: true,
    })
    t.strictSame(await store.find('session', sample.fullSession.id), sample.fullSession)
    t.strictSame(await store.listOf(passkeyKind, id), passkeys)
    for (const factor of secondFactors)
      t.strictSame(await store.find(secondFactorKind, factor.userId), factor)
    for (const link of links) t.strictSame(await store.find(linkKinds[link.purpose], link.id), link)
    for (const interaction of interactions)
      t.strictSame(await store.find(interactionKind, interaction.id), interaction)
    const { consent } = sample
    t.strictSame(await store.find(consentKind, consentKey(id, consent.clientId)), consent)
    t.strictSame(await store.find(throttleKind, throttle.key), throttle)
    t.equal(await store.find(throttleKind, sample.throttle.key), undefined, 'JSON in SQL cannot have U+0000')
    t.strictSame(await store.find('key', sample.key.id), sample.key)
    t.strictSame(await store.find('rejection', sample.rejection.id), sample.rejection)
    t.match(await store.audit({ since: 0, userId: id, limit: 9 }), [
      { name: 'user-changed', by: 'user', at: 1000 },
    ])
    t.match(await store.find('grant', openId), { userId: id, clientId: sample.client.id, expiresAt: 3000 })
  })

  t.test('rare members of a grant of the previous version are read from their column', async (t) => {
    const database = await openBare(t)
    await migrateTo(6, database, dialect)
    await insertOwners(database, 'users')
    const { client_id, account_id, code_expires_at, ...kept } = keptGrant(openId, {})
    const claims = { userinfo: ['name', 'a "quoted" name'], idToken: ['auth_time'] }
    const { userinfo, idToken } = claims
    const rare: readonly (readonly [unknown, Partial<Grant>])[] = [
      [null, {}],
      [[[], [], 'phr'], { acr: 'phr' }],
      [[userinfo, idToken], { claims }],
      [[userinfo, idToken, 'phr'], { claims, acr: 'phr' }],
    ]
    for (const [index, [stored]] of rare.entries()) {
      const columns = { id: bytes(sample.grantId(30 + index)), client_seq: 7, user_seq: 3 }
      const text = stored === null ? null : JSON.stringify(stored)
      await database.insert('grants', { ...kept, ...columns, claims: text })
    }
    const store = await database.open()
    const grants = await store.listOf('grant', sample.user.id)
    t.equal(grants.length, rare.length)
    for (const [index, [, members]] of rare.entries()) {
      const id = sample.grantId(30 + index)
      const whole = { codeChallenge: sample.digest(8), nonce: 'n-0S6' }
      t.strictSame(await store.find('grant', id), { ...common, ...whole, id, ...members })
    }
    const { fullGrant } = sample
    await store.write({ op: 'insertGrant', grant: fullGrant })
    t.strictSame(await store.find('grant', fullGrant.id), fullGrant)
  })

  t.test('a grant needs no user', async (t) => {
    const database = await openBare(t)
    await migrateTo(7, database, dialect)
    await insertOwners(database, 'users')
    const { client_id, account_id, code_expires_at, claims, ...kept } = keptGrant(openId, {})
    await t.resolves(database.insert('grants', { ...kept, client_seq: 7, user_seq: null }))
    await t.rejects(database.insert('grants', { ...kept, id: bytes(redeemedId), client_seq: null }))
    // Every later migration accepts it, too.
    await database.open()
  })

  t.test('consent of an earlier version still lets a grant be inserted', async (t) => {
    const database = await openBare(t)
    await migrateTo(5, database, dialect)
    await fillTables(database)
    const store = await database.open()
    const { user, client, fullSession } = sample
    const consent = await store.find(consentKind, consentKey(user.id, client.id))
    const grant = { ...sample.grant, id: sample.grantId(20) }
    await store.write({ op: 'insertGrant', grant, basis: { sessionId: fullSession.id, consent } })
    t.strictSame(await store.find('grant', grant.id), grant)
    await store.write(removeUser(user.id, 0))
    t.equal(await store.find(consentKind, consentKey(user.id, client.id)), undefined)
    t.strictSame(await store.listOf(passkeyKind, user.id), [])
    t.equal(await store.find(linkKinds[sample.fullLink.purpose], sample.fullLink.id), undefined)
  })

  t.test('clients and users of an earlier version are unchanged, and new ones can be added', async (t) => {
    const store = await opened(await openBare(t), dialect)
    t.strictSame(await store.find('client', sample.client.id), sample.client)
    t.strictSame(await store.find('user', sample.user.id), sample.user)
    const prefix = sample.user.username.slice(0, 2)
    t.match(await store.usersFrom({ prefix, limit: 9 }), { users: [sample.user] }, 'found by its beginning')
    t.match(await store.page('user', { limit: 9, only: 'unlocked' }), [{ row: { id: sample.user.id } }])
    await store.write(insert('client', sample.fullClient), insert('user', sample.fullUser))
    t.equal((await store.list('client')).length, 2)
    t.equal((await store.list('user')).length, 2)
  })
}

/** A client and two users, which own the rows of a version in which grants refer to them by number. */
async function insertOwners(database: BareDatabase, users: 'accounts' | 'users'): Promise<void> {
  const { user, client } = sample
  const { id, origin, issuedAt, usedAt, ...metadata } = client
  const metadataText = JSON.stringify(metadata)
  await database.insert('clients', {
    seq: 7,
    id,
    origin,
    issued_at: issuedAt,
    used_at: usedAt,
    metadata: metadataText,
  })
  for (const [seq, { id, username, email, passwordHash, claims, seeded, lockedAt }] of [
    user,
    sample.fullUser,
  ].entries()) {
    await database.insert(users, {
      seq: seq + 3,
      id,
      username,
      email: email ?? null,
      password_hash: passwordHash,
      claims: JSON.stringify(claims),
      seeded,
      locked_at: lockedAt ?? null,
      created_at: 1000,
      updated_at: 1000,
    })
  }
}

/** Every row of a database in which each kind of record had its own table. */
async function fillTables(database: BareDatabase): Promise<void> {
  const { user } = sample
  await insertOwners(database, 'accounts')
  const { browser, from, ...session } = sample.fullSession
  await database.insert('sessions', {
    id: session.id,
    account_id: user.id,
    authenticated_at: session.authenticatedAt,
    methods: 'pwd otp',
    browser,
    signed_in_from: from,
    created_at: session.createdAt,
    idle_expires_at: session.idleExpiresAt,
    expires_at: session.expiresAt,
  })
  for (const { userId, publicKey, backedUp, createdAt, usedAt, transports, ...passkey } of passkeys) {
    await database.insert('passkeys', {
      ...passkey,
      account_id: userId,
      public_key: bytes(publicKey),
      backed_up: backedUp,
      created_at: createdAt,
      used_at: usedAt,
      transports: transports.join(' '),
    })
  }
  for (const factor of secondFactors) {
    await database.insert('second_factors', {
      account_id: factor.userId,
      sealed_secret: factor.sealedSecret,
      confirmed_at: factor.confirmedAt ?? null,
      used_step: factor.usedStep ?? null,
      recovery_hashes: factor.recoveryHashes.join(' '),
      created_at: factor.createdAt,
    })
  }
  for (const { id, purpose, userId, email, createdAt, expiresAt } of links) {
    const owner = { account_id: userId ?? null, email: email ?? null }
    await database.insert('one_time_links', {
      id,
      // The name in that version.
      purpose: purpose === 'first-user' ? 'first-person' : purpose,
      ...owner,
      created_at: createdAt,
      expires_at: expiresAt,
    })
  }
  for (const interaction of interactions) {
    const half = interaction.pendingSecondFactor
    await database.insert('interactions', {
      id: interaction.id,
      browser_hash: interaction.browserHash,
      request: JSON.stringify(interaction.request),
      // The name in that version.
      half_sign_in:
        half === undefined
          ? null
          : JSON.stringify({ accountId: half.userId, password: half.password, at: half.at }),
      challenge: interaction.challenge ?? null,
      authenticated_session_id: interaction.authenticatedSessionId ?? null,
      account_chosen: interaction.userChosen,
      created_at: interaction.createdAt,
      expires_at: interaction.expiresAt,
    })
  }
  const { userId, clientId, allowed, grantedAt } = sample.consent
  const consent = { account_id: userId, client_id: clientId, granted_at: grantedAt }
  await database.insert('consents', { ...consent, allowed: JSON.stringify(allowed) })
  for (const { key, failures, expiresAt } of [throttle, sample.throttle])
    await database.insert('throttles', { key: Buffer.from(key), failures, expires_at: expiresAt })
  const { id: keyId, kind, algorithm, sealedPrivate, createdAt, activeAt } = sample.key
  const instants = { created_at: createdAt, active_at: activeAt }
  await database.insert('keys', { id: keyId, kind, algorithm, sealed_private: sealedPrivate, ...instants })
  const { id: requestId, at, ...facts } = sample.rejection
  await database.insert('refusals', { seq: 9, id: requestId, at, facts: JSON.stringify(facts) })
  const event = { seq: 4, at: 1000, name: 'person-changed', account_id: user.id, client_id: null }
  await database.insert('audit_events', { ...event, facts: JSON.stringify(['person', '', {}]) })
  const { client_id, account_id, code_expires_at, ...grant } = keptGrant(openId, { expires_at: null })
  await database.insert('grants', { ...grant, client_seq: 7, account_seq: 3, refresh_expires_at: 3000 })
}

const throttle = { ...sample.throttle, key: 'ada læse 192.0.2.0/24' }
const passkeys = [sample.passkey, sample.fullPasskey]
const secondFactors = [sample.secondFactor, sample.fullSecondFactor]
const links = [sample.link, sample.fullLink]
const interactions = [sample.interaction, sample.fullInteraction]

/** Migrates a bare database up to one migration. */
async function migrateTo(last: number, database: BareDatabase, dialect: 'sqlite' | 'postgres') {
  await database.run(journals[dialect])
  const read = (name: string) =>
    readFileSync(new URL(`../../drizzle/${dialect}/${name}`, import.meta.url), 'utf8')
  const { entries } = JSON.parse(read('meta/_journal.json')) as { entries: { tag: string; when: number }[] } // as drizzle-kit writes it
  for (const { tag, when } of entries.slice(0, last + 1)) {
    for (const statement of read(`${tag}.sql`).split('--> statement-breakpoint'))
      await database.run(statement)
    const journal = dialect === 'sqlite' ? '__drizzle_migrations' : 'drizzle.__drizzle_migrations'
    await database.run(`insert into ${journal} (hash, created_at) values ('${tag}', ${when})`)
  }
}

async function opened(database: BareDatabase, dialect: 'sqlite' | 'postgres'): Promise<Store> {
  await migrateTo(before, database, dialect)
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
