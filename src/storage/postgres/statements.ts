import type { NodePgDatabase } from 'drizzle-orm/node-postgres/driver'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import type { PgInsertValue, PgUpdateSetSource } from 'drizzle-orm/pg-core/query-builders'
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
  type SQL,
  sql,
} from 'drizzle-orm/sql'
import { getTableColumns } from 'drizzle-orm/utils'
import { keptChallengeBytes } from '../../domain/pkce.ts'
import type { WriteStatement } from '../steps.ts'
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

/** A select that can still be told to lock what it finds; `for` changes the query itself. */
interface Lockable<P> {
  for(strength: 'update', config: { of: PgTable }): unknown
  prepare(name: string): P
}

/** A prepared statement that changes rows. */
export interface Change {
  execute(values: Record<string, unknown>): Promise<{ readonly rowCount: number | null }>
}

/** The reads of `find` and of `transact`, prepared on this connection; the latter's lock the row they find. */
export function prepareLoads(db: NodePgDatabase, purpose: 'find' | 'transact') {
  function ready<P>(name: string, table: PgTable, query: Lockable<P>): P {
    if (purpose === 'transact') query.for('update', { of: table })
    return query.prepare(`${purpose}_${name}`)
  }
  const is = (column: PgColumn) => eq(column, value('key'))
  const isConsent = and(eq(consents.userId, value('userId')), eq(consents.clientId, value('clientId')))
  const byLogin = db
    .select()
    .from(accounts)
    .where(or(is(accounts.username), is(accounts.email)))
  return {
    client: ready('client', clients, db.select().from(clients).where(is(clients.id))),
    user: ready('user', accounts, db.select().from(accounts).where(is(accounts.id))),
    // A user name goes before an equal email address of another user.
    userByLogin: ready('login', accounts, byLogin.orderBy(desc(is(accounts.username))).limit(1)),
    session: ready('session', sessions, db.select().from(sessions).where(is(sessions.id))),
    passkey: ready('passkey', passkeys, db.select().from(passkeys).where(is(passkeys.id))),
    secondFactor: ready(
      'second_factor',
      secondFactors,
      db.select().from(secondFactors).where(is(secondFactors.userId)),
    ),
    link: ready('link', oneTimeLinks, db.select().from(oneTimeLinks).where(is(oneTimeLinks.id))),
    interaction: ready(
      'interaction',
      interactions,
      db.select().from(interactions).where(is(interactions.id)),
    ),
    consent: ready('consent', consents, db.select().from(consents).where(isConsent)),
    grant: ready('grant', grants, selectGrants(db).where(is(grants.id))),
    // One statement and no `now`: an id of an expired token does no harm until it is swept.
    grantOfToken: ready(
      'grant_of_token',
      grants,
      selectGrants(db, { revokedToken: revokedToken() }).where(is(grants.id)),
    ),
    throttle: ready('throttle', throttles, db.select().from(throttles).where(is(throttles.key))),
    key: ready('key', keys, db.select().from(keys).where(is(keys.id))),
    keyRing: ready('key_ring', keys, db.select().from(keys).orderBy(asc(keys.createdAt), asc(keys.id))),
    rejection: ready('rejection', rejections, db.select().from(rejections).where(is(rejections.id))),
  }
}

/** The id of the token that is asked about, if it was revoked: a client may revoke thousands of a grant. */
function revokedToken(): SQL<string | null> {
  return sql<string | null>`(select ${revokedAccessTokens.tokenId} from ${revokedAccessTokens}
    where ${revokedAccessTokens.grantId} = ${grants.id} and ${revokedAccessTokens.tokenId} = ${value('tokenId')})`
}

/** Grants with the ids of their client and their user; without them they are not found. */
function selectGrants<F extends Record<string, SQL>>(db: NodePgDatabase, more: F = {} as F) {
  const { clientSeq, userSeq, ...grantColumns } = getTableColumns(grants)
  return db
    .select({
      ...grantColumns,
      clientId: clients.id,
      userId: accounts.id,
      userLockedAt: accounts.lockedAt,
      ...more,
    })
    .from(grants)
    .innerJoin(clients, eq(clients.seq, clientSeq))
    .innerJoin(accounts, eq(accounts.seq, userSeq))
}

