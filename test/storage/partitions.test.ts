/** The audit log of PostgreSQL in partitions: everything works as in one table, and what is due is dropped at once. */
import { getTableName } from 'drizzle-orm'
import pg from 'pg'
import t, { type Test } from 'tap'
import { insert, type RecordReads } from '../../src/domain/decision.ts'
import { copyRows, pauseWrites, resumeWrites } from '../../src/storage/copy.ts'
import { examineStore, openCopyEnd, openStore, partitionAuditLog } from '../../src/storage/open.ts'
import * as schema from '../../src/storage/postgres/schema.ts'
import { type Store, StoreUnavailable, type SweepBounds } from '../../src/storage/store.ts'
import { hasAdministrator } from '../../src/users/administrators.ts'
import { patient } from '../helpers/nodes.ts'
import { runIn, small, smallPartitions } from './partitioned-log.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'
import { layoutSuite } from './store.suite.ts'

const postgres = await startPostgres(t)
const tables = Object.values(schema).map((table) => getTableName(table))

async function open(t: Test, url: string, options = patient): Promise<Store> {
  const store = await openStore(url, options)
  t.teardown(() => store.close())
  return store
}

async function connect(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  t.teardown(() => client.end())
  return client
}

const bounds = (now: number, auditedSince: number): SweepBounds => ({
  now,
  clientsUnusedSince: 0,
  unusedClientBytes: 1_000_000,
  clientsIdleSince: 0,
  rejectionsKept: 100,
  auditedSince,
})

/** Writes one event for each of these instants. */
async function log(store: Store, instants: readonly number[]): Promise<void> {
  for (const at of instants) await store.write(insert('auditEvent', { ...sample.auditEvent, at }))
}

const noAdministrator = (read: RecordReads) => hasAdministrator('', read)

const logged = async (store: Store) => (await store.audit({ since: 0, limit: 99 })).map(({ at }) => at)

const partitions = `select inhrelid::regclass::text as name from pg_inherits
  where inhparent = 'audit_events'::regclass order by inhrelid`
async function partitionsOf(client: pg.Client): Promise<readonly string[]> {
  return (await client.query(partitions)).rows.map(({ name }) => name)
}

/** A store whose log has small partitions, and a connection to its database. */
async function partitioned(t: Test, options = patient) {
  const url = await smallPartitions(postgres)
  return { url, store: await open(t, url, options), beside: await connect(t, url) }
}

t.test('a store with a partitioned log', async (t) => {
  const url = await smallPartitions(postgres)
  layoutSuite(t, async (t) => {
    await runIn(url, `truncate ${tables.join(', ')} restart identity; ${small}`)
    return open(t, url)
  })
})

t.test(
  'the table that there is becomes the first partition, with its events and their numbers',
  async (t) => {
    const url = await postgres.createDatabase()
    const store = await open(t, url)
    await log(store, [1000, 1001, 1002])
    const before = await store.auditPage({ limit: 9 })
    t.equal(await partitionAuditLog(url, 2000, 1000), 4_000_004)
    t.strictSame(await store.auditPage({ limit: 9 }), before, 'also for a server that runs meanwhile')
    await log(store, [1003])
    t.strictSame(await logged(store), [1000, 1001, 1002, 1003])
    const beside = await connect(t, url)
    t.strictSame(await partitionsOf(beside), [
      'audit_events_1',
      'audit_events_4000004',
      'audit_events_8000004',
    ])
    t.equal((await beside.query('select from audit_events_1 where seq = 4')).rowCount, 1, 'numbers go on')
    const indexes = "select indexname as name from pg_indexes where tablename = 'audit_events' order by 1"
    t.strictSame(
      (await beside.query(indexes)).rows.map(({ name }) => name),
      ['audit_events_pkey', 'audit_events_user_id'],
      'as migrations name them',
    )
    t.equal(await partitionAuditLog(url, 2000, 1000), undefined, 'only once')
    const another = await open(t, url)
    t.strictSame(await logged(another), [1000, 1001, 1002, 1003])
  },
)

t.test('a log that cannot be divided stays as it was', async (t) => {
  const url = await postgres.createDatabase()
  const store = await open(t, url)
  await log(store, [1000])
  const before = "select relkind, relname from pg_class where relname like 'audit_events%' order by 2"
  const beside = await connect(t, url)
  const { rows } = await beside.query(before)
  await runIn(url, 'create table audit_events_1 ()')
  await t.rejects(partitionAuditLog(url, 2000, 1000), {
    message: 'the PostgreSQL database cannot be used: relation "audit_events_1" already exists',
  })
  await runIn(url, 'drop table audit_events_1')
  t.strictSame((await beside.query(before)).rows, rows)
  t.strictSame(await logged(store), [1000])
  await t.rejects(partitionAuditLog('sqlite:x.db', 2000, 1000), { message: /^SQLite has no partitions/ })
})

t.test(
  'partitions are made ahead, for a sixteenth of what is kept, and for four million events at least',
  async (t) => {
    const { store, beside, url } = await partitioned(t)
    const advance = (last: number) => beside.query(`select setval('audit_events_seq_seq', ${last})`)
    const newest = async () => (await partitionsOf(beside)).at(-1)
    const found = async () =>
      (await examineStore(url, noAdministrator))?.faults
        .map((fault) => fault.found)
        .filter((found) => found === 'none')
    t.equal(await newest(), 'audit_events_28')
    await advance(100)
    t.strictSame(await found(), ['none'])
    await store.sweep(bounds(20_000, 12_000))
    t.equal(await newest(), 'audit_events_8000000', 'two')
    t.strictSame(await found(), [])
    await store.sweep(bounds(20_000, 12_000))
    t.equal(await newest(), 'audit_events_8000000', 'and no more')
    await advance(5_500_000)
    // 3.5 million in ten seconds, and a sixteenth of the time is a hundred.
    await log(store, [20_000])
    await advance(9_000_000)
    const next = bounds(20_010, 18_410)
    await Promise.all([store.sweep(next), (await open(t, url)).sweep(next)])
    t.equal(await newest(), 'audit_events_46999990', 'two again, and not four by two nodes')
    t.equal((await partitionsOf(beside)).at(-2), 'audit_events_12000000')
  },
)

