import { hash } from 'node:crypto'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres/driver'
import type pg from 'pg'
import type { Write } from '../../domain/decision.ts'
import type { StoreOptions } from '../open.ts'
import {
  auditFilterRow,
  consentOfKey,
  grantKey,
  grantOfTokenValues,
  throttleKey,
  toAuditEvent,
  toClient,
  toConnections,
  toConsent,
  toGrant,
  toGrantOfToken,
  toInteraction,
  toKey,
  toLink,
  toPasskey,
  toRejection,
  toSecondFactor,
  toSession,
  toThrottle,
  toUser,
} from '../rows.ts'
import { stepsOf } from '../steps.ts'
import {
  type AuditFilter,
  type ConnectionPage,
  type ListableKind,
  lockOf,
  type NewestGrants,
  type OwnedKind,
  type RecordKind,
  type Records,
  type Store,
  StoreUnavailable,
} from '../store.ts'
import { sweepBy } from '../sweep.ts'
import { readContents, writeContents } from './contents.ts'
import { isConflict, translate } from './faults.ts'
import { createKeyQueue } from './key-queue.ts'
import { longestStatement, openPool } from './open-pool.ts'
import { prepareLists, prepareLoads, prepareSweep, prepareWrites } from './statements.ts'
import { sweepSteps } from './sweep-steps.ts'

type Loads = { readonly [K in RecordKind]: (key: string) => Promise<Records[K] | undefined> }
type OwnLists = { readonly [K in OwnedKind]: (userId: string) => Promise<readonly Records[K][]> }
type Lists = { readonly [K in ListableKind]: () => Promise<readonly Records[K][]> }

/** How often a transaction that lost against another is tried in all. */
const attempts = 5
/** The longest use of a connection that reads the whole store: a command whose user sees it wait. */
const longestMilliseconds = 3_600_000

/** The store in a PostgreSQL database: one transaction a decision, under a lock on the key it decides about. */
export async function openPostgresStore(url: string, options: Required<StoreOptions>): Promise<Store> {
  const pool = await openPool(url, options)
  const connectionOf = connections()
  const inTurn = createKeyQueue(options.waitMilliseconds)
  // Longer than the server gives a statement, which is what ends it as a rule.
  const loanMilliseconds = longestStatement(options.waitMilliseconds) + 1000

  async function withConnection<T>(
    work: (connection: Connection, client: pg.PoolClient) => Promise<T>,
    milliseconds = loanMilliseconds,
  ): Promise<T> {
    const client = await pool.connect().catch((fault) => {
      throw new StoreUnavailable(fault)
    })
    let broken = true
    // A machine that vanished, or a commit that no standby confirms, would never respond.
    const overdue = setTimeout(() => {
      isOverdue = true
      client.release(true)
    }, milliseconds)
    let isOverdue = false
    try {
      const result = await work(connectionOf(client), client)
      broken = false
      return result
    } catch (fault) {
      const error = translate(fault)
      broken = error instanceof StoreUnavailable
      throw error
    } finally {
      clearTimeout(overdue)
      if (!isOverdue) client.release(broken)
    }
  }

  async function inTransaction<T>(begin: string, work: (connection: Connection) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await withConnection((connection, client) =>
          transaction(client, begin, () => work(connection)),
        )
      } catch (fault) {
        if (!isConflict(fault)) throw fault
        if (attempt === attempts) throw new StoreUnavailable(fault)
      }
    }
  }

  const sweep = sweepBy(sweepSteps((work) => inTransaction('begin', (connection) => work(connection.sweep))))

  return {
    find: (kind, key) => withConnection(({ find }) => find[kind](key)),
    list: (kind) => withConnection(({ list }) => list[kind]()),
    listOf: (kind, userId) => withConnection(({ listOf }) => listOf[kind](userId)),
    connections: (userId, page) => withConnection(({ connections }) => connections(userId, page)),
    grantsOf: (userId, clientId, newest) =>
      withConnection(({ grantsOf }) => grantsOf(userId, clientId, newest)),
    transact: async (kind, key, decide) => {
      const decision = await inTurn(lockOf(kind, key), () =>
        inTransaction(beginLocked(lockOf(kind, key)), async ({ transact, apply }) => {
          const decided = decide(await transact[kind](key))
          await apply(decided.writes)
          return decided
        }),
      )
      if ('rejection' in decision) throw decision.rejection
      return decision.result
    },
    write: (...writes) => inTransaction('begin', ({ apply }) => apply(writes)),
    activity: async () => {
      const { totalCount: total, idleCount: idle, waitingCount: waiting } = pool
      return {
        ...(sweep.livingGrants !== undefined && { activeGrants: sweep.livingGrants }),
        refusalsKept: await withConnection(({ refusalsKept }) => refusalsKept()),
        connections: { total, idle, waiting },
      }
    },
    population: () => withConnection(({ population }) => population()),
    contents: () =>
      withConnection(
        (_, client) =>
          transaction(client, 'begin isolation level repeatable read', () => readContents(client)),
        longestMilliseconds,
      ),
    replace: (contents) =>
      withConnection(
        (_, client) => transaction(client, 'begin', () => writeContents(client, contents)),
        longestMilliseconds,
      ),
    audit: (filter) => withConnection(({ audit }) => audit(filter)),
    sweep: (bounds) => sweep.run(bounds),
    ping: () => withConnection(async (_, client) => void (await client.query('select 1'))),
    close: async () => {
      if (!pool.ending) await pool.end()
    },
  }
}

