import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3/driver'
import {
  and,
  asc,
  desc,
  eq,
  gt,
  gte,
  inArray,
  isNull,
  lte,
  ne,
  or,
  type Placeholder,
  type Query,
  type SQL,
  sql,
} from 'drizzle-orm/sql'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { SQLiteInsertValue, SQLiteUpdateSetSource } from 'drizzle-orm/sqlite-core/query-builders'
import { getTableColumns } from 'drizzle-orm/utils'
import { keptChallengeBytes } from '../../domain/pkce.ts'
import type { WriteStatement } from '../steps.ts'
import { type Change, type Connected, compileChange, compileFinder } from './compiled.ts'
import {
  accounts,
  auditEvents,
  clients,
  consents,
  grants,
  interactions,
  keys,
  oneTimeLinks,
  passkeys,
  rejections,
  revokedAccessTokens,
  secondFactors,
  sessions,
  throttles,
} from './schema.ts'

const value = sql.placeholder

/** Every read, prepared: building a query costs twenty times what running it does. */
export function prepareReads(db: Connected) {
  const { id: clientId } = clients
  const { clientSeq, userSeq, ...grantColumns } = getTableColumns(grants)
  // Not by `inner join`: that measured 29 µs where this takes 7. They are NULL when their row is gone.
  const found = {
    ...grantColumns,
    clientId: sql<string | null>`(select ${clients.id} from ${clients} where ${clients.seq} = ${clientSeq})`,
    userId: sql<string | null>`(select ${accounts.id} from ${accounts} where ${accounts.seq} = ${userSeq})`,
    userLockedAt: sql<
      number | null
    >`(select ${accounts.lockedAt} from ${accounts} where ${accounts.seq} = ${userSeq})`,
  }
  // Of the one token alone: a client may revoke thousands of a grant. And no `now`: the id of an expired token does no
  // harm until it is swept.
  const revokedToken = sql<string | null>`(select ${revokedAccessTokens.tokenId} from ${revokedAccessTokens}
    where ${revokedAccessTokens.grantId} = ${grants.id} and ${revokedAccessTokens.tokenId} = ${value('tokenId')})`
  const find = <T extends SQLiteTable>(table: T, where: SQL | undefined) =>
    compileFinder(db, getTableColumns(table), table, where)
  const byLogin = or(eq(accounts.username, value('key')), eq(accounts.email, value('key')))
  const of = <T extends SQLiteTable>(table: T, userId: SQLiteColumn, ...order: readonly SQLiteColumn[]) =>
    db
      .select()
      .from(table)
      .where(eq(userId, value('userId')))
      .orderBy(...order.map((column) => asc(column)))
      .prepare()
  // By user as a statement of its own: only so can it use their index.
  const audit = (ofUser: SQL) =>
    db
      .select()
      .from(auditEvents)
      .where(
        and(
          ofUser,
          gte(auditEvents.at, value('since')),
          letThrough(auditEvents.name, 'name'),
          letThrough(auditEvents.clientId, 'clientId'),
        ),
      )
      .orderBy(desc(auditEvents.seq))
      .limit(value('limit'))
      .prepare()
  return {
    client: find(clients, eq(clientId, value('key'))),
    clients: db.select().from(clients).orderBy(asc(clients.issuedAt), asc(clientId)).prepare(),
    user: find(accounts, eq(accounts.id, value('key'))),
    accounts: db.select().from(accounts).orderBy(asc(accounts.createdAt), asc(accounts.id)).prepare(),
    somebody: db.select({ id: accounts.id }).from(accounts).limit(1).prepare(),
    // The exact condition of the index, so that only its rows are read.
    seededUsers: db
      .select({ username: accounts.username })
      .from(accounts)
      .where(sql`seeded`)
      .orderBy(asc(accounts.username))
      .prepare(),
    // A user name goes before an equal email address of another user.
    userByLogin: db
      .select()
      .from(accounts)
      .where(byLogin)
      .orderBy(desc(eq(accounts.username, value('key'))))
      .limit(1)
      .prepare(),
    session: find(sessions, eq(sessions.id, value('key'))),
    sessionsOf: of(sessions, sessions.userId, sessions.createdAt, sessions.id),
    passkey: find(passkeys, eq(passkeys.id, value('key'))),
    passkeysOf: of(passkeys, passkeys.userId, passkeys.createdAt, passkeys.id),
    secondFactor: find(secondFactors, eq(secondFactors.userId, value('key'))),
    link: find(oneTimeLinks, eq(oneTimeLinks.id, value('key'))),
    interaction: find(interactions, eq(interactions.id, value('key'))),
    consent: find(
      consents,
      and(eq(consents.userId, value('userId')), eq(consents.clientId, value('clientId'))),
    ),
    consentsOf: of(consents, consents.userId, consents.grantedAt, consents.clientId),
    grant: compileFinder(db, found, grants, eq(grants.id, value('key'))),
    grantOfToken: compileFinder(db, { ...found, revokedToken }, grants, eq(grants.id, value('key'))),
    grantsOf: db
      .select(found)
      .from(grants)
      .where(eq(userSeq, seqOf(accounts, 'userId')))
      .orderBy(asc(grants.id))
      .prepare(),
    connections: db
      .select(connectionColumns)
      .from(connectionsQuery())
      .orderBy(sql`used_at desc`, sql`client_id`)
      .limit(value('limit'))
      .offset(value('offset'))
      .prepare(),
    newestGrants: db
      .select(found)
      .from(grants)
      .where(
        and(
          eq(userSeq, seqOf(accounts, 'userId')),
          eq(clientSeq, seqOf(clients, 'clientId')),
          isNull(grants.revokedAt),
          sql`coalesce(${grants.expiresAt}, ${grants.refreshExpiresAt}, 0) > ${value('now')}`,
        ),
      )
      .orderBy(desc(grants.id))
      .limit(value('limit'))
      .prepare(),
    throttle: find(throttles, eq(throttles.key, value('key'))),
    key: find(keys, eq(keys.id, value('key'))),
    rejection: find(rejections, eq(rejections.id, value('key'))),
    keys: db.select().from(keys).orderBy(asc(keys.createdAt), asc(keys.id)).prepare(),
    // By the numbers of the first and the last: nothing is counted.
    refusalsKept: db
      .select({ count: sql<number>`(select max(seq) from ${rejections}) - ${rejections.seq} + 1` })
      .from(rejections)
      .orderBy(asc(rejections.seq))
      .limit(1)
      .prepare(),
    audit: audit(letThrough(auditEvents.userId, 'userId')),
    auditOf: audit(eq(auditEvents.userId, value('userId'))),
  }
}

