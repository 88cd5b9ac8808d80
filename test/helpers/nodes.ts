import { randomBytes } from 'node:crypto'

/** The default number of nodes of a server in a test: `npm run test:nodes` sets it. */
export const nodeCount = Number(process.env['TEST_NODES'] ?? 1)

/** Waits of a store in a test: a machine may pause for seconds. Tests of the waits themselves do not use it. */
export const patient = { waitMilliseconds: 30_000 }

/** The database that nodes share: the given one, or a new one instead of SQLite, which serves one process. */
export async function storeForNodes(asked: string | undefined): Promise<string> {
  if (asked?.startsWith('postgres:')) return asked
  const server = process.env['TEST_POSTGRES']
  if (server === undefined) throw new Error('TEST_NODES needs TEST_POSTGRES, the URL of a server')
  return await createDatabase(server)
}

/**
 * The URL of a new, empty database of the PostgreSQL server at this URL. It sorts text by the rules of English, as
 * many servers do: what needs the order of bytes has to ask for it.
 */
export async function createDatabase(server: string): Promise<string> {
  // Loaded late: every test loads this file, and few have a PostgreSQL.
  const { default: pg } = await import('pg')
  const name = `lychgate_${randomBytes(6).toString('hex')}`
  const client = new pg.Client(server)
  await client.connect()
  await client.query(
    `create database ${name} template template0 locale_provider icu icu_locale 'en-US' locale 'C'`,
  )
  await client.end()
  return new URL(`/${name}`, server).href
}
