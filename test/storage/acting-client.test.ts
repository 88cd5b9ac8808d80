/** Clients that act for themselves share their row: they wait for what ends it, and not for each other. */
import pg from 'pg'
import t from 'tap'
import { accept, insert } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import type { ActingClient } from '../../src/storage/store.ts'
import { patient } from '../helpers/nodes.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'

const postgres = await startPostgres(t)
const url = await postgres.createDatabase()
const store = await openStore(url, patient)
t.teardown(() => store.close())
const { id } = sample.client
await store.write(insert('client', sample.client))

async function connect(): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  t.teardown(() => client.end())
  return client
}

const observer = await connect()
const other = await connect()

/** Resolves when this many transactions wait for a lock. */
async function waiting(count: number): Promise<void> {
  const blocked = 'select distinct pid from pg_locks where not granted'
  while (((await observer.query(blocked)).rowCount ?? 0) < count) await new Promise(setImmediate)
}

let grants = 0
const issue = () => {
  grants += 1
  const { userId: _, ...grant } = { ...sample.grant, id: sample.grantId(grants), clientId: id }
  return store.transact('actingClient', id, (found: ActingClient | undefined) =>
    found === undefined || found.client.lockedAt !== undefined
      ? accept('rejected')
      : accept('issued', { op: 'insertGrant', grant, owners: found.owners }),
  )
}
const inserted = async () => (await observer.query('select from grants')).rowCount

t.test('a lock or a removal that is not committed yet is waited for', async (t) => {
  for (const end of ['update clients set locked_at = 5', 'delete from clients']) {
    await other.query(`begin; ${end}`)
    const issued = issue()
    await waiting(1)
    await other.query('commit')
    t.equal(await issued, 'rejected', end)
    await other.query('delete from clients')
    await store.write(insert('client', sample.client))
  }
  t.equal(await inserted(), 0)
})

t.test('what is issued at the same time waits for nothing, and its end waits for all of it', async (t) => {
  await other.query(`create function halt() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$`)
  await other.query('create trigger halt before insert on grants for each row execute function halt()')
  await other.query('begin; select pg_advisory_xact_lock(1)')
  // Each has read the client, and stops where it inserts its grant.
  const issued = Array.from({ length: 5 }, issue)
  await waiting(5)
  const ending = await connect()
  const ended = ending.query('update clients set locked_at = 5')
  await waiting(6)
  t.equal(await inserted(), 0)
  await other.query('commit')
  t.strictSame(
    await Promise.all(issued),
    Array.from({ length: 5 }, () => 'issued'),
  )
  await ended
  t.equal(await inserted(), 5, 'all were committed before the client was locked')
  t.equal(await issue(), 'rejected')
})
