/**
 * How the databases find the rows that requests need. The test does not repeat the statements: it calls every endpoint
 * of a server, records what the driver runs, and asks the database for its plan.
 */

import Database from 'better-sqlite3'
import { getTableName } from 'drizzle-orm'
import { getTableConfig } from 'drizzle-orm/pg-core'
import pg from 'pg'
import t, { type Test } from 'tap'
import { consentKind } from '../../src/domain/connections.ts'
import { insert } from '../../src/domain/decision.ts'
import { openStore, partitionAuditLog } from '../../src/storage/open.ts'
import { dialect } from '../../src/storage/postgres/prepared.ts'
import * as schema from '../../src/storage/postgres/schema.ts'
import { runnerOf } from '../../src/storage/sqlite/prepared.ts'
import { buildWrites } from '../../src/storage/statements.ts'
import type { Store, SweepBounds } from '../../src/storage/store.ts'
import { patient } from '../helpers/nodes.ts'
import { startServer } from '../helpers/server.ts'
import { concurrency, grantWrites } from './decisions.suite.ts'
import { partitioned } from './partitioned.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'
import { sweeps } from './sweep.suite.ts'
import { fill, hot, type Ran, recordPostgres, rows, wholeFlow } from './whole-flow.ts'

const nothingDue: SweepBounds = {
  now: 2000,
  clientsUnusedSince: 0,
  unusedClientBytes: 134_217_728,
  clientsIdleSince: 0,
  rejectionsKept: rows,
  auditedSince: 0,
}

/** Reads a page of every list of users. */
async function listUsers(store: Store): Promise<void> {
  await store.usersFrom({ prefix: 'user 9', limit: 5 })
  for (const only of [undefined, 'locked', 'unlocked'] as const) await store.page('user', { only, limit: 5 })
}

// SQLite

/** The texts of the statements that run on connections opened afterwards. */
function recordSqlite(t: Test): Set<string> {
  const ran = new Set<string>()
  const { prepare } = Database.prototype
  Database.prototype.prepare = function (this: Database.Database, source: string) {
    const statement = prepare.call(this, source)
    for (const method of ['run', 'get', 'all'] as const) {
      const original: (...values: never) => unknown = statement[method]
      Reflect.set(statement, method, (...values: never) => {
        ran.add(source)
        return Reflect.apply(original, statement, values)
      })
    }
    return statement
  } as typeof prepare
  t.teardown(() => {
    Database.prototype.prepare = prepare
  })
  return ran
}

/** No tables: one row of values, and rows that the same statement has looked up by key. */
const scannedAnyway = /^SCAN (?:CONSTANT ROW|\(subquery-\d+\)|record|subject)$/