const connectionColumns = {
  clientId: sql<string>`client_id`,
  grants: sql<number>`grants`.mapWith(Number),
  remembered: sql<number>`remembered`.mapWith(Number),
  total: sql<number>`total`.mapWith(Number),
}

/**
 * The connections of a user, counted in the database. A grant without a time of its own is an unredeemed code, which is
 * seconds old.
 */
function connectionsQuery() {
  const isValid = sql`${grants.revokedAt} is null
    and coalesce(${grants.expiresAt}, ${grants.refreshExpiresAt}, 0) > ${value('now')}`
  const granted = sql`select (select ${clients.id} from ${clients} where ${clients.seq} = ${grants.clientSeq}) as client_id,
    count(*) as grants, max(coalesce(${grants.rotatedAt}, ${grants.approvedAt}, ${value('now')})) as used_at, 0 as remembered
    from ${grants} where ${grants.userSeq} = ${seqOf(accounts, 'userId')} and ${isValid} group by ${grants.clientSeq}`
  const consented = sql`select ${consents.clientId}, 0, ${consents.grantedAt}, 1 from ${consents}
    where ${consents.userId} = ${value('userId')}`
  return sql`(select client_id, sum(grants) as grants, max(used_at) as used_at, max(remembered) as remembered,
    count(*) over () as total from (${granted} union all ${consented}) as connection
    where client_id is not null group by client_id) as connection`
}

