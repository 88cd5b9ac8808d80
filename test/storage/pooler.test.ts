/** A pooler between a server and PostgreSQL: what it takes away is named at the start, before anything is written. */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openStore } from '../../src/storage/open.ts'
import { startPostgres } from './postgres-server.ts'

const postgres = await startPostgres(t)

/**
 * A pooler like PgBouncer before 1.21, in transaction mode: all clients have one connection to the database, with the
 * settings of the pooler, and prepared statements keep their names.
 */
async function startPooler(t: Test, database: string, settings: pg.ClientConfig): Promise<string> {
  const upstream = new pg.Client({ connectionString: database, ...settings })
  upstream.on('error', () => undefined)
  await upstream.connect()
  // `as`: its types leave out the connection.
  const { stream } = (upstream as pg.Client & { readonly connection: { readonly stream: Socket } }).connection
  stream.removeAllListeners('data')
  let asking: Socket | undefined
  stream.on('data', (bytes) => asking?.write(bytes))
  stream.on('error', () => undefined)
  const server = createServer((client) => {
    client.on('error', () => undefined)
    client.once('data', () => {
      const number = Buffer.alloc(4, 1)
      const message = (type: string, body: Buffer) => {
        const head = Buffer.from(`${type}    `)
        head.writeUInt32BE(body.length + 4, 1)
        return Buffer.concat([head, body])
      }
      client.write(message('R', Buffer.alloc(4)))
      client.write(message('K', Buffer.concat([number, number])))
      client.write(message('Z', Buffer.from('I')))
      client.on('data', (bytes) => {
        // The end of a client is not that of the connection.
        if (bytes[0] === 'X'.charCodeAt(0)) return void client.end()
        asking = client
        stream.write(bytes)
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    stream.destroy()
    server.close()
  })
  const url = new URL(database)
  url.port = String((server.address() as AddressInfo).port) // of a listening server
  return url.href
}

const timeouts = { statement_timeout: 5000, lock_timeout: 2000, idle_in_transaction_session_timeout: 10_000 }

for (const [what, settings, message] of [
  [
    'that ignores the settings of a connection',
    {},
    /a pooler ignores idle_in_transaction_session_timeout, lock_timeout, statement_timeout; set them for the role: docs\/scaling\.md#pgbouncer$/,
  ],
  [
    'that does not keep prepared statements',
    timeouts,
    /the pooler does not keep prepared statements: it needs max_prepared_statements, docs\/scaling\.md#pgbouncer$/,
  ],
] as const) {
  t.test(`a pooler ${what} is rejected, and nothing is written`, async (t) => {
    const database = await postgres.createDatabase()
    const url = await startPooler(t, database, settings)
    await t.rejects(openStore(url), { message })
    const direct = new pg.Client(database)
    await direct.connect()
    const { rows } = await direct.query("select to_regclass('drizzle.__drizzle_migrations') as found")
    t.strictSame(rows, [{ found: null }])
    await direct.end()
  })
}
