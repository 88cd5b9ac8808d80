import type { StoreFacts } from './store-facts.ts'

/**
 * Looks at a store while its server runs, or while it does not; undefined when there is none yet.
 * @throws {Error} with one line for the operator when it cannot be opened.
 */
export async function examineStore(url: string): Promise<StoreFacts | undefined> {
  if (url.startsWith('sqlite:')) {
    const { examineDatabase } = await import('./sqlite/examine-database.ts')
    return examineDatabase(url.slice('sqlite:'.length))
  }
  const { examinePostgres } = await import('./postgres/examine-postgres.ts')
  return await examinePostgres(url)
}