/**
 * Decisions of all processes about one key wait for each other, also while there is no row to lock. The lock is taken before the read,
 * so that the read's snapshot shows everything earlier decisions wrote, in other tables too.
 */
function beginLocked(name: string): string {
  const lock = hash('sha256', name, 'buffer').readBigInt64BE()
  return `begin; select pg_advisory_xact_lock(${lock})`
}

async function transaction<T>(client: pg.PoolClient, begin: string, work: () => Promise<T>): Promise<T> {
  try {
    await client.query(begin)
    const result = await work()
    await client.query('commit')
    return result
  } catch (fault) {
    // A connection on which even this fails is not used again: `fault` says why.
    await client.query('rollback').catch(() => undefined)
    throw fault
  }
}

type Connection = ReturnType<typeof connectionOn>

/** Prepared statements belong to a connection of the pool: made at its first use, forgotten with it. */
function connections(): (client: pg.PoolClient) => Connection {
  const known = new WeakMap<pg.PoolClient, Connection>()
  return (client) => {
    const connection = known.get(client) ?? connectionOn(drizzle(client))
    known.set(client, connection)
    return connection
  }
}

function connectionOn(db: NodePgDatabase) {
  const lists = prepareLists(db)
  return {
    find: loadsOf(prepareLoads(db, 'find'), lists),
    transact: loadsOf(prepareLoads(db, 'transact'), lists),
    list: listsOf(lists),
    listOf: ownListsOf(lists),
    connections: async (userId: string, page: ConnectionPage) =>
      toConnections(await lists.connections.execute({ userId, ...page })),
    grantsOf: async (userId: string, clientId: string, newest: NewestGrants) =>
      (await lists.newestGrants.execute({ userId, clientId, ...newest })).flatMap(
        (row) => toGrant(row) ?? [],
      ),
    audit: async (filter: AuditFilter) => {
      const statement = filter.userId === undefined ? lists.audit : lists.auditOf
      return (await statement.execute(auditFilterRow(filter))).map(toAuditEvent).reverse()
    },
    apply: applier(prepareWrites(db)),
    refusalsKept: async () => Number((await lists.refusalsKept.execute())[0]?.count ?? 0),
    population: async () => {
      const isEmpty = (await lists.somebody.execute()).length === 0
      return { isEmpty, seeded: (await lists.seededUsers.execute()).map(({ username }) => username) }
    },
    sweep: prepareSweep(db),
  }
}