/** Every write, prepared. */
export function prepareWrites(db: Connected): Readonly<Record<WriteStatement, Change>> {
  const insert = <T extends SQLiteTable>(table: T) => db.insert(table).values(row(table))
  const update = <T extends SQLiteTable>(table: T, id: SQLiteColumn) =>
    db
      .update(table)
      .set(settings(table))
      .where(eq(id, value('id')))
  const remove = (table: SQLiteTable, column: SQLiteColumn, name: string) =>
    db.delete(table).where(eq(column, value(name)))
  const living = and(eq(grants.id, value('id')), isNull(grants.revokedAt))
  const livingOf = and(eq(grants.userSeq, seqOf(accounts, 'userId')), isNull(grants.revokedAt))
  const next = {
    seq: sql`${grants.seq} + 1`,
    rotatedAt: sql`${value('at')}`,
    refreshExpiresAt: sql`${value('refreshExpiresAt')}`,
    expiresAt: sql`${value('expiresAt')}`,
  }
  const revoke = (which: SQL | undefined) =>
    db
      .update(grants)
      .set({ revokedAt: sql`${value('at')}`, revokedBy: sql`${value('by')}` })
      .where(which)
  const queries: Readonly<Record<WriteStatement, { toSQL(): Query }>> = {
    insertClient: insert(clients),
    updateClient: update(clients, clients.id),
    touchClient: db
      .update(clients)
      .set({ usedAt: sql`max(${value('at')}, ${clients.issuedAt} + 1)` })
      .where(eq(clients.id, value('id'))),
    deleteClientRow: remove(clients, clients.id, 'id'),
    deleteConsentsOfClient: remove(consents, consents.clientId, 'clientId'),
    insertUser: insert(accounts),
    updateUser: update(accounts, accounts.id),
    deleteUserRow: remove(accounts, accounts.id, 'id'),
    deleteConsentsOf: remove(consents, consents.userId, 'userId'),
    deleteConsent: db
      .delete(consents)
      .where(and(eq(consents.userId, value('userId')), eq(consents.clientId, value('clientId')))),
    insertPasskey: insert(passkeys),
    updatePasskey: update(passkeys, passkeys.id),
    deletePasskey: remove(passkeys, passkeys.id, 'id'),
    deletePasskeysOf: remove(passkeys, passkeys.userId, 'userId'),
    putSecondFactor: insert(secondFactors).onConflictDoUpdate({
      target: secondFactors.userId,
      set: settings(secondFactors),
    }),
    deleteSecondFactor: remove(secondFactors, secondFactors.userId, 'userId'),
    insertLink: insert(oneTimeLinks),
    deleteLink: remove(oneTimeLinks, oneTimeLinks.id, 'id'),
    deleteLinksOf: db
      .delete(oneTimeLinks)
      .where(
        and(
          eq(oneTimeLinks.userId, value('userId')),
          ne(oneTimeLinks.purpose, value('except')),
          sql`${oneTimeLinks.purpose} = coalesce(nullif(${value('only')}, ''), ${oneTimeLinks.purpose})`,
        ),
      ),
    deleteLinksFor: remove(oneTimeLinks, oneTimeLinks.purpose, 'purpose'),
    insertSession: insert(sessions),
    extendSession: db
      .update(sessions)
      .set({ idleExpiresAt: sql`${value('idleExpiresAt')}` })
      .where(eq(sessions.id, value('id'))),
    replaceSession: db
      .update(sessions)
      .set({ id: sql`${value('by')}`, methods: sql`${value('methods')}` })
      .where(eq(sessions.id, value('id'))),
    deleteSession: remove(sessions, sessions.id, 'id'),
    deleteSessionsOf: db
      .delete(sessions)
      .where(and(eq(sessions.userId, value('userId')), ne(sessions.id, value('except')))),
    insertInteraction: insert(interactions),
    updateInteraction: update(interactions, interactions.id),
    deleteInteraction: remove(interactions, interactions.id, 'id'),
    putConsent: insert(consents).onConflictDoUpdate({
      target: [consents.userId, consents.clientId],
      set: settings(consents),
    }),
    insertGrant: db.insert(grants).values({
      ...row(grants),
      clientSeq: sql`coalesce(${seqOf(clients, 'clientId')}, 0)`,
      userSeq: sql`coalesce(${seqOf(accounts, 'userId')}, 0)`,
    }),
    insertGrantOfSession: insertGrantWhere(db, isSignedIn),
    insertGrantOfConsent: insertGrantWhere(
      db,
      sql`${isSignedIn} and exists (select 1 from ${consents} where ${consents.userId} = ${value('userId')}
        and ${consents.clientId} = ${value('clientId')} and ${consents.allowed} = ${value('allowed')})`,
    ),
    deleteOldestGrants: db.delete(grants).where(
      sql`${grants.id} in (select ${grants.id} from ${grants}
        where ${grants.userSeq} = ${seqOf(accounts, 'userId')} and ${grants.clientSeq} = ${seqOf(clients, 'clientId')}
        order by ${grants.id} desc limit -1 offset ${value('stay')})`,
    ),
    redeemGrant: db
      .update(grants)
      .set({
        ...next,
        nonce: sql`null`,
        codeChallenge: sql`substr(${grants.codeChallenge}, 1, ${sql.raw(String(keptChallengeBytes))})`,
      })
      .where(and(living, eq(grants.seq, 0))),
    rotateGrant: db
      .update(grants)
      .set(next)
      .where(and(living, eq(grants.seq, value('fromSeq')))),
    revokeGrant: revoke(living),
    revokeGrantsOf: revoke(livingOf),
    revokeGrantsOfConnection: revoke(and(livingOf, eq(grants.clientSeq, seqOf(clients, 'clientId')))),
    revokeAccessToken: insert(revokedAccessTokens).onConflictDoNothing(),
    insertKey: insert(keys),
    updateKey: update(keys, keys.id),
    deleteKey: remove(keys, keys.id, 'id'),
    putThrottle: insert(throttles).onConflictDoUpdate({ target: throttles.key, set: settings(throttles) }),
    deleteThrottle: remove(throttles, throttles.key, 'key'),
    insertRejection: insert(rejections),
    insertAuditEvent: insert(auditEvents),
  }
  const changes = Object.entries(queries).map(([name, query]) => [name, compileChange(db, query)])
  return Object.fromEntries(changes) as Record<WriteStatement, Change> // one for each query
}

