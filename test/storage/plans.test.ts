/**
 * How the databases find the rows that requests need. The test does not repeat the statements: it calls every endpoint
 * of a server, records what the driver runs, and asks the database for its plan.
 */

import Database from 'better-sqlite3'
import { getTableName } from 'drizzle-orm'
import pg from 'pg'
import t, { type Test } from 'tap'
import { consentKind } from '../../src/domain/connections.ts'
import { insert, put, type Write } from '../../src/domain/decision.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import { openStore } from '../../src/storage/open.ts'
import * as schema from '../../src/storage/postgres/schema.ts'
import { runnerOf } from '../../src/storage/sqlite/prepared.ts'
import type { Store, SweepBounds } from '../../src/storage/store.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import { callApi, obtainCode, obtainTokens, postAs, refresh, register, type Tokens } from '../helpers/flow.ts'
import { patient } from '../helpers/nodes.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { concurrency, grantWrites } from './decisions.suite.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'
import { grantOwners } from './store.suite.ts'
import { sweeps } from './sweep.suite.ts'

/** So many rows that no planner considers a full scan cheap. */
const rows = 1000

/** The rows of a used store: many of every kind that requests look up. */
async function fill(store: Store): Promise<void> {
  await store.write(...grantOwners)
  const lane = async (first: number) => {
    for (let n = first; n < rows; n += lanes * share) {
      await store.write(...Array.from({ length: share }, (_, k) => recordsOf(n + k)).flat())
    }
  }
  await Promise.all(Array.from({ length: lanes }, (_, k) => lane(k * share)))
}

/** How many transactions fill a store at once, and how many rows of each kind they insert. */
const [lanes, share] = [4, 5]

function recordsOf(n: number): Write[] {
  const expiresAt = 4_000_000_000
  const [userId, clientId] = [`account ${n}`, `client ${n}`]
  return [
    insert('user', { ...sample.user, id: userId, username: `user ${n}` }),
    insert('client', { ...sample.client, origin: 'integration', id: clientId }),
    insert('session', { ...sample.session, id: sample.digest(n), idleExpiresAt: expiresAt }),
    insert(interactionKind, { ...sample.interaction, id: `interaction ${n}`, expiresAt }),
    put(throttleKind, { key: `throttle ${n}`, failures: 1, expiresAt }),
    put(consentKind, { ...sample.consent, clientId }),
    insert(passkeyKind, { ...sample.passkey, id: `passkey ${n}`, userId }),
    put(secondFactorKind, { ...sample.secondFactor, userId }),
    // Each of the four partitions has as many rows as other tables.
    ...[0, 1, 2, 3].map((part): Write => {
      return { op: 'insertGrant', grant: { ...sample.grant, id: sample.grantId(n + part * rows), expiresAt } }
    }),
    { op: 'revokeAccessToken', grantId: sample.grantId(n), tokenId: sample.bytes(n, 16), expiresAt },
  ]
}

const nothingDue: SweepBounds = {
  now: 2000,
  clientsUnusedSince: 0,
  unusedClientBytes: 134_217_728,
  clientsIdleSince: 0,
  rejectionsKept: rows,
  auditedSince: 0,
}

/** Calls every endpoint of a client and of a browser once. */
async function wholeFlow(t: Test, server: TestServer): Promise<void> {
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const tokens = await obtainTokens(server, client, { agent, fields: { scope: 'openid courses:read' } })
  const next = (await (await refresh(server, client, tokens.refresh_token)).json()) as Tokens
  t.equal((await callApi(server, '/api/oauth/userinfo', next.access_token)).status, 200)
  t.equal((await callApi(server, '/api/courses', next.access_token)).status, 200)
  for (const path of ['/api/oauth/introspect', '/api/oauth/revoke']) {
    t.equal((await postAs(server, client, path, { token: next.access_token })).status, 200)
  }
  const other = await obtainTokens(server, client, { agent })
  t.equal((await postAs(server, client, '/api/oauth/revoke', { token: other.refresh_token })).status, 200)
  t.equal((await refresh(server, client, other.refresh_token)).status, 400)
  await obtainCode(server, client, { agent })
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

interface Ran {
  readonly text: string
  readonly values: readonly unknown[]
}

/** The prepared statements that run from here on, by name. */
function recordPostgres(t: Test): Map<string, Ran> {
  const ran = new Map<string, Ran>()
  const { query } = pg.Client.prototype
  // `as`: of the many forms of a call, the one that prepares.
  pg.Client.prototype.query = function (this: pg.Client, ...call: unknown[]) {
    const [config] = call as [{ name?: string; text: string; values?: readonly unknown[] }]
    if (typeof config === 'object' && config.name !== undefined)
      ran.set(config.name, { text: config.text, values: config.values ?? [] })
    return query.apply(this, call as never)
  } as typeof query
  t.teardown(() => {
    pg.Client.prototype.query = query
  })
  return ran
}

/** A node of a plan, as EXPLAIN returns it. */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Plan Rows': number
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

/** The kinds of access a request may have to a grant. */
const hot = [
  'find_grant',
  'find_grantOfToken',
  'transact_grantOfToken',
  'insertGrant',
  'redeemGrant',
  'rotateGrant',
  'revokeGrant',
  'revokeAccessToken',
]

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

/** The same columns in a table with four partitions. */
const distribution = `
  alter table grants rename to whole;
  create table grants (like whole including defaults) partition by hash (id);
  alter table grants add primary key (id);
  create index on grants (user_seq);
  create table grants_0 partition of grants for values with (modulus 4, remainder 0);
  create table grants_1 partition of grants for values with (modulus 4, remainder 1);
  create table grants_2 partition of grants for values with (modulus 4, remainder 2);
  create table grants_3 partition of grants for values with (modulus 4, remainder 3);
  drop table whole`

async function runOnce(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(text)
  await client.end()
}

/** A new database whose grants are distributed by hash. */
async function distributedDatabase(): Promise<string> {
  const url = await postgres.createDatabase()
  await (await openStore(url)).close()
  await runOnce(url, distribution)
  return url
}

t.test('with grants distributed by hash, each request reads exactly one partition', async (t) => {
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
})

t.test('a store with grants distributed by hash passes every test of grants', async (t) => {
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