function loadsOf(loads: ReturnType<typeof prepareLoads>, lists: ReturnType<typeof prepareLists>): Loads {
  return {
    client: (key) => first(text(key) && loads.client.execute({ key }), toClient),
    user: (key) => first(text(key) && loads.user.execute({ key }), toUser),
    userByLogin: (key) => first(text(key) && loads.userByLogin.execute({ key }), toUser),
    // The account first: in a transaction its row is locked, and only then is the rest read.
    userCredentials: async (key) => {
      const user = await first(text(key) && loads.user.execute({ key }), toUser)
      if (user === undefined) return undefined
      const secondFactor = await first(loads.secondFactor.execute({ key }), toSecondFactor)
      return {
        user,
        passkeys: (await lists.passkeysOf.execute({ userId: key })).map(toPasskey),
        ...(secondFactor !== undefined && { secondFactor }),
        sessions: (await lists.sessionsOf.execute({ userId: key })).map(toSession),
      }
    },
    session: (key) => first(text(key) && loads.session.execute({ key }), toSession),
    passkey: (key) => first(text(key) && loads.passkey.execute({ key }), toPasskey),
    secondFactor: (key) => first(text(key) && loads.secondFactor.execute({ key }), toSecondFactor),
    link: (key) => first(text(key) && loads.link.execute({ key }), toLink),
    interaction: (key) => first(text(key) && loads.interaction.execute({ key }), toInteraction),
    consent: (key) => first(text(key) && loads.consent.execute(consentOfKey(key)), toConsent),
    grant: (id) => {
      const key = grantKey(id)
      return first(key && loads.grant.execute({ key }), toGrant)
    },
    grantOfToken: (key) => {
      const values = text(key) && grantOfTokenValues(key)
      return first(values && loads.grantOfToken.execute(values), toGrantOfToken)
    },
    throttle: (key) => first(loads.throttle.execute({ key: throttleKey(key) }), toThrottle),
    key: (key) => first(text(key) && loads.key.execute({ key }), toKey),
    keyRing: async () => (await loads.keyRing.execute()).map(toKey),
    rejection: (key) => first(text(key) && loads.rejection.execute({ key }), toRejection),
  }
}

/** No text in PostgreSQL contains U+0000; asking for one is an error there, and a record not found here. */
function text(key: string): true | undefined {
  return key.includes('\0') ? undefined : true
}

async function first<Row, T>(
  rows: Promise<Row[]> | undefined,
  toRecord: (row: Row) => T | undefined,
): Promise<T | undefined> {
  const row = (await rows)?.[0]
  return row === undefined ? undefined : toRecord(row)
}

function listsOf(lists: ReturnType<typeof prepareLists>): Lists {
  return {
    client: async () => (await lists.client.execute()).map(toClient),
    user: async () => (await lists.user.execute()).map(toUser),
    key: async () => (await lists.key.execute()).map(toKey),
  }
}

function ownListsOf(lists: ReturnType<typeof prepareLists>): OwnLists {
  return {
    session: async (userId) => (await lists.sessionsOf.execute({ userId })).map(toSession),
    passkey: async (userId) => (await lists.passkeysOf.execute({ userId })).map(toPasskey),
    consent: async (userId) => (await lists.consentsOf.execute({ userId })).map(toConsent),
    grant: async (userId) => (await lists.grantsOf.execute({ userId })).flatMap((row) => toGrant(row) ?? []),
  }
}

function applier(statements: ReturnType<typeof prepareWrites>): (writes: readonly Write[]) => Promise<void> {
  return async (writes) => {
    for (const step of writes.flatMap(stepsOf)) {
      const { rowCount } = await statements[step.statement].execute({ ...step.values })
      if (step.exact && rowCount !== 1) throw step.exact(step.statement)
    }
  }
}