/** The lists, prepared on this connection. */
export function prepareLists(db: NodePgDatabase) {
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
  return {
    client: db.select().from(clients).orderBy(asc(clients.issuedAt), asc(clients.id)).prepare('list_client'),
    user: db
      .select()
      .from(accounts)
      .orderBy(asc(accounts.createdAt), asc(accounts.id))
      .prepare('list_account'),
    somebody: db.select({ id: accounts.id }).from(accounts).limit(1).prepare('list_somebody'),
    // The exact condition of the index, so that only its rows are read.
    seededUsers: db
      .select({ username: accounts.username })
      .from(accounts)
      .where(sql`seeded`)
      .orderBy(asc(accounts.username))
      .prepare('list_seeded'),
    key: db.select().from(keys).orderBy(asc(keys.createdAt), asc(keys.id)).prepare('list_key'),
    // By the numbers of the first and the last: nothing is counted.
    refusalsKept: db
      .select({ count: sql<number>`(select max(seq) from ${rejections}) - ${rejections.seq} + 1` })
      .from(rejections)
      .orderBy(asc(rejections.seq))
      .limit(1)
      .prepare('list_refusals_kept'),
    audit: audit(letThrough(auditEvents.userId, 'userId')).prepare('list_audit'),
    auditOf: audit(eq(auditEvents.userId, value('userId'))).prepare('list_audit_of'),
    sessionsOf: db
      .select()
      .from(sessions)
      .where(eq(sessions.userId, value('userId')))
      .orderBy(asc(sessions.createdAt), asc(sessions.id))
      .prepare('list_sessions_of'),
    passkeysOf: db
      .select()
      .from(passkeys)
      .where(eq(passkeys.userId, value('userId')))
      .orderBy(asc(passkeys.createdAt), asc(passkeys.id))
      .prepare('list_passkeys_of'),
    consentsOf: db
      .select()
      .from(consents)
      .where(eq(consents.userId, value('userId')))
      .orderBy(asc(consents.grantedAt), asc(consents.clientId))
      .prepare('list_consents_of'),
    grantsOf: selectGrants(db)
      .where(eq(accounts.id, value('userId')))
      .orderBy(asc(grants.id))
      .prepare('list_grants_of'),
    connections: db
      .select(connectionColumns)
      .from(connectionsQuery())
      .orderBy(sql`used_at desc`, sql`client_id`)
      .limit(value('limit'))
      .offset(value('offset'))
      .prepare('list_connections'),
    newestGrants: selectGrants(db)
      .where(
        and(
          eq(accounts.id, value('userId')),
          eq(clients.id, value('clientId')),
          isNull(grants.revokedAt),
          sql`coalesce(${grants.expiresAt}, ${grants.refreshExpiresAt}, 0) > ${value('now')}`,
        ),
      )
      .orderBy(desc(grants.id))
      .limit(value('limit'))
      .prepare('list_newest_grants'),
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
    count(*) as grants, max(coalesce(${grants.rotatedAt}, ${grants.approvedAt}, cast(${value('now')} as integer))) as used_at, 0 as remembered
    from ${grants} where ${grants.userSeq} = ${seqOf(accounts, 'userId')} and ${isValid} group by ${grants.clientSeq}`
  const consented = sql`select ${consents.clientId}, 0, ${consents.grantedAt}, 1 from ${consents}
    where ${consents.userId} = ${value('userId')}`
  return sql`(select client_id, sum(grants) as grants, max(used_at) as used_at, max(remembered) as remembered,
    count(*) over () as total from (${granted} union all ${consented}) as connection
    where client_id is not null group by client_id) as connection`
}

/** Every write, prepared on this connection. */
export function prepareWrites(db: NodePgDatabase): Readonly<Record<WriteStatement, Change>> {
  const insert = <T extends PgTable>(table: T) => db.insert(table).values(row(table))
  const update = <T extends PgTable>(table: T, id: PgColumn) =>
    db
      .update(table)
      .set(settings(table))
      .where(eq(id, value('id')))
  const remove = (table: PgTable, column: PgColumn, name: string) =>
    db.delete(table).where(eq(column, value(name)))
  const living = and(eq(grants.id, value('id')), isNull(grants.revokedAt))
  const livingOf = and(eq(grants.userSeq, seqOf(accounts, 'userId')), isNull(grants.revokedAt))
  const setting = (name: string) => sql`${value(name)}`
  const next = {
    seq: sql`${grants.seq} + 1`,
    rotatedAt: setting('at'),
    refreshExpiresAt: setting('refreshExpiresAt'),
    expiresAt: setting('expiresAt'),
  }
  const revoke = (which: SQL | undefined) =>
    db
      .update(grants)
      .set({ revokedAt: setting('at'), revokedBy: setting('by') })
      .where(which)
  const statements: Record<WriteStatement, { prepare(name: string): Change }> = {
    insertClient: insert(clients),
    updateClient: update(clients, clients.id),
    touchClient: db
      .update(clients)
      .set({ usedAt: sql`greatest(${value('at')}, ${clients.issuedAt} + 1)` })
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
          sql`${oneTimeLinks.purpose} = coalesce(nullif(cast(${value('only')} as text), ''), ${oneTimeLinks.purpose})`,
        ),
      ),
    deleteLinksFor: remove(oneTimeLinks, oneTimeLinks.purpose, 'purpose'),
    insertSession: insert(sessions),
    extendSession: db
      .update(sessions)
      .set({ idleExpiresAt: setting('idleExpiresAt') })
      .where(eq(sessions.id, value('id'))),
    replaceSession: db
      .update(sessions)
      .set({ id: setting('by'), methods: setting('methods') })
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
    insertGrant: { prepare: (name) => preparedInsertOfGrant(db, name) },
    insertGrantOfSession: { prepare: (name) => preparedInsertOfGrant(db, name, 'session') },
    insertGrantOfConsent: { prepare: (name) => preparedInsertOfGrant(db, name, 'consent') },
    deleteOldestGrants: db.delete(grants).where(
      sql`${grants.id} in (select ${grants.id} from ${grants}
        where ${grants.userSeq} = ${seqOf(accounts, 'userId')} and ${grants.clientSeq} = ${seqOf(clients, 'clientId')}
        order by ${grants.id} desc offset ${value('stay')})`,
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
  const prepared = Object.entries(statements).map(([name, statement]) => [name, statement.prepare(name)])
  // Same names as in the table above.
  return Object.fromEntries(prepared) as Record<WriteStatement, Change>
}

/**
 * Two statements: with the numbers of the client and the user among its values as subqueries, the insert would not be
 * of one row alone, which is what a table that is distributed takes.
 * @param basis What has to be there. The first statement locks those rows until the commit: what ends them waits, and
 * then finds the grant; or it was first, and its commit is waited for here, and finds nothing to lock.
 */
function preparedInsertOfGrant(db: NodePgDatabase, name: string, basis?: 'session' | 'consent'): Change {
  const numberOf = (table: typeof clients | typeof accounts, id: string) =>
    sql<number>`coalesce(${seqOf(table, id)}, 0)`.mapWith(table.seq)
  const clientSeq = numberOf(clients, 'clientId')
  const prepareOwners = () => {
    if (basis === undefined) {
      return db
        .select({ clientSeq, userSeq: numberOf(accounts, 'userId') })
        .from(sql`(values (1)) as one`)
        .prepare('owners_of_grant')
    }
    const isSession = and(eq(sessions.id, value('sessionId')), eq(sessions.userId, accounts.id))
    const isUser = and(eq(accounts.id, value('userId')), isNull(accounts.lockedAt))
    const signedIn = db
      .select({ clientSeq, userSeq: accounts.seq })
      .from(accounts)
      .innerJoin(sessions, isSession)
    if (basis === 'session')
      return signedIn
        .where(isUser)
        .for('share', { of: [accounts, sessions] })
        .prepare('session_of_grant')
    const isConsent = and(
      eq(consents.userId, accounts.id),
      eq(consents.clientId, value('clientId')),
      eq(consents.allowed, value('allowed')),
    )
    return signedIn
      .innerJoin(consents, isConsent)
      .where(isUser)
      .for('share', { of: [accounts, sessions, consents] })
      .prepare('consent_of_grant')
  }
  const owners = prepareOwners()
  const insert = db.insert(grants).values(row(grants)).prepare(name)
  return {
    execute: async (values) => {
      const [found] = await owners.execute(values)
      return found === undefined ? { rowCount: 0 } : insert.execute({ ...values, ...found })
    },
  }
}

/** What the sweep runs: deletions bounded by `limit`, and a slice of the grants in the order of their key. */
export function prepareSweep(db: NodePgDatabase) {
  const expired = (table: PgTable, key: PgColumn, expiresAt: PgColumn) =>
    db.delete(table).where(
      inArray(
        key,
        db
          .select({ key })
          .from(table)
          .where(lte(expiresAt, value('now')))
          .limit(value('limit')),
      ),
    )
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
  const endOfGrant = sql<number>`coalesce(${grants.expiresAt}, ${grants.refreshExpiresAt})`.mapWith(
    grants.expiresAt,
  )
  return {
    interactions: expired(interactions, interactions.id, interactions.expiresAt).prepare(
      'sweep_interactions',
    ),
    sessions: expired(sessions, sessions.id, sessions.idleExpiresAt).prepare('sweep_sessions'),
    oneTimeLinks: expired(oneTimeLinks, oneTimeLinks.id, oneTimeLinks.expiresAt).prepare('sweep_links'),
    throttles: expired(throttles, throttles.key, throttles.expiresAt).prepare('sweep_throttles'),
    revokedAccessTokens: db
      .delete(tokens)
      .where(
        sql`(grant_id, token_id) in (select grant_id, token_id from ${tokens}
          where expires_at <= ${value('now')} limit ${value('limit')})`,
      )
      .prepare('sweep_revoked'),
    unusedClients: db.delete(clients).where(inArray(clients.id, unused)).prepare('sweep_unused'),
    idleClients: db.delete(clients).where(inArray(clients.id, idle)).prepare('sweep_idle'),
    rejections: db.delete(rejections).where(inArray(rejections.seq, oldest)).prepare('sweep_refusals'),
    auditEvents: db.delete(auditEvents).where(outdated).prepare('sweep_audit'),
    sliceOfGrants: db
      .select({ id: grants.id, expiresAt: endOfGrant, revokedAt: grants.revokedAt })
      .from(grants)
      .where(gt(grants.id, value('after')))
      .orderBy(asc(grants.id))
      .limit(value('limit'))
      .prepare('sweep_slice'),
    grants: db
      .delete(grants)
      .where(and(sql`${grants.id} = any(${value('ids')})`, lte(endOfGrant, value('now'))))
      .prepare('sweep_grants'),
  }
}

/** The number of a client or a user, by which grants name it. */
function seqOf(table: typeof clients | typeof accounts, name: string): SQL {
  return sql`(select ${table.seq} from ${table} where ${table.id} = ${value(name)})`
}

/** A filter that is null lets everything through. */
function letThrough(column: PgColumn, name: string) {
  return sql`(cast(${value(name)} as text) is null or ${column} = ${value(name)})`
}

/** A placeholder for every column but the number a row is given, named after its member. */
function row<T extends PgTable>(table: T): PgInsertValue<T> {
  const placeholders: Record<string, Placeholder> = {}
  for (const [member, { hasDefault }] of Object.entries(getTableColumns(table))) {
    if (!hasDefault) placeholders[member] = value(member)
  }
  // The loop names exactly the columns of T; the compiler cannot follow it.
  return placeholders as PgInsertValue<T>
}

/** The same, for an update. */
function settings<T extends PgTable>(table: T): PgUpdateSetSource<T> {
  // Drizzle takes placeholders in `set` as in `values`, though its types leave them out.
  return row(table) as PgUpdateSetSource<T>
}