/** The user is there and unlocked, and the session is theirs. */
const isSignedIn = sql`exists (select 1 from ${accounts}, ${sessions}
  where ${accounts.id} = ${value('userId')} and ${accounts.lockedAt} is null
    and ${sessions.id} = ${value('sessionId')} and ${sessions.userId} = ${accounts.id})`

/** Inserts a grant only where the condition holds. */
function insertGrantWhere(db: Connected, condition: SQL) {
  const numbers = new Map([
    ['clientSeq', seqOf(clients, 'clientId')],
    ['userSeq', seqOf(accounts, 'userId')],
  ])
  const values = Object.entries(getTableColumns(grants)).map(
    ([member, column]) => numbers.get(member) ?? sql`${sql.param(value(member), column)}`,
  )
  return db.insert(grants).select(sql`select ${sql.join(values, sql`, `)} where ${condition}`)
}

/** What the sweep runs: deletions bounded by `limit`, and a slice of the grants in the order of their key. */
export function prepareSweep(db: BetterSQLite3Database) {
  const expired = (table: SQLiteTable, key: SQLiteColumn, expiresAt: SQLiteColumn) =>
    db
      .delete(table)
      .where(
        inArray(
          key,
          db
            .select({ key })
            .from(table)
            .where(lte(expiresAt, value('now')))
            .limit(value('limit')),
        ),
      )
      .prepare()
  const unused = db
    .select({ id: clients.id })
    .from(clients)
    .where(sql`origin = 'registered' and used_at = issued_at and ${clients.issuedAt} < ${value('since')}`)
    .limit(value('limit'))
  const idle = db
    .select({ id: clients.id })
    .from(clients)
    .where(sql`origin = 'registered' and used_at > issued_at and ${clients.usedAt} < ${value('since')}`)
    .limit(value('limit'))
  const oldest = db
    .select({ seq: rejections.seq })
    .from(rejections)
    .where(sql`${rejections.seq} <= (select max(seq) from ${rejections}) - ${value('kept')}`)
    .limit(value('limit'))
  // Looks at the first rows only: they are the oldest, and there is no index on their time.
  const outdated = sql`${auditEvents.seq} in (select seq from
    (select seq, at from ${auditEvents} order by seq limit ${value('limit')}) as first where at < ${value('since')})`
  const tokens = revokedAccessTokens
  const endOfGrant = sql<number>`coalesce(${grants.expiresAt}, ${grants.refreshExpiresAt})`
  return {
    interactions: expired(interactions, interactions.id, interactions.expiresAt),
    sessions: expired(sessions, sessions.id, sessions.idleExpiresAt),
    oneTimeLinks: expired(oneTimeLinks, oneTimeLinks.id, oneTimeLinks.expiresAt),
    throttles: expired(throttles, throttles.key, throttles.expiresAt),
    revokedAccessTokens: db
      .delete(tokens)
      .where(
        sql`(grant_id, token_id) in (select grant_id, token_id from ${tokens}
          where expires_at <= ${value('now')} limit ${value('limit')})`,
      )
      .prepare(),
    unusedClients: db.delete(clients).where(inArray(clients.id, unused)).prepare(),
    idleClients: db.delete(clients).where(inArray(clients.id, idle)).prepare(),
    rejections: db.delete(rejections).where(inArray(rejections.seq, oldest)).prepare(),
    auditEvents: db.delete(auditEvents).where(outdated).prepare(),
    sliceOfGrants: db
      .select({ id: grants.id, expiresAt: endOfGrant, revokedAt: grants.revokedAt })
      .from(grants)
      .where(gt(grants.id, value('after')))
      .orderBy(asc(grants.id))
      .limit(value('limit'))
      .prepare(),
    grant: db
      .delete(grants)
      .where(and(eq(grants.id, value('id')), lte(endOfGrant, value('now'))))
      .prepare(),
  }
}

/** The number of a client or a user, by which grants name it. */
function seqOf(table: typeof clients | typeof accounts, name: string): SQL {
  return sql`(select ${table.seq} from ${table} where ${table.id} = ${value(name)})`
}

/** A filter that is null lets everything through. */
function letThrough(column: SQLiteColumn, name: string) {
  return sql`(cast(${value(name)} as text) is null or ${column} = ${value(name)})`
}

/** A placeholder for every column but the number a row is given, named after its member. */
function row<T extends SQLiteTable>(table: T): SQLiteInsertValue<T> {
  const placeholders: Record<string, Placeholder> = {}
  for (const [member, { hasDefault }] of Object.entries(getTableColumns(table))) {
    if (!hasDefault) placeholders[member] = value(member)
  }
  // The loop names exactly the columns of T that need a value; the compiler cannot follow it.
  return placeholders as SQLiteInsertValue<T>
}

/** The same, for an update. */
function settings<T extends SQLiteTable>(table: T): SQLiteUpdateSetSource<T> {
  // Drizzle takes placeholders in `set` as in `values`, though its types leave them out.
  return row(table) as SQLiteUpdateSetSource<T>
}
