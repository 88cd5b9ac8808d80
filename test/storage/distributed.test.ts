/**
 * The store whose grants are on several machines, on one PostgreSQL: with partitions in the place of machines and a
 * catalog like that of Citus. `npm run test:citus` does the same with Citus itself.
 */
import { getTableName } from 'drizzle-orm'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openStore } from '../../src/storage/open.ts'
import { buildDistributedStatements, lockOwners } from '../../src/storage/postgres/distributed-script.ts'
import { translate } from '../../src/storage/postgres/open-pool.ts'
import { dialect, plainStatements } from '../../src/storage/postgres/prepared.ts'
import * as schema from '../../src/storage/postgres/schema.ts'
import type { Script, Step } from '../../src/storage/script.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { run } from '../helpers/command.ts'
import { patient } from '../helpers/nodes.ts'
import { distributedEnds } from './distributed.suite.ts'
import { partitioned } from './partitioned.ts'
import { startPostgres } from './postgres-server.ts'
import { storeSuite } from './store.suite.ts'

const postgres = await startPostgres(t)

/** What the store reads of Citus. */
const catalog = `
  create table pg_dist_partition (logicalrelid regclass, partmethod text, partkey text, colocationid int, repmodel text);
  create function citus_is_coordinator() returns bool language sql as 'select true';
  create function column_to_column_name(regclass, text) returns text language sql as 'select $2';
  insert into pg_dist_partition values ('clients', 'n', null, 1, 't'), ('users', 'n', null, 1, 't'),
    ('grants', 'h', 'id', 2, 's'), ('revoked_access_tokens', 'h', 'grant_id', 2, 's')`

async function query(url: string, text: string) {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(text)
  await client.end()
}

async function distributedDatabase(): Promise<string> {
  const url = await postgres.createDatabase()
  await (await openStore(url)).close()
  await query(
    url,
    `${partitioned('grants', 'id')}; ${partitioned('revoked_access_tokens', 'grant_id')}; ${catalog}`,
  )
  return url
}

const url = await distributedDatabase()
const tables = Object.values(schema).map((table) => getTableName(table))
const emptied = async () => {
  await query(url, `truncate ${tables.join(', ')}`)
  return url
}

t.test('the store passes every test', async (t) => {
  storeSuite(t, async (t: Test) => {
    const store = await openStore(await emptied(), patient)
    t.teardown(() => store.close())
    return store
  })
})

t.test('what ends something is waited for', async (t) => distributedEnds(t, emptied))

/** Every statement, by the name of its script. */
const statements = buildDistributedStatements()

t.test(
  'no statement locks a row of a copied table, and what locked one takes a lock of the coordinator',
  async (t) => {
    const ofOwner = / for (?:update|share) of .*"(?:clients|users)"/
    const changing = /^(?:update|delete from) "(?:clients|users)"|from "(?:clients|users)" .* for share/s
    const locking = [...plainStatements.transacting].filter(([, { text }]) => ofOwner.test(text))
    const writing = [...plainStatements.writing].filter(([, { text }]) => changing.test(text))
    t.ok(locking.length >= 8, `${locking.length} statements lock a client or a user`)
    t.ok(writing.length >= 5, `${writing.length} statements change one`)
    for (const [, { text }] of statements.transacting) t.notMatch(text, ofOwner)
    for (const [, { text }] of statements.writing) t.notMatch(text, / for share/)
    for (const [name] of [...locking, ...writing]) {
      const steps = stepsOf(name)
      t.match(JSON.stringify(steps), /"pg_advisory_xact_lock(?:_shared)?"/, name)
    }
  },
)

/** The steps of a script with one statement that finds one row. */
function stepsOf(name: string): readonly Step[] {
  const statement = name as 'client'
  const script = lockOwners(
    (function* (): Script<unknown> {
      return yield { statement, values: { key: 'a', id: 'a', userId: 'a', clientId: 'a' } }
    })(),
  )
  const steps: Step[] = []
  for (let step = script.next(); !step.done; ) {
    steps.push(step.value)
    step = script.next(
      'together' in step.value ? step.value.together.map(() => [{ id: 'a' }]) : [{ id: 'a' }],
    )
  }
  return steps
}

t.test('no server starts with tables that are distributed in another way', async (t) => {
  const ways = {
    grants: "delete from pg_dist_partition where logicalrelid = 'grants'::regclass",
    sessions: "insert into pg_dist_partition values ('sessions', 'h', 'id', 2, 's')",
    users: "update pg_dist_partition set repmodel = 's' where logicalrelid = 'users'::regclass",
    apart: "update pg_dist_partition set colocationid = 3 where logicalrelid = 'grants'::regclass",
  }
  for (const [name, change] of Object.entries(ways)) {
    const other = await distributedDatabase()
    await query(other, change)
    await t.rejects(openStore(other), {
      message: `the PostgreSQL database cannot be used: its tables are distributed in a way that was not tried (${name}): docs/scaling.md#citus`,
    })
  }
  const worker = await distributedDatabase()
  await query(
    worker,
    "create or replace function citus_is_coordinator() returns bool language sql as 'select false'",
  )
  await t.rejects(openStore(worker), { message: /this is a worker of Citus; name the coordinator/ })
})

t.test('a worker that is lost is a store that is unavailable, and no other internal error is', async (t) => {
  const of = (message: string) => translate(Object.assign(new Error(message), { code: 'XX000' }))
  for (const message of [
    'failure on connection marked as essential: 127.0.0.1:5432',
    'server closed the connection unexpectedly',
  ])
    t.type(of(message), StoreUnavailable, message)
  t.notOk(of('cache lookup failed for relation 1') instanceof StoreUnavailable)
})

t.test('store distribute changes nothing in a database without Citus', async (t) => {
  const plain = await postgres.createDatabase()
  await (await openStore(plain)).close()
  const failed = await run(['store', 'distribute'], { environment: { LYCHGATE_STORE: plain } })
  t.match(failed, {
    code: 1,
    stderr: 'lychgate: store: the database has no extension citus: docs/scaling.md#citus\n',
  })
  const wrong = await run(['store', 'distribute'], { environment: { LYCHGATE_DATA: t.testdir() } })
  t.match(wrong, { code: 64, stderr: 'lychgate: store: must be a PostgreSQL database with Citus\n' })
  await t.resolves((await openStore(plain)).close())
})

t.test('every table that is distributed is one of the schema', async (t) => {
  t.ok(
    [dialect.tables.grants, dialect.tables.revokedAccessTokens].every((table) =>
      tables.includes(getTableName(table)),
    ),
  )
})