t.test('a partition is dropped when every event of it is due', async (t) => {
  const { store, beside } = await partitioned(t)
  // Three in each partition. The second one has an event of a clock that ran ahead.
  await log(store, [1000, 1001, 1002, 1003, 1500, 1005, 1006, 1007, 1008, 1009])
  const names = await partitionsOf(beside)
  t.strictSame(await store.sweep(bounds(9000, 1002)), { rows: 0, more: false })
  t.strictSame(await logged(store), [1000, 1001, 1002, 1003, 1500, 1005, 1006, 1007, 1008, 1009])
  t.equal((await store.sweep(bounds(9000, 1003))).rows, 3)
  t.strictSame(await logged(store), [1003, 1500, 1005, 1006, 1007, 1008, 1009])
  t.strictSame(await partitionsOf(beside), names.slice(1))
  t.equal((await store.sweep(bounds(9000, 1500))).rows, 0, 'one event of the oldest is not due')
  t.equal((await store.sweep(bounds(9000, 1501))).rows, 3)
  t.equal((await store.sweep(bounds(9000, 1501))).rows, 3)
  t.equal((await store.sweep(bounds(9000, 1501))).rows, 0, 'the partition that is being filled stays')
  t.strictSame(await logged(store), [1009])
  t.equal(
    (await beside.query("select from pg_class where relname in ('audit_events_1', 'audit_events_4')"))
      .rowCount,
    0,
  )
})

t.test('an event is deleted alone once it is an eighth of the time late', async (t) => {
  const { store } = await partitioned(t)
  await log(store, [1000, 1001, 9000])
  t.equal((await store.sweep(bounds(9008, 1008))).rows, 0)
  t.equal((await store.sweep(bounds(10_001, 2001))).rows, 1)
  t.strictSame(await logged(store), [1001, 9000])
  t.equal((await store.sweep(bounds(99_999, 0))).rows, 0, 'never, if events are kept for ever')
})

t.test('a transaction that reads the log delays the drop, and nothing waits for it', async (t) => {
  const { store, beside, url } = await partitioned(t, { waitMilliseconds: 200 })
  await log(store, [1000, 1001, 1002, 1003])
  const backup = await connect(t, url)
  await backup.query('begin isolation level repeatable read; select from audit_events')
  t.equal((await store.sweep(bounds(9000, 1003))).rows, 0)
  const pending = 'select from pg_inherits where inhdetachpending'
  t.equal((await beside.query(pending)).rowCount, 1)
  await log(store, [1004])
  t.strictSame(await logged(store), [1003, 1004])
  t.equal((await backup.query('select from audit_events_1')).rowCount, 3, 'it reads on')
  await store.sweep(bounds(9000, 1003))
  await backup.query('commit')
  await store.sweep(bounds(9000, 1003))
  t.equal((await beside.query(pending)).rowCount, 0)
  t.equal((await beside.query("select from pg_class where relname = 'audit_events_1'")).rowCount, 0)
})

t.test('a drop that was interrupted goes on, and what an operator detached stays', async (t) => {
  const { store, beside } = await partitioned(t)
  await log(store, [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009])
  await beside.query(`comment on table audit_events_1 is 'lychgate: every event is due';
    alter table audit_events detach partition audit_events_1; alter table audit_events detach partition audit_events_4`)
  await store.sweep(bounds(9000, 1003))
  const names =
    "select relname as name from pg_class where relkind = 'r' and relname in ('audit_events_1', 'audit_events_4')"
  t.strictSame((await beside.query(names)).rows, [{ name: 'audit_events_4' }])
  await beside.query("comment on table audit_events_7 is 'lychgate: every event is due'")
  await store.sweep(bounds(9000, 1003))
  t.strictSame(await logged(store), [1009], 'another node had found that they are due')
})

t.test('two nodes that sweep at once drop a partition once', async (t) => {
  const { store, url } = await partitioned(t)
  const other = await open(t, url)
  await log(store, [1000, 1001, 1002, 1003, 1004, 1005, 1006])
  for (let round = 0; round < 4; round += 1)
    await Promise.all([store.sweep(bounds(9000, 1006)), other.sweep(bounds(9000, 1006))])
  t.strictSame(await logged(other), [1006])
})

t.test(
  'a partitioned log moves to another database, and nothing is written while it is paused',
  async (t) => {
    const { store, url } = await partitioned(t)
    await log(store, [1000, 1001, 1002, 1003])
    const file = `sqlite:${t.testdir()}/copy.db`
    await (await openStore(file)).close()
    const [source, target] = await Promise.all([openCopyEnd(url), openCopyEnd(file)])
    t.teardown(() => Promise.all([source.close(), target.close()]))
    await pauseWrites(source)
    await t.rejects(log(store, [1004]), StoreUnavailable)
    await copyRows(source, target)
    await resumeWrites(source)
    await log(store, [1004])
    t.strictSame(await logged(await open(t, file)), [1000, 1001, 1002, 1003])
    t.strictSame(await logged(store), [1000, 1001, 1002, 1003, 1004])
  },
)