t.test('on SQLite every request looks rows up by key', async (t) => {
  const ran = recordSqlite(t)
  const file = `${t.testdir()}/lychgate.db`
  const server = await startServer(t, { store: `sqlite:${file}` })
  await fill(server.deps.store)
  ran.clear()
  await wholeFlow(t, server)

  const beside = new Database(file, { readonly: true })
  // It defines the functions that the statements call.
  runnerOf(beside)
  t.teardown(() => beside.close())
  const planOf = (source: string) => {
    const parameters = Array.from(source.matchAll(/\?/g), () => null)
    const lines = beside.prepare(`explain query plan ${source}`).all(...parameters) as { detail: string }[] // its documented column
    return { source, details: lines.map(({ detail }) => detail) }
  }
  const plans = [...ran].filter((source) => /^(select|insert|update|delete)/i.test(source)).map(planOf)
  for (const { source, details } of plans) {
    t.notOk(
      details.some((detail) => detail.startsWith('SCAN') && !scannedAnyway.test(detail)),
      source,
    )
  }
  const ofGrants = plans.filter(({ source }) => /^(select .* from|update|insert into) "grants"/i.test(source))
  t.ok(ofGrants.length >= 4, 'found, inserted, rotated and revoked')
  for (const { source, details } of ofGrants) {
    const steps = details.filter((detail) => / grants\b/.test(detail))
    t.strictSame(steps, /^insert/i.test(source) ? [] : ['SEARCH grants USING PRIMARY KEY (id=?)'], source)
  }

  ran.clear()
  await server.deps.store.sweep(nothingDue)
  const scans = [...ran]
    .map(planOf)
    .flatMap(({ details }) =>
      details.filter((detail) => detail.startsWith('SCAN') && !scannedAnyway.test(detail)),
    )
  // Reads the oldest twenty, `first`, in the order they are stored.
  t.strictSame(scans, ['SCAN audit_events', 'SCAN first'], 'a sweep finds all else by when it is due')

  ran.clear()
  await listUsers(server.deps.store)
  const lists = [...ran].map(planOf).flatMap(({ details }) => details)
  t.strictSame(
    lists.toSorted(),
    [
      'SEARCH users USING INDEX users_email (email>? AND email<?)',
      'SEARCH users USING INDEX users_locked (seq>?)',
      'SEARCH users USING INDEX users_unlocked (seq>?)',
      'SEARCH users USING INDEX users_username (username>? AND username<?)',
      'SEARCH users USING INTEGER PRIMARY KEY (rowid>?)',
    ],
    'a list of users reads its page of an index, in its order',
  )

  ran.clear()
  const { store } = server.deps
  await store.sessionsFrom({ after: 'a', limit: 5 })
  await store.grantsFrom({ clientId: 'client 9', limit: 5 })
  await store.grantsFrom({ userId: 'account 9', limit: 5 })
  await store.someOfClient(consentKind, 'client 9', 5)
  await store.auditFrom({ userId: 'account 9', limit: 5 })
  const found = [...ran].map(planOf).flatMap(({ details }) => details)
  t.strictSame(
    found.filter((detail) => !/SUBQUERY| (users|clients) USING /.test(detail)).toSorted(),
    [
      'SEARCH audit_events USING INDEX audit_events_user_id (user_id=? AND seq>?)',
      'SEARCH grants USING INDEX grants_user_seq (user_seq=? AND id>?)',
      'SEARCH grants USING PRIMARY KEY (id>? AND id<?)',
      'SEARCH grants USING PRIMARY KEY (id>?)',
      'SEARCH records USING INDEX records_client_id (client_id=?)',
      'SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (id>?)',
    ],
    'a list of grants or sessions reads its page of an index, in its order',
  )

  ran.clear()
  await server.deps.store.population()
  const seeded = [...ran].filter((source) => /where seeded/.test(source)).map(planOf)
  t.strictSame(
    seeded.map(({ details }) => details),
    [['SCAN users USING INDEX users_seeded']],
    'a start reads an index of development users, which is empty',
  )
})

// PostgreSQL

/** A node of a plan, as EXPLAIN returns it. */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Plan Rows': number
  readonly 'Actual Loops'?: number
  readonly Plans?: readonly PlanNode[]
}

const nodesOf = (node: PlanNode): readonly PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

async function explain(client: pg.Client, { text, values }: Ran): Promise<readonly PlanNode[]> {
  const { rows: found } = await client.query(`explain (format json) ${text}`, [...values])
  return nodesOf(found[0]?.['QUERY PLAN'][0].Plan)
}

/** The plan of each statement of a whole flow, on a database with enough rows and current statistics. */
async function plansOfFlow(t: Test, url: string): Promise<ReadonlyMap<string, readonly PlanNode[]>> {
  const server = await startServer(t, { store: url })
  await fill(server.deps.store)
  const client = new pg.Client(url)
  await client.connect()
  t.teardown(() => client.end())
  await client.query('analyze')
  const ran = recordPostgres(t)
  await wholeFlow(t, server)
  await server.deps.store.population()
  await listUsers(server.deps.store)
  const plans = new Map<string, readonly PlanNode[]>()
  for (const [name, statement] of ran) plans.set(name, await explain(client, statement))
  return plans
}

/** Every node that reads grants, from any table or partition. */
const readsOfGrants = (plan: readonly PlanNode[]) =>
  plan.filter((node) => /^grants/.test(node['Relation Name'] ?? '') && node['Node Type'] !== 'ModifyTable')

const postgres = await startPostgres(t)

