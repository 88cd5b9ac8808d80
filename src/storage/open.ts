import type { Store } from './store.ts'

export interface OpenOptions {
  /** The folder with the migrations of both dialects; absent: the one beside `src`. */
  readonly migrations?: string
}

/**
 * The store behind `sqlite:<file>`, `sqlite::memory:` or `postgres://…`, migrated and ready.
 * @throws {Error} with one line for the operator; the message never contains the URL, which may hold a password.
 */
export async function openStore(url: string, options: OpenOptions = {}): Promise<Store> {
  // Each adapter is loaded only when it is used: both drivers are slow to load.
  if (url.startsWith('sqlite:') && url.length > 'sqlite:'.length) {
    const { openSqliteStore } = await import('./sqlite/sqlite-store.ts')
    return await openSqliteStore(url.slice('sqlite:'.length), options.migrations)
  }
  if (url.startsWith('postgres://') || url.startsWith('postgresql://')) {
    const { openPostgresStore } = await import('./postgres/postgres-store.ts')
    return await openPostgresStore(url, options.migrations)
  }
  throw new Error('the database URL must be sqlite:<file>, sqlite::memory: or postgres://<host>/<database>')
}
