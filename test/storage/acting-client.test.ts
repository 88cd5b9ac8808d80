/** Clients that act for themselves share their row: they wait for what ends it, and not for each other. */
import pg from 'pg'
import t from 'tap'
import { accept, insert, remove, update } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import type { ActingClient } from '../../src/storage/store.ts'
import { patient } from '../helpers/nodes.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'

const postgres = await startPostgres(t)
const url = await postgres.createDatabase()
const store = await openStore(url, patient)
t.teardown(() => store.close())
const machine = { ...sample.client, name: 'Machine' }
const { id } = machine
await store.write(insert('client', machine))

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
/** Issues a token to the client: it is read in the transaction, or was read before and is compared. */
const issue = (ahead?: Promise<ActingClient>) => {
  grants += 1
  const { userId: _, ...grant } = { ...sample.grant, id: sample.grantId(grants), clientId: id }
  const decide = (acting: ActingClient | undefined) => {
    if (acting === undefined || acting.client.lockedAt !== undefined) return accept('rejected')
    const { client, owners } = acting
    return accept(`issued to ${client.name}`, {
      op: 'insertGrant',
      grant,
      ...(owners === undefined ? { client } : { owners }),
    })
  }
  return store.transact('actingClient', id, decide, ahead)
}
const ways = [() => issue(), () => issue(Promise.resolve({ client: machine }))]
const issued = 'issued to Machine'
const inserted = async () => (await observer.query('select from grants')).rowCount

t.test('a lock or a removal that is not committed yet is waited for', async (t) => {
  for (const end of ['update clients set locked_at = 5', 'delete from clients'])
    for (const way of ways) {
      await other.query(`begin; ${end}`)
      const outcome = way()
      await waiting(1)
      await other.query('commit')
      t.equal(await outcome, 'rejected', end)
      await other.query('delete from clients')
      await store.write(insert('client', machine))
    }
  t.equal(await inserted(), 0)
})

t.test('about a client that has changed since it was read is decided as it is now', async (t) => {
  const before = Promise.resolve({ client: machine })
  await store.write(update('client', { ...machine, name: 'Renamed' }))
  t.equal(await issue(before), 'issued to Renamed')
  await store.write(update('client', { ...machine, lockedAt: 5 }))
  t.equal(await issue(before), 'rejected')
  await store.write(remove('client', id))
  t.equal(await issue(before), 'rejected')
  await store.write(insert('client', machine))
  // A merge of the database writes its members in another order.
  await other.query('update clients set metadata = metadata::jsonb::text')
  t.equal(await issue(before), issued)
  const { rows } = await observer.query('select client_seq from grants order by id desc limit 1')
  t.strictSame(rows, (await observer.query('select seq as client_seq from clients')).rows)
  await other.query('delete from grants')
})

t.test('what is issued at the same time waits for nothing, and its end waits for all of it', async (t) => {
  await other.query(`create function halt() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$`)
  await other.query('create trigger halt before insert on grants for each row execute function halt()')
  await other.query('begin; select pg_advisory_xact_lock(1)')
  // Each has read the client, and stops where it inserts its grant.
  const outcomes = Array.from({ length: 6 }, (_, n) => ways[n % 2]?.())
  await waiting(6)
  const ending = await connect()
  const ended = ending.query('update clients set locked_at = 5')
  await waiting(7)
  t.equal(await inserted(), 0)
  await other.query('commit')
  t.strictSame(
    await Promise.all(outcomes),
    Array.from({ length: 6 }, () => issued),
  )
  await ended
  t.equal(await inserted(), 6, 'all were committed before the client was locked')
  for (const way of ways) t.equal(await way(), 'rejected')
})