t.test('on PostgreSQL every request looks rows up by key, and its grant by nothing else', async (t) => {
  const plans = await plansOfFlow(t, await postgres.createDatabase())
  for (const name of hot) t.ok(plans.has(name), `${name} ran`)
  const [asked] = plans.get('find_seededUsers') ?? []
  t.match(asked, { 'Index Name': 'users_seeded' }, 'a start reads an index of development users')
  for (const list of ['usersByName', 'usersByEmail', 'pageOfUsers', 'pageOfUnlockedUsers']) {
    const [, plan = []] = [...plans].find(([name]) => name.endsWith(`_${list}`)) ?? []
    t.match(plan[1]?.['Node Type'], /^Index Scan$/, list)
    t.notOk(
      plan.some((node) => node['Node Type'] === 'Sort'),
      `${list} is in the order of its index`,
    )
  }
  for (const [name, plan] of plans) {
    const scans = plan.filter((node) => node['Node Type'] === 'Seq Scan')
    // The few keys fit one page and are read once a minute; a start reads the first user it finds.
    t.strictSame(
      scans
        .map((node) => node['Relation Name'])
        .filter((table) => table !== 'keys' && name !== 'find_anyUser'),
      [],
      `${name} reads no table from end to end`,
    )
    if (name === 'insertGrant') {
      const steps = plan.map((node) => node['Node Type'])
      t.strictSame(steps, ['ModifyTable', 'Result'], 'one row of values, with no subquery among them')
    }
    for (const node of readsOfGrants(plan)) {
      t.match(node, { 'Node Type': /^Index Scan$/, 'Index Name': 'grants_pkey', 'Plan Rows': 1 }, name)
      t.match(node['Index Cond'], /^\(id = '.+'::bytea\)$/, `${name}: equality on the whole key`)
    }
  }
})

/** What is found by its key, and the column that says where it is. */
const distributed = { grants: 'id', revoked_access_tokens: 'grant_id', sessions: 'id' }

async function runOnce(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(text)
  await client.end()
}

/** A new database whose grants, revocations and sessions are distributed by hash. */
async function distributedDatabase(): Promise<string> {
  const url = await postgres.createDatabase()
  await (await openStore(url)).close()
  for (const [table, key] of Object.entries(distributed)) await runOnce(url, partitioned(table, key))
  return url
}

t.test('distributed by hash, each request reads exactly one partition', async (t) => {
  const plans = await plansOfFlow(t, await distributedDatabase())
  for (const name of hot) {
    const reads = readsOfGrants(plans.get(name) ?? [])
    const parts = new Set(reads.map((node) => node['Relation Name']))
    t.equal(parts.size, name === 'insertGrant' || name === 'revokeAccessToken' ? 0 : 1, name)
    for (const node of reads) {
      t.match(node, { 'Relation Name': /^grants_[0-3]$/, 'Index Name': /^grants_[0-3]_pkey$/ }, name)
      t.match(node['Index Cond'], /^\(id = '.+'::bytea\)$/)
    }
  }
  // The sessions of a user are everywhere.
  for (const [name, plan] of [...plans].filter(([name]) => !name.endsWith('_sessionsOf'))) {
    for (const table of Object.keys(distributed)) {
      const nodes = plan.filter((node) => node['Relation Name']?.startsWith(`${table}_`))
      const reads = nodes.filter((node) => node['Node Type'] !== 'ModifyTable')
      if (reads.length > 0)
        t.equal(new Set(reads.map((node) => node['Relation Name'])).size, 1, `${name}: one part of ${table}`)
    }
  }
  const ofToken = plans.get('find_grantOfToken')?.map((node) => node['Relation Name']) ?? []
  const [[part], [beside]] = ['grants_', 'revoked_access_tokens_'].map((table) =>
    ofToken.flatMap((name) => (name?.startsWith(table) ? [name.slice(table.length)] : [])),
  ) as [string[], string[]] // two names, two lists
  t.ok(part, 'a token reads its grant')
  t.equal(beside, part, 'and its revocation in the part with the same number')
})

