import { randomBytes } from 'node:crypto'

/** Of how many nodes a server of a test is made that does not say so: `npm run test:nodes` sets it. */
export const nodeCount = Number(process.env['TEST_NODES'] ?? 1)

/** For a store in a test: a machine that stands still for seconds is no fault of it. Tests of how long it waits do without. */
export const patient = { waitMilliseconds: 30_000 }

/** The database nodes share: the one asked for, or a new one in the place of SQLite, which is for one process. */
export async function storeForNodes(asked: string | undefined): Promise<string> {
  if (asked?.startsWith('postgres:')) return asked
  const server = process.env['TEST_POSTGRES']
  if (server === undefined) throw new Error('TEST_NODES needs TEST_POSTGRES, the URL of a server')
  return await createDatabase(server)
}

/** The URL of a new, empty database of the PostgreSQL server this URL leads to. */
export async function createDatabase(server: string): Promise<string> {
  // Loaded late: every test loads this file, and few have a PostgreSQL.
  const { default: pg } = await import('pg')
  const name = `lychgate_${randomBytes(6).toString('hex')}`
  const client = new pg.Client(server)
  await client.connect()
  await client.query(`create database ${name}`)
  await client.end()
  return new URL(`/${name}`, server).href
}
