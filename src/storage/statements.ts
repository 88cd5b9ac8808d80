import {
  and,
  type Column,
  desc,
  eq,
  type GetColumnData,
  getTableColumns,
  gt,
  gte,
  is,
  isNull,
  lt,
  lte,
  ne,
  or,
  Placeholder,
  type Query,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { ClientOrigin } from '../domain/model.ts'
import { keptChallengeBytes } from '../domain/pkce.ts'
import { useKind } from '../domain/record.ts'
import type { Tables } from './tables.ts'

/*
 * Every statement, for both databases. Drizzle builds each text once in a process; the adapters run them on their
 * drivers, because Drizzle takes as long to run a prepared statement as the database does.
 */

/** What differs between the databases. */
export interface Dialect {
  readonly tables: Tables
  /** Builds statements and runs none. */
  readonly builder: BetterSQLite3Database
  /** The function that returns the larger of two numbers. */
  readonly greatest: 'max' | 'greatest'
  /** Returns a column of JSON, for operators. */
  readonly jsonOf: (column: SQLiteColumn) => SQL
  /** Returns a column of JSON in which members are replaced by those of a JSON object. */
  readonly merged: (column: SQLiteColumn, members: Placeholder) => SQL
  /** Whether a column of JSON has the same members as a text. */
  readonly sameJson: (column: SQLiteColumn, text: Placeholder) => SQL
  /** What locks the rows of a subquery, which others may lock the same way. */
  readonly forShare: 'for share' | ''
  /** What stands before `offset`, for all rows after it. */
  readonly noLimit: 'limit -1' | ''
  /** Selects the texts of a JSON array. */
  readonly textsIn: (array: Placeholder) => SQL
  /** How a column of bytes is read. */
  readonly readBytes: (column: SQL) => SQL
  /** Selects a member of an object in JSON, as text. */
  readonly textAt: (json: SQL, object: string, member: string) => SQL
  /** Converts the id of a grant to its primary key. */
  readonly grantKey: (id: SQL) => SQL
  /** Whether what a grant was exchanged for has ended, where no statement can follow the exchanges. */
  readonly restsOnEnded?: (id: SQLiteColumn) => SQL
  /** Returns the placeholder of the value with this number, from 1. */
  readonly place: (number: number) => string
  /** Returns what keeps others from writing to a table while it is replaced. */
  readonly lock?: (table: string) => string
  /** Returns what lets a table that numbers its rows go on after the last of them. */
  readonly renumber?: (table: string) => string
}

/** What is selected, by the member it becomes. */
export type Fields = Readonly<Record<string, SQLiteColumn | SQL>>

type RowOf<F extends Fields> = {
  [M in keyof F]: F[M] extends SQLiteColumn ? GetColumnData<F[M]> : F[M] extends SQL<infer T> ? T : never
}

/** A statement that reads rows. */
export interface Read<Row = unknown> {
  readonly query: Built
  readonly fields: Fields
  /** The tables whose rows a transaction locks when it reads them to decide about them. */
  readonly locks: readonly SQLiteTable[]
  /** Shared: another may lock them the same way at the same time. */
  readonly lock: 'update' | 'share'
  /** Never set: the type of the rows. */
  readonly row?: Row
}

export interface Built {
  toSQL(): Query
}

/** Which rows a statement reads, and in what order. */
interface Selection {
  readonly where?: SQL | undefined
  readonly order?: readonly (SQL | SQLiteColumn)[]
  readonly limit?: number | Placeholder
  readonly offset?: Placeholder
  readonly locks?: Read['locks']
  readonly lock?: Read['lock']
}

type Reads = ReturnType<typeof buildReads>
export type ReadName = keyof Reads
export type RowOfRead<N extends ReadName> = NonNullable<Reads[N]['row']>
export type WriteName = keyof ReturnType<typeof buildWrites>

const value = sql.placeholder

/**
 * Returns what binds values to the placeholders of a query, by their names.
 * @param convert Turns a value into one that the driver accepts.
 */
export function binder(
  { params }: Query,
  convert: (value: unknown) => unknown = (value) => value,
): (values: object) => unknown[] {
  const names = params.map((param) => (is(param, Placeholder) ? param.name : undefined))
  return (values) => {
    const members = values as Readonly<Record<string, unknown>> // any object has members by names
    return names.map((name, at) => (name === undefined ? params[at] : convert(members[name])))
  }
}

// Written like the conditions of their indexes.
const neverUsed = sql`origin = 'registered' and used_at = issued_at`
const used = sql`origin = 'registered' and used_at > issued_at`
/** The age of a client, and another one to compare it with. */
const ageOfClient = sql`(issued_at, seq)`
const agedAs = sql`(cast(${value('issuedAt')} as bigint), cast(${value('seq')} as bigint))`

/** Builds every statement that reads. */
export function buildReads(dialect: Dialect) {
  const { tables, builder, readBytes, textsIn } = dialect
  const { clients, users, sessions, grants, revokedAccessTokens, keys, records, rejections, auditEvents } =
    tables

  const read = <F extends Fields>(
    fields: F,
    from: SQLiteTable | SQL,
    selection: Selection,
  ): Read<RowOf<F>> => {
    const { where, order = [], limit, offset, locks = [], lock = 'update' } = selection
    const named = Object.entries(fields).map(([member, field]) => {
      const column = isBytes(field) ? readBytes(sql`${field}`) : sql`${field}`
      return [member, column.as(member)] as const
    })
    const query = builder
      .select(Object.fromEntries(named))
      .from(from as SQLiteTable) // a subquery is read like a table
      .where(where)
      .orderBy(...order)
      .$dynamic()
    if (limit !== undefined) query.limit(limit)
    if (offset !== undefined) query.offset(offset)
    return { query, fields, locks, lock }
  }
  /** Reads whole rows to decide about them. */
  const find = <T extends SQLiteTable>(table: T, selection: Selection) =>
    read(columnsOf(table), table, { locks: [table], ...selection })
  /** Reads whole rows to show them. */
  const list = <T extends SQLiteTable>(table: T, selection: Selection) =>
    read(columnsOf(table), table, selection)

  const { clientSeq, redirectUriSent, codeChallenge, nonce, ...others } = getTableColumns(grants)
  const { id, authTimeOwed, absoluteExpiresAt, ...ofAnyToken } = others
  const { userSeq } = ofAnyToken
  // NULL when the row of the client or the user is gone. A join takes as long.
  const tokenFields = {
    ...ofAnyToken,
    clientId: sql<string | null>`(select ${clients.id} from ${clients} where ${clients.seq} = ${clientSeq})`,
    userId: sql<string | null>`(select ${users.id} from ${users} where ${users.seq} = ${userSeq})`,
    userLockedAt: sql<
      number | null
    >`(select ${users.lockedAt} from ${users} where ${users.seq} = ${userSeq})`,
    clientLockedAt: sql<
      number | null
    >`(select ${clients.lockedAt} from ${clients} where ${clients.seq} = ${clientSeq})`,
  }
  const ofCode = { redirectUriSent, codeChallenge, nonce, authTimeOwed, absoluteExpiresAt }
  const fieldsOfGrant = { ...tokenFields, ...ofCode }
  const grantFields = { id, ...fieldsOfGrant }
  // Of the one token alone: a client may revoke thousands of a grant. And no `now`: the id of an expired token does no
  // harm until it is swept. By the value of the key, not by that of the row: so a distributed table knows where it is.
  const revokedToken = sql<string | null>`(select ${revokedAccessTokens.tokenId} from ${revokedAccessTokens}
    where ${revokedAccessTokens.grantId} = ${value('key')} and ${revokedAccessTokens.tokenId} = ${value('tokenId')})`
  const client = {
    clientOrigin: sql<ClientOrigin | null>`(select ${clients.origin} from ${clients} where ${clients.seq} = ${clientSeq})`,
    clientMetadata: sql<
      string | null
    >`(select ${clients.metadata} from ${clients} where ${clients.seq} = ${clientSeq})`,
  }
  const thisGrant = { where: eq(grants.id, value('key')), locks: [grants] }
  const ownerOf = (seq: SQLiteColumn) =>
    sql`(select ${seq} from ${grants} where ${grants.id} = ${value('key')})`
  const ofUser = eq(userSeq, seqOf(users, 'userId'))
  const ofClient = sql`(cast(${value('clientId')} as text) is null or ${clientSeq} = ${seqOf(clients, 'clientId')})`

  const limit = value('limit')
  // By the number of the row: a page costs the same wherever it begins.
  const pageOfUsers = (only?: SQL) =>
    read({ ...columnsOf(users), seq: users.seq }, users, {
      where: and(gt(users.seq, value('after')), only),
      order: [users.seq],
      limit,
    })
  const usersFrom = (key: typeof users.username | typeof users.email) =>
    list(users, {
      where: and(gte(key, value('from')), lte(key, value('end'))),
      order: [key],
      limit,
    })
  const audit = (about: SQL) =>
    list(auditEvents, {
      where: and(
        about,
        gte(auditEvents.at, value('since')),
        letThrough(auditEvents.name, 'name'),
        letThrough(auditEvents.clientId, 'clientId'),
      ),
      order: [desc(auditEvents.seq)],
      limit,
    })

  /** A page of the log, newest first. It looks at a part of it only, however few events match. */
  const auditPage = (about: SQL) =>
    read({ ...columnsOf(auditEvents), seq: auditEvents.seq }, auditEvents, {
      where: and(
        about,
        lt(auditEvents.seq, value('before')),
        gte(auditEvents.seq, value('from')),
        gte(auditEvents.at, value('since')),
        lte(auditEvents.at, value('until')),
        letThrough(auditEvents.name, 'name'),
        letThrough(auditEvents.clientId, 'clientId'),
      ),
      order: [desc(auditEvents.seq)],
      limit,
    })

  // What a grant rests on, with the numbers of its client and user. On PostgreSQL the rows stay locked until the
  // commit: what ends them waits and then finds the grant, or was first, and its commit is waited for here.
  const owners = { clientSeq: sql<number>`coalesce(${seqOf(clients, 'clientId')}, 0)` }
  const ofSession = { ...owners, userSeq: users.seq }
  const isSignedIn = and(
    eq(users.id, value('userId')),
    isNull(users.lockedAt),
    eq(sessions.id, value('sessionId')),
    eq(sessions.userId, users.id),
  )
  const isConsent = and(eq(records.kind, value('kind')), eq(records.id, value('consentId')))

  return {
    client: find(clients, { where: eq(clients.id, value('key')) }),
    actingClient: read({ ...columnsOf(clients), clientSeq: clients.seq }, clients, {
      where: eq(clients.id, value('key')),
      locks: [clients],
      lock: 'share',
    }),
    clients: list(clients, { order: [clients.issuedAt, clients.id] }),
    operatorClients: list(clients, { where: sql`origin = 'integration'` }),
    registeredClients: list(clients, { where: sql`origin = 'registered'`, limit: 1000 }),
    user: find(users, { where: eq(users.id, value('key')) }),
    userByLogin: find(users, {
      where: or(eq(users.username, value('key')), eq(users.email, value('key'))),
      // A user name goes before an equal email address of another user.
      order: [desc(eq(users.username, value('key')))],
      limit: 1,
    }),
    users: list(users, { order: [users.createdAt, users.id] }),
    // By the number of the row: a page costs the same wherever it begins.
    pageOfClients: read({ ...columnsOf(clients), seq: clients.seq }, clients, {
      where: and(gt(clients.seq, value('after')), letThrough(clients.origin, 'only')),
      order: [clients.seq],
      limit,
    }),
    // The next older ones.
    sliceOfUnusedClients: read(
      { issuedAt: clients.issuedAt, seq: clients.seq, bytes: sql<number>`octet_length(metadata)` },
      clients,
      {
        where: sql`${neverUsed} and ${ageOfClient} < ${agedAs}`,
        order: [desc(clients.issuedAt), desc(clients.seq)],
        limit,
      },
    ),
    unusedClientsUntil: read({ id: clients.id }, clients, {
      where: sql`${neverUsed} and ${ageOfClient} <= ${agedAs}`,
      order: [clients.issuedAt, clients.seq],
      limit,
      locks: [clients],
    }),
    idleClients: read({ id: clients.id }, clients, {
      where: sql`${used} and ${clients.usedAt} < ${value('since')}`,
      limit,
      locks: [clients],
    }),
    pageOfUsers: pageOfUsers(),
    // The exact conditions of their indexes.
    pageOfLockedUsers: pageOfUsers(sql`locked_at is not null`),
    pageOfUnlockedUsers: pageOfUsers(sql`locked_at is null`),
    usersByName: usersFrom(users.username),
    usersByEmail: usersFrom(users.email),
    anyUser: read({ id: users.id }, users, { limit: 1 }),
    // The exact condition of the index, so that only its rows are read.
    seededUsers: read({ username: users.username }, users, { where: sql`seeded`, order: [users.username] }),
    session: find(sessions, { where: eq(sessions.id, value('key')) }),
    sessionsOf: list(sessions, {
      where: eq(sessions.userId, value('userId')),
      order: [sessions.createdAt, sessions.id],
    }),
    sessionsFrom: list(sessions, { where: gt(sessions.id, value('after')), order: [sessions.id], limit }),
    record: read({ body: records.body }, records, {
      where: and(eq(records.kind, value('kind')), eq(records.id, value('key'))),
      locks: [records],
    }),
    // The kind as an expression: SQLite would read all records of the kind by the primary key instead of those of the
    // user.
    recordsOf: read({ body: records.body }, records, {
      where: and(eq(records.userId, value('userId')), sql`${records.kind} || '' = ${value('kind')}`),
      order: [records.madeAt, records.id],
    }),
    recordsOfClient: read({ body: records.body }, records, {
      where: and(eq(records.clientId, value('clientId')), sql`${records.kind} || '' = ${value('kind')}`),
      limit,
    }),
    recordsOfKind: read({ body: records.body }, records, {
      where: and(eq(records.kind, value('kind')), lte(records.madeAt, value('madeUntil'))),
      order: [records.madeAt, records.id],
      limit,
    }),
    recordsInTurn: read({ body: sql<string>`body` }, recordsInTurn(tables), {
      where: sql`turn <= ${value('ofClient')}`,
      order: [sql`turn`, sql`made_at`, sql`id`],
      limit,
    }),
    // By the primary key.
    recordsFrom: read({ body: records.body }, records, {
      where: and(
        eq(records.kind, value('kind')),
        gt(records.id, value('after')),
        lte(records.id, value('end')),
      ),
      order: [records.id],
      limit,
    }),
    grant: read(fieldsOfGrant, grants, thisGrant),
    grantOfToken: read({ ...tokenFields, ...client, revokedToken }, grants, thisGrant),
    userOfGrant: list(users, { where: sql`${users.seq} = ${ownerOf(grants.userSeq)}` }),
    clientOfGrant: list(clients, { where: sql`${clients.seq} = ${ownerOf(grants.clientSeq)}` }),
    grantsOf: read(grantFields, grants, { where: ofUser, order: [grants.id] }),
    // No index by client: the hot table would pay for it at every insert.
    grantsFrom: read(grantFields, grants, {
      where: and(gt(grants.id, value('after')), lte(grants.id, value('end')), ofClient),
      order: [grants.id],
      limit,
    }),
    grantsOfFrom: read(grantFields, grants, {
      where: and(ofUser, gt(grants.id, value('after')), ofClient),
      order: [grants.id],
      limit,
    }),
    grantAfter: read({ id: grants.id }, grants, {
      where: gt(grants.id, value('after')),
      order: [grants.id],
      limit: 1,
      offset: value('skipped'),
    }),
    newestGrants: read(grantFields, grants, {
      where: sql`${grants.id} in (select id from (select ${grants.id} as id,
        row_number() over (partition by ${grants.clientSeq} order by ${grants.id} desc) as place from ${grants}
        where ${ofUser} and ${isValid(dialect)} and ${grants.clientSeq} in (select ${clients.seq} from ${clients}
        where ${clients.id} in (${textsIn(value('clientIds'))}))) as newest where place <= ${limit})`,
      order: [desc(grants.id)],
    }),
    connections: read(
      {
        clientId: sql<string>`client_id`,
        grants: sql<number>`grants`,
        remembered: sql<number>`remembered`,
        total: sql<number>`total`,
      },
      connectionsOf(dialect),
      { order: [sql`used_at desc`, sql`client_id`], limit, offset: value('offset') },
    ),
    ownersOfGrant: read(
      {
        ...owners,
        userSeq: sql<
          number | null
        >`case when cast(${value('userId')} as text) is not null then coalesce(${seqOf(users, 'userId')}, 0) end`,
      },
      sql`(select 1) as one`,
      {},
    ),
    sessionOfGrant: read(ofSession, sql`${users}, ${sessions}`, {
      where: isSignedIn,
      locks: [users, sessions],
      lock: 'share',
    }),
    consentOfGrant: read({ ...ofSession, body: records.body }, sql`${users}, ${sessions}, ${records}`, {
      where: and(isSignedIn, isConsent),
      locks: [users, sessions, records],
      lock: 'share',
    }),
    sliceOfGrants: read(
      {
        id: grants.id,
        expiresAt: endOf(grants),
        revoked: sql<number>`case when ${isRevoked(dialect)} then 1 else 0 end`,
      },
      grants,
      { where: gt(grants.id, value('after')), order: [grants.id], limit },
    ),
    key: find(keys, { where: eq(keys.id, value('key')) }),
    keys: find(keys, { order: [keys.createdAt, keys.id] }),
    rejection: find(rejections, { where: eq(rejections.id, value('key')) }),
    rejectionFrom: find(rejections, {
      where: and(gte(rejections.id, value('reference')), lt(rejections.id, value('end'))),
    }),
    newestRejections: read({ ...columnsOf(rejections), seq: rejections.seq }, rejections, {
      where: lt(rejections.seq, value('before')),
      order: [desc(rejections.seq)],
      limit,
    }),
    rejectionCount: read(
      // By the numbers of the first and the last: nothing is counted.
      { count: sql<number>`(select max(seq) from ${rejections}) - ${rejections.seq} + 1` },
      rejections,
      { order: [rejections.seq], limit: 1 },
    ),
    audit: audit(letThrough(auditEvents.userId, 'userId')),
    signInsByDay: read(
      { day: sql<number>`day`, count: sql<number>`count` },
      sql`(select ${auditEvents.at} / 86400 as day, count(*) as count from ${auditEvents}
        where ${auditEvents.seq} > (select max(seq) from ${auditEvents}) - ${value('most')}
        and ${auditEvents.name} = 'sign-in' and ${auditEvents.at} >= ${value('since')} group by 1) as sign_ins`,
      { order: [sql`day`] },
    ),
    // Grants of devices, and of clients that act for themselves, have no redirect URI.
    challengesOf: read(
      { clientId: sql<string>`client_id`, codes: sql<number>`codes`, challenges: sql<number>`challenges` },
      sql`(select ${clients.id} as client_id, count(*) as codes, count(code_challenge) as challenges
        from (select client_seq, redirect_uri, code_challenge from ${grants} order by id desc limit ${value('most')})
        as newest join ${clients} on seq = client_seq where redirect_uri <> '' group by 1) as counted`,
      { order: [sql`client_id`] },
    ),
    counts: read(
      {
        users: atMost(sql`select 1 from ${users}`),
        clients: atMost(sql`select 1 from ${clients}`),
        groups: atMost(sql`select 1 from ${records} where ${records.kind} = 'group'`),
      },
      sql`(select 1) as one`,
      {},
    ),
    auditPage: auditPage(letThrough(auditEvents.userId, 'userId')),
    auditPageOf: auditPage(eq(auditEvents.userId, value('userId'))),
    auditOfFrom: read({ ...columnsOf(auditEvents), seq: auditEvents.seq }, auditEvents, {
      where: and(eq(auditEvents.userId, value('userId')), gt(auditEvents.seq, value('after'))),
      order: [auditEvents.seq],
      limit,
    }),
    firstAuditFrom: read({ at: auditEvents.at }, auditEvents, {
      where: gte(auditEvents.seq, value('from')),
      order: [auditEvents.seq],
      limit: 1,
    }),
    lastAudit: read(
      { seq: sql<number | null>`(select max(seq) from ${auditEvents})` },
      sql`(select 1) as one`,
      {},
    ),
    // By user as a statement of its own: only so can it use their index.
    auditOf: audit(eq(auditEvents.userId, value('userId'))),
  }
}

/** Builds every statement that writes, those of the sweep at the end. */
export function buildWrites(dialect: Dialect) {
  const { tables, builder, greatest, noLimit, jsonOf, merged } = dialect
  const { clients, users, sessions, grants, revokedAccessTokens, keys, records, rejections, auditEvents } =
    tables
  const insert = (table: SQLiteTable) => builder.insert(table).values(placeholders(table))
  // The key is not written: a row of a distributed table stays where it is.
  const update = (table: SQLiteTable, ...key: readonly SQLiteColumn[]) =>
    builder
      .update(table)
      .set(placeholders(table, key))
      .where(and(...key.map((column) => eq(column, value(column.name)))))
  const remove = (table: SQLiteTable, where: SQL | undefined) => builder.delete(table).where(where)
  const isRecord = and(eq(records.kind, value('kind')), eq(records.id, value('id')))
  const isActive = and(eq(grants.id, value('grantId')), isNull(grants.revokedAt))
  const activeOf = and(eq(grants.userSeq, seqOf(users, 'userId')), isNull(grants.revokedAt))
  const ofConnection = eq(grants.clientSeq, seqOf(clients, 'clientId'))
  const next = {
    seq: sql`${grants.seq} + 1`,
    rotatedAt: sql`${value('at')}`,
    refreshExpiresAt: sql`${value('refreshExpiresAt')}`,
    expiresAt: sql`${value('expiresAt')}`,
  }
  const revoke = (which: SQL | undefined) =>
    builder
      .update(grants)
      .set({ revokedAt: sql`${value('at')}`, revokedBy: sql`${value('rule')}` })
      .where(which)
  /** Deletes at most `limit` rows that match, by their key. */
  const sweep = (table: SQLiteTable, key: readonly SQLiteColumn[], due: SQL) => {
    const names = sql.join([...key], sql`, `)
    return remove(
      table,
      sql`(${names}) in (select ${names} from ${table} where ${due} limit ${value('limit')})`,
    )
  }
  return {
    'insert client': insert(clients),
    'insert user': insert(users),
    'insert session': insert(sessions),
    'insert key': insert(keys),
    'insert rejection': insert(rejections),
    'insert auditEvent': insert(auditEvents),
    'insert record': insert(records),
    'put record': insert(records).onConflictDoUpdate({
      target: [records.kind, records.id],
      set: placeholders(records, [records.kind, records.id]),
    }),
    'update client': update(clients, clients.id),
    'update user': update(users, users.id),
    'update key': update(keys, keys.id),
    'update record': update(records, records.kind, records.id),
    'delete client': remove(clients, eq(clients.id, value('key'))),
    removeUser: remove(users, eq(users.id, value('userId'))),
    endSession: remove(sessions, eq(sessions.id, value('sessionId'))),
    'delete key': remove(keys, eq(keys.id, value('key'))),
    'delete record': remove(records, isRecord),
    deleteRecordsOfKind: remove(records, eq(records.kind, value('kind'))),
    // As `recordsOf`.
    deleteRecords: remove(
      records,
      and(eq(records.userId, value('userId')), sql`${records.kind} || '' = ${value('kind')}`),
    ),
    deleteRecordsFrom: remove(
      records,
      and(eq(records.kind, value('kind')), gt(records.id, value('after')), lte(records.id, value('end'))),
    ),
    deleteRecordsOfUser: remove(records, eq(records.userId, value('userId'))),
    deleteRecordsOfClient: remove(records, eq(records.clientId, value('clientId'))),
    touchClient: builder
      .update(clients)
      .set({ usedAt: sql`${sql.raw(greatest)}(${value('at')}, ${clients.issuedAt} + 1)` })
      .where(eq(clients.id, value('clientId'))),
    learnPkce: builder
      .update(clients)
      .set({ metadata: merged(clients.metadata, value('members')) })
      .where(
        and(
          eq(clients.id, value('clientId')),
          sql`${jsonOf(clients.metadata)} ->> 'pkceAutoSince' is not null`,
          sql`${jsonOf(clients.metadata)} ->> 'pkceLearnedAt' is null`,
        ),
      ),
    extendSession: builder
      .update(sessions)
      .set({ idleExpiresAt: sql`${value('idleExpiresAt')}` })
      .where(eq(sessions.id, value('sessionId'))),
    copySession: builder.insert(sessions).select(
      builder
        .select({
          ...getTableColumns(sessions),
          id: sql<string>`${value('by')}`.as('id'),
          methods: sql<string>`${value('methods')}`.as('methods'),
        })
        .from(sessions)
        .where(eq(sessions.id, value('sessionId'))),
    ),
    endSessionsOf: remove(
      sessions,
      and(eq(sessions.userId, value('userId')), ne(sessions.id, value('except'))),
    ),
    insertGrant: insert(grants),
    insertGrantOfClient: insertOfClient(dialect),
    deleteOldestGrants: remove(
      grants,
      sql`${grants.id} in (select ${grants.id} from ${grants}
        where ${grants.userSeq} = ${seqOf(users, 'userId')} and ${ofConnection}
        and (coalesce(${grants.extra}, '') like ${sql.raw(exchanged)}) = ${value('isExchanged')}
        order by ${grants.id} desc ${sql.raw(noLimit)} offset ${value('stay')})`,
    ),
    redeemGrant: builder
      .update(grants)
      .set({
        ...next,
        nonce: sql`null`,
        codeChallenge: sql`substr(${grants.codeChallenge}, 1, ${sql.raw(String(keptChallengeBytes))})`,
      })
      .where(and(isActive, eq(grants.seq, 0))),
    rotateGrant: builder
      .update(grants)
      .set(next)
      .where(and(isActive, eq(grants.seq, value('fromSeq')))),
    extendGrant: builder
      .update(grants)
      .set({ refreshExpiresAt: next.refreshExpiresAt, expiresAt: next.expiresAt })
      .where(and(isActive, eq(grants.seq, value('seq')))),
    revokeGrant: revoke(isActive),
    revokeGrantsOf: revoke(activeOf),
    revokeGrantsOfConnection: revoke(and(activeOf, ofConnection)),
    // The members of `extra` are JSON, and `sid` is base64url: neither needs to be escaped.
    revokeGrantsOfSession: revoke(and(activeOf, ofConnection, sql`${grants.extra} like ${value('pattern')}`)),
    revokeAccessToken: insert(revokedAccessTokens).onConflictDoNothing(),

    sweepSessions: sweep(sessions, [sessions.id], lte(sessions.idleExpiresAt, value('now'))),
    sweepRecords: sweep(records, [records.kind, records.id], lte(records.expiresAt, value('now'))),
    // By the primary key.
    sweepUses: sweep(
      records,
      [records.kind, records.id],
      sql`${records.kind} = ${useKind} and ${records.id} < ${value('before')}`,
    ),
    sweepRevokedAccessTokens: sweep(
      revokedAccessTokens,
      [revokedAccessTokens.grantId, revokedAccessTokens.tokenId],
      lte(revokedAccessTokens.expiresAt, value('now')),
    ),
    sweepRejections: sweep(
      rejections,
      [rejections.seq],
      sql`${rejections.seq} <= (select max(seq) from ${rejections}) - ${value('kept')}`,
    ),
    // Looks at the first rows only: they are the oldest, and there is no index on their time.
    sweepAuditEvents: remove(
      auditEvents,
      sql`${auditEvents.seq} in (select seq from
        (select seq, at from ${auditEvents} order by seq limit ${value('limit')}) as first where at < ${value('since')})`,
    ),
    /** Those of a range of keys that have ended. */
    sweepGrants: remove(
      grants,
      and(gte(grants.id, value('first')), lte(grants.id, value('last')), lte(endOf(grants), value('now'))),
    ),
  } satisfies Record<string, Built>
}

/** Inserts a grant if its client is still as it was read: what changes that waits for the commit, or was first. */
function insertOfClient({ tables: { grants, clients }, builder, sameJson, forShare }: Dialect): Built {
  const values = Object.keys(getTableColumns(grants)).map((member) =>
    member === 'clientSeq' ? sql`client.seq` : sql`${value(member)}`,
  )
  return builder
    .insert(grants)
    .select(sql`select ${sql.join(values, sql`, `)} from (select ${clients.seq} as seq
    from ${clients} where ${clients.id} = ${value('clientId')} and ${clients.lockedAt} is null
    and ${sameJson(clients.metadata, value('clientMetadata'))} ${sql.raw(forShare)}) as client`)
}

/** The columns of a table that records have: its own number is the database's. */
function columnsOf<T extends SQLiteTable>(table: T): Omit<T['_']['columns'], 'seq'> {
  const members = Object.entries(getTableColumns(table)).filter(([, column]) => !numbersRows(column))
  return Object.fromEntries(members) as Omit<T['_']['columns'], 'seq'> // the same columns, one fewer
}

/** A placeholder for every column but the number a row is given and these, named after its member. */
function placeholders(table: SQLiteTable, except: readonly Column[] = []): Record<string, SQL> {
  const members = Object.entries(getTableColumns(table)).filter(
    ([, column]) => !numbersRows(column) && !except.includes(column),
  )
  return Object.fromEntries(members.map(([member]) => [member, sql`${value(member)}`]))
}

function numbersRows(column: Column): boolean {
  return column.name === 'seq' && column.primary
}

/** Whether a field is a column of bytes. */
export function isBytes(field: SQLiteColumn | SQL): boolean {
  return 'dataType' in field && field.dataType === 'buffer'
}

/** The number of a client or a user, by which grants name it. */
function seqOf(table: Tables['clients'] | Tables['users'], name: string): SQL {
  return sql`(select ${table.seq} from ${table} where ${table.id} = ${value(name)})`
}

/** A filter that is null lets everything through. */
function letThrough(column: SQLiteColumn | SQL, name: string): SQL {
  return sql`(cast(${value(name)} as text) is null or ${column} = ${value(name)})`
}

/** Counts rows up to `most`, so that many are no more work. */
function atMost(rows: SQL): SQL<number> {
  return sql<number>`(select count(*) from (${rows} limit ${value('most')}) as counted)`
}

/** When everything issued from a grant is expired. */
function endOf(grants: Tables['grants']): SQL<number> {
  return sql<number>`coalesce(${grants.expiresAt}, ${grants.refreshExpiresAt})`
}

function isValid(dialect: Dialect): SQL {
  return sql`not ${isRevoked(dialect)} and ${endOf(dialect.tables.grants)} > ${value('now')}`
}

/** How the members that few grants have begin the one that says which token was exchanged. */
const exchanged = `'%"exchangedFrom":{%'`

/**
 * Whether a grant was revoked, or the token that it was exchanged for, or one before that. A subject that is not stored
 * was deleted with its client or its user.
 */
function isRevoked(dialect: Dialect): SQL {
  const { id, revokedAt } = dialect.tables.grants
  const restsOnEnded = dialect.restsOnEnded?.(id) ?? followsToEnded(dialect)
  return sql`(${revokedAt} is not null or ${restsOnEnded})`
}

/** Follows the exchanges of a grant, to one that has ended. */
function followsToEnded({ tables: { grants, revokedAccessTokens }, textAt, grantKey }: Dialect): SQL {
  const subjectOf = (extra: SQL) =>
    sql`${grantKey(textAt(extra, 'exchangedFrom', 'grantId'))}, ${textAt(extra, 'exchangedFrom', 'tokenId')}`
  const above = sql.raw('above.extra')
  return sql`(coalesce(${grants.extra}, '') like ${sql.raw(exchanged)} and exists (
    with recursive subject(grant_id, token_id) as (
      select ${subjectOf(sql`${grants.extra}`)}
      union select ${subjectOf(above)} from subject join ${grants} as above on above.id = subject.grant_id
      where ${above} like ${sql.raw(exchanged)})
    select 1 from subject left join ${grants} as above on above.id = subject.grant_id
    left join ${revokedAccessTokens} as single
      on single.grant_id = subject.grant_id and single.token_id = subject.token_id
    where above.id is null or above.revoked_at is not null or single.token_id is not null))`
}

/** Numbers the records of a kind by client, in the order of their making. */
function recordsInTurn({ records }: Tables): SQL {
  const inOrder = sql`partition by ${records.clientId} order by ${records.madeAt}, ${records.id}`
  return sql`(select ${records.body} as body, ${records.madeAt} as made_at, ${records.id} as id,
    row_number() over (${inOrder}) as turn from ${records}
    where ${records.kind} = ${value('kind')} and ${records.madeAt} <= ${value('madeUntil')}) as record`
}

/**
 * Selects the connections of a user, counted in the database. A grant without a time of its own is an unredeemed
 * code, which is seconds old.
 */
function connectionsOf(dialect: Dialect): SQL {
  const { grants, clients, users, records } = dialect.tables
  const usedAt = sql`max(coalesce(${grants.rotatedAt}, ${grants.approvedAt}, cast(${value('now')} as bigint)))`
  const clientId = sql`(select ${clients.id} from ${clients} where ${clients.seq} = ${grants.clientSeq})`
  const granted = sql`select ${clientId} as client_id, count(*) as grants, ${usedAt} as used_at, 0 as remembered
    from ${grants} where ${grants.userSeq} = ${seqOf(users, 'userId')} and ${isValid(dialect)} group by ${grants.clientSeq}`
  // As `recordsOf`.
  const consented = sql`select ${records.clientId}, 0, ${records.madeAt}, 1 from ${records}
    where ${records.userId} = ${value('userId')} and ${records.kind} || '' = ${value('consent')}`
  return sql`(select client_id, cast(sum(grants) as bigint) as grants, max(used_at) as used_at,
    max(remembered) as remembered, count(*) over () as total from (${granted} union all ${consented}) as connection
    where client_id is not null group by client_id) as connection`
}