t.test('no statement changes the key of a row', async (t) => {
  const keys = Object.fromEntries(
    Object.values(schema).map((table) => {
      const { name, columns, primaryKeys } = getTableConfig(table as never) // its builder made it
      const own = columns.filter((column) => column.primary || (column.isUnique && column.name === 'id'))
      return [name, [...own, ...primaryKeys.flatMap((key) => key.columns)].map((column) => column.name)]
    }),
  )
  let updates = 0
  for (const [name, query] of Object.entries(buildWrites(dialect))) {
    const text = query.toSQL().sql
    const updated = /^update "(\w+)" set (.*) where /.exec(text)
    const [, table = '', set = ''] = updated ?? /^insert into "(\w+)" .* do update set (.*)$/.exec(text) ?? []
    if (table === '') continue
    updates += 1
    const columns = [...set.matchAll(/(?:^|, )"(\w+)" = /g)].map(([, column]) => column)
    t.ok(columns.length > 0, `${name} sets something`)
    for (const key of keys[table] ?? ['no such table']) t.notOk(columns.includes(key), `${name}: ${key}`)
  }
  t.ok(updates >= 15, `${updates} statements update`)
})

t.test('a store that is distributed by hash passes every test of grants', async (t) => {
  const url = await distributedDatabase()
  const tables = Object.values(schema).map((table) => getTableName(table))
  const openEmpty = async (t: Test) => {
    await runOnce(url, `truncate ${tables.join(', ')}`)
    const store = await openStore(url, patient)
    t.teardown(() => store.close())
    return store
  }
  grantWrites(t, openEmpty)
  concurrency(t, openEmpty)
  sweeps(t, openEmpty)
})

/** The parts of the audit log that a statement reads when it runs. */
async function partsRead(client: pg.Client, { text, values }: Ran): Promise<readonly string[]> {
  const { rows: explained } = await client.query(`explain (analyze, format json) ${text}`, [...values])
  const nodes: readonly PlanNode[] = nodesOf(explained[0]?.['QUERY PLAN'][0].Plan)
  return nodes.flatMap(({ 'Relation Name': name = '', 'Actual Loops': loops = 0 }) =>
    loops > 0 && /^audit_events/.test(name) ? [name] : [],
  )
}

t.test('of a log in partitions, a page reads the one with its numbers', async (t) => {
  const url = await postgres.createDatabase()
  const store = await openStore(url, patient)
  t.teardown(() => store.close())
  const boundary = (await partitionAuditLog(url, 1000, 0)) ?? 0
  const names = [1, boundary, 2 * boundary - 2].map((first) => `audit_events_${first}`)
  const client = new pg.Client(url)
  await client.connect()
  t.teardown(() => client.end())
  const event = insert('auditEvent', { ...sample.auditEvent, userId: 'account 9' })
  for (const last of [1, boundary + 30_000, 2 * boundary + 30_000]) {
    await client.query(`select setval('audit_events_seq_seq', ${last})`)
    await store.write(...Array.from({ length: 300 }, () => event))
  }
  await client.query('analyze')
  const ran = recordPostgres(t)
  const read = async (work: () => Promise<unknown>) => {
    ran.clear()
    await work()
    const parts = new Set<string>()
    for (const statement of [...ran.values()])
      for (const part of await partsRead(client, statement)) parts.add(part)
    return [...parts]
  }
  t.strictSame(await read(() => store.auditPage({ limit: 5 })), names.slice(2), 'the newest')
  t.strictSame(
    await read(() => store.auditPage({ limit: 5, before: boundary + 30_200 })),
    [names[1]],
    'another',
  )
  t.strictSame(
    await read(() => store.auditPage({ limit: 5, userId: 'account 9' })),
    names.slice(2),
    'of a user',
  )
  t.strictSame(await read(() => store.auditFrom({ limit: 5, userId: 'account 9' })), [names[0]], 'the oldest')
  ran.clear()
  await store.write(event, event)
  t.strictSame(await partsRead(client, ran.get('insert auditEvent') as Ran), ['audit_events'], 'it routes')
  t.strictSame(
    await read(() => store.sweep(nothingDue)),
    ['audit_events', names[0]],
    'the sweep looks at the oldest',
  )
})
