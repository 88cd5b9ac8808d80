import type { Condition } from '../domain/decision.ts'
import type { Seconds } from '../domain/model.ts'
import type { CopyEnd } from './copy.ts'
import type { Distributed } from './postgres/distribution.ts'
import type { Store, StoreFacts, StoreOptions } from './store.ts'

/**
 * Opens the store behind `sqlite:<file>`, `sqlite::memory:` or `postgres://…`, migrated and ready.
 * @throws {Error} with one line for the operator; the message never contains the URL, which may hold a password.
 */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  // Each adapter is loaded only when it is used: both drivers are slow to load.
  if (url.startsWith('sqlite:') && url.length > 'sqlite:'.length) {
    const { openSqliteStore } = await import('./sqlite/sqlite-store.ts')
    return await openSqliteStore(url.slice('sqlite:'.length), options)
  }
  if (url.startsWith('postgres://') || url.startsWith('postgresql://')) {
    const { openPostgresStore } = await import('./postgres/postgres-store.ts')
    return await openPostgresStore(url, {
      connections: 10,
      waitMilliseconds: 2000,
      isShared: false,
      ...options,
    })
  }
  throw new Error('the database URL must be sqlite:<file>, sqlite::memory: or postgres://<host>/<database>')
}

/**
 * Examines a store while its server runs, or while it does not; undefined when there is none yet.
 * @param isAdministered Whether there is an administrator.
 * @throws {Error} with one line for the operator when it cannot be opened.
 */
export async function examineStore(
  url: string,
  isAdministered: Condition['holds'],
): Promise<StoreFacts | undefined> {
  if (url.startsWith('sqlite:')) {
    const { examineDatabase } = await import('./sqlite/examine-database.ts')
    return examineDatabase(url.slice('sqlite:'.length), isAdministered)
  }
  const { examinePostgres } = await import('./postgres/examine-postgres.ts')
  return await examinePostgres(url, isAdministered)
}

/**
 * Gives the audit log of a store in PostgreSQL partitions.
 * @returns The number of the event with which the second one begins; undefined if it has some.
 * @throws {Error} with one line for the operator; then nothing was changed.
 */
export async function partitionAuditLog(
  url: string,
  now: Seconds,
  auditedSince: Seconds,
): Promise<number | undefined> {
  if (url.startsWith('sqlite:')) throw new Error('SQLite has no partitions, only PostgreSQL has')
  const { partitionLog } = await import('./postgres/partition-log.ts')
  return await partitionLog(url, now, auditedSince)
}

/** Opens a store that exists, whatever its state, to copy it or into it. */
export async function openCopyEnd(url: string): Promise<CopyEnd> {
  if (url.startsWith('sqlite:')) {
    const { openSqliteEnd } = await import('./sqlite/copy-end.ts')
    return openSqliteEnd(url.slice('sqlite:'.length))
  }
  const { openPostgresEnd } = await import('./postgres/copy-end.ts')
  return await openPostgresEnd(url)
}

/**
 * Spreads the tables of a PostgreSQL store that no server uses over the workers of Citus.
 * @throws {Error} with one line for the operator; then nothing was changed.
 */
export async function distributeStore(url: string): Promise<Distributed> {
  const { distribute } = await import('./postgres/distribution.ts')
  return await distribute(url)
}
