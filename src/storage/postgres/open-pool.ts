import { DrizzleQueryError } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import { connectionFault } from '../../domain/server-url.ts'
import { type AppliedMigration, assertOurs, isServed, migrateAll, schemaState } from '../migrations.ts'
import { RecordExists, type StoreOptions, StoreUnavailable } from '../store.ts'
import { isDistributed } from './placement.ts'
import { codeOf, numbers } from './prepared.ts'

/** Any constant: held while migrating, so that servers starting together do it once. */
export const migrationLock = 0x6c796368

/**
 * A pool of at most so many connections to a migrated database.
 * @throws {Error} with one line for the operator, without the URL; its cause is a StoreUnavailable where the same can
 *   succeed a moment later.
 */
export async function openPool(
  url: string,
  { connections, waitMilliseconds }: Required<StoreOptions>,
): Promise<OpenPool> {
  const statementMilliseconds = longestStatement(waitMilliseconds)
  const pool = new pg.Pool({
    ...numbers,
    connectionString: url,
    application_name: 'lychgate',
    max: connections,
    connectionTimeoutMillis: waitMilliseconds,
    lock_timeout: waitMilliseconds,
    statement_timeout: statementMilliseconds,
    idle_in_transaction_session_timeout: 2 * statementMilliseconds,
    onConnect: prepareConnection,
    // Statements of a transaction are sent without waiting for the responses before.
    pipeline: true,
  })
  // A lost connection also fails the query that uses it; without a listener the process would end.
  pool.on('error', () => undefined)
  try {
    await assertUsable(pool)
    return { pool, isDistributed: await applyMigrations(pool) }
  } catch (fault) {
    await pool.end()
    throw new Error(`the PostgreSQL database cannot be used: ${connectionFault(url, fault)}`, {
      cause: translate(fault),
    })
  }
}

interface OpenPool {
  readonly pool: pg.Pool
  /** Its grants are on several machines. */
  readonly isDistributed: boolean
}

/** No statement runs longer, the server ends it: with whatever it waits for, and then some work. */
export function longestStatement(waitMilliseconds: number): number {
  return 2.5 * waitMilliseconds
}

async function prepareConnection(client: pg.ClientBase): Promise<void> {
  client.on('error', () => undefined)
  // A commit that is not on disk when it is acknowledged could come undone.
  await client.query(
    "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'",
  )
}

/**
 * Checks what a pooler between this process and the database may take away.
 * @throws {Error} naming what to set.
 */
async function assertUsable(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  try {
    const { rows } = await client.query(startFacts)
    const { pid, off, isPrepared } = rows[0] ?? {}
    if (off) throw new Error(`a pooler ignores ${off}; set them for the role: ${page}`)
    // A pooler has a number of its own. One that keeps statements gives them other names.
    const { processID } = client as pg.PoolClient & { readonly processID: number } // its types leave it out
    if (pid !== processID && isPrepared && (await isShared(pool, Number(pid)))) throw notPrepared()
  } catch (fault) {
    // The name has another statement, or none, on the connection that this one was given.
    const isMixedUp = ['42P05', '26000'].includes(codeOf(fault))
    throw isMixedUp ? notPrepared() : fault
  } finally {
    client.release(true)
  }
}

const page = 'docs/scaling.md#pgbouncer'
const notPrepared = () =>
  new Error(`the pooler does not keep prepared statements: it needs max_prepared_statements, ${page}`)

/** The connection to the database, which settings without an effect could make it wait for ever, and what is prepared. */
const startFacts = {
  name: 'lychgate_start',
  text: `select pg_backend_pid() as pid,
    (select string_agg(name, ', ' order by name) from pg_settings where setting in ('0', 'off') and name in
      ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'synchronous_commit')) as off,
    exists (select from pg_prepared_statements where name = 'lychgate_start') as "isPrepared"`,
}

/** Whether another client has the same connection to the database: then each transaction may have another one. */
async function isShared(pool: pg.Pool, pid: number): Promise<boolean> {
  if (pool.options.max < 2) return false
  const { rows } = await pool.query('select pg_backend_pid() as pid')
  return rows[0]?.pid === pid
}

/** Applies what is missing. @returns Whether the tables are distributed. */
async function applyMigrations(pool: pg.Pool): Promise<boolean> {
  const client = await pool.connect()
  try {
    // All of it for a transaction only: behind a pooler the session is another client's in the next moment.
    await client.query('begin; set local statement_timeout = 0; set local lock_timeout = 0')
    await client.query('select pg_advisory_xact_lock($1)', [migrationLock])
    const applied = await appliedMigrations(client)
    const state = schemaState('postgres', applied)
    assertOurs(state)
    const distributed = await isDistributed(client)
    if (!isServed(state)) await migrateAll('postgres', drizzle(client))
    return distributed
  } finally {
    // Ends the connection, and with it the transaction if it was not committed.
    client.release(true)
  }
}

/** The migrations this database had; none before the first. */
export async function appliedMigrations(client: pg.ClientBase): Promise<readonly AppliedMigration[]> {
  const table = await client.query("select to_regclass('drizzle.__drizzle_migrations') is not null as found")
  if (!table.rows[0]?.found) return []
  const applied = await client.query('select created_at, hash from drizzle.__drizzle_migrations')
  return applied.rows.map(({ created_at, hash }) => ({ at: Number(created_at), hash: String(hash) }))
}

/**
 * Errors of the server, by SQLSTATE: connection, resources, shutdown, system, lock and statement timeouts, read-only, a
 * commit that it cannot confirm.
 */
const unavailable = /^(08|53|57P|58|55P03|57014|25P0[34]|25006|40003)/
/** Errors of the network, by errno name, and the driver's own, which have only a message. */
const network = /^E[A-Z_]+$/
const driver = /connection terminated|connection error|timeout exceeded|closed|after calling end on the pool/i

/**
 * The error callers see for a fault of the database; what a decision threw stays itself. Drizzle's wrapper is taken
 * off, because its message contains the parameters.
 */
export function translate(fault: unknown): unknown {
  const error = fault instanceof DrizzleQueryError ? fault.cause : fault
  const code = codeOf(error)
  if (code === '23505') return new RecordExists(error)
  if (unavailable.test(code) || network.test(code) || isLostWorker(error)) return new StoreUnavailable(error)
  if (code === '' && isDriverError(error)) return new StoreUnavailable(error)
  return error
}

/** Whether a transaction lost against another (serialization failure, deadlock) and may be tried again. */
export function isConflict(fault: unknown): boolean {
  return ['40001', '40P01'].includes(codeOf(fault))
}

/** Citus reports what it does not get from a worker as an internal error, by its message alone. */
function isLostWorker(fault: unknown): boolean {
  return codeOf(fault) === 'XX000' && fault instanceof Error && /\bconnection\b/i.test(fault.message)
}

function isDriverError(fault: unknown): boolean {
  return fault instanceof Error && fault.constructor === Error && driver.test(fault.message)
}
