/**
 * A month of constant traffic in half a minute: no table may grow for ever. The test moves the clock of the
 * development server, whose scheduled work has caught up when a move is done; sweep, store and application are the
 * real ones.
 */

import Database from 'better-sqlite3'
import pg from 'pg'
import t, { type Test } from 'tap'
import { isMovable } from '../../src/dev/clock.ts'
import { insert, put, removeUser } from '../../src/domain/decision.ts'
import type { Client } from '../../src/domain/model.ts'
import { makeLink } from '../../src/users/one-time-links.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { createUser } from '../../src/users/rules/user.ts'
import {
  authorizationUrl,
  obtainCode,
  obtainTokens,
  postAs,
  redirectUri,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { alice, startServer, type TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'

const day = 86_400
/**
 * Every lifetime is below a week, so the tables of the second week are as large as they get. Records expire half a day
 * away from the hour of the traffic, so that the duration of a day's traffic does not matter.
 */
const options = {
  mode: 'dev',
  sweepSeconds: 3600,
  rejectionsKept: 12,
  auditSeconds: 3.5 * day,
  lifetimes: {
    refreshTokenIdleSeconds: 1.5 * day,
    refreshTokenAbsoluteSeconds: 3.5 * day,
    sessionAbsoluteSeconds: 1.5 * day,
    unusedClientSeconds: 2.5 * day,
    idleClientSeconds: 1,
    invitationSeconds: 0.5 * day,
  },
  keys: { rotationSeconds: 2.5 * day, publishAheadSeconds: day, reloadSeconds: 60 },
} as const

const operatorClient: TestClient = { id: 'integration', method: 'none', redirectUri }

interface Refreshed {
  readonly client: TestClient
  readonly token: string
}

/** One day: what users, clients and strangers do, and the records they leave. */
class Traffic {
  readonly #server: TestServer
  /** The user who stays. */
  readonly #alice: string
  /** Tokens that are refreshed every day until their grant has ended. */
  #refreshed: Refreshed[] = []
  #users: string[] = []
  #day = 0

  constructor(server: TestServer, alice: string) {
    this.#server = server
    this.#alice = alice
  }

  async day(): Promise<void> {
    this.#day += 1
    const server = this.#server
    const fields = await this.#join()
    const client = await register(server)
    await register(server)
    await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
    const agent = new UserAgent(server.issuer)
    const tokens = async () => obtainTokens(server, client, { agent, fields })

    this.#refreshed.push({ client, token: (await tokens()).refresh_token })
    await tokens()
    await obtainCode(server, client, { agent, fields })
    await obtainCode(server, operatorClient, { agent, fields })
    await postAs(server, client, '/api/oauth/revoke', { token: (await tokens()).access_token })
    await postAs(server, client, '/api/oauth/revoke', { token: (await tokens()).refresh_token })
    await this.#refreshAll()
    await this.#strangers(client)
    await makeLink(
      { config: server.deps.config, store: server.deps.store, random: server.deps.random },
      { purpose: 'invitation', userId: this.#alice },
      { by: 'operator', at: server.now() },
    )
    if (this.#users.length > 3) await this.#leave()
  }

  /** A new user, with every way to sign in. */
  async #join() {
    const { store, random } = this.#server.deps
    const [username, password] = [`user-${this.#day}`, 'known to all']
    const fields = { username, passwordHash: `known:${password}`, seeded: true }
    const user = createUser(fields, random(16), this.#server.now())
    const { id: userId } = user
    await store.write(
      insert('user', user),
      insert(passkeyKind, { ...sample.passkey, id: userId, userId }),
      put(secondFactorKind, { ...sample.secondFactor, userId }),
    )
    this.#users.push(userId)
    return { username, password }
  }

  async #leave(): Promise<void> {
    const userId = this.#users.shift() ?? ''
    await this.#server.deps.store.write(removeUser(userId, 0))
  }

  async #refreshAll(): Promise<void> {
    const going: Refreshed[] = []
    for (const { client, token } of this.#refreshed) {
      const response = await refresh(this.#server, client, token)
      const next = (await response.json()) as Partial<Tokens>
      if (next.refresh_token !== undefined) going.push({ client, token: next.refresh_token })
    }
    this.#refreshed = going
  }

  /** An abandoned request, a wrong password, and invalid tokens. */
  async #strangers(client: TestClient): Promise<void> {
    const agent = new UserAgent(this.#server.issuer, { 'user-agent': 'stranger' })
    const landing = await agent.open(authorizationUrl(this.#server, client))
    if (landing.at !== 'page') throw new Error('no page to sign in on')
    await agent.submit(landing.page, { username: `nobody-${this.#day}`, password: 'guessed' })
    for (let n = 0; n < 3; n += 1) await refresh(this.#server, client, `lyc_refresh_unknown${n}`)
  }
}

/** The number of rows of each table, by its name; of the keys those that sign. */
type Counts = ReadonlyMap<string, number>

const countOf = (table: string) =>
  `select count(*) as count from ${table}${table === 'keys' ? " where kind = 'signing'" : ''}`

/** Runs this many days, and counts each at its busiest. */
async function live(t: Test, server: TestServer, days: number, count: () => Promise<Counts>) {
  const { clock } = server.deps
  if (!isMovable(clock)) throw new Error('the clock cannot be moved')
  const client: Client = {
    ...sample.client,
    id: operatorClient.id,
    origin: 'integration',
    redirectUris: [redirectUri],
    consent: 'remember',
  }
  await server.deps.store.write(insert('client', client))
  const stays = await server.deps.store.find('userByLogin', alice.username)
  const traffic = new Traffic(server, stays?.id ?? '')
  const seen: Counts[] = []
  for (let n = 0; n < days; n += 1) {
    await traffic.day()
    seen.push(await count())
    // Moves the clock in steps, so that scheduled work runs when it is due.
    for (let step = 0; step < 3; step += 1) await clock.move({ advance: day / 3 })
  }
  t.equal(server.log.filter((line) => /"level":[456]0/.test(line)).length, 0, 'nothing failed')
  return seen
}

/** More than on another day: rejections are written later, a sweep may come after the count, and a key is added. */
const slack: Readonly<Record<string, number>> = { rejections: 12, records: 5 }
const slackOf = (table: string) => slack[table] ?? 2

/** The last days have as many rows as the same number of days after the first week. */
function assertFlat(t: Test, seen: readonly Counts[], window: number): void {
  const most = (days: readonly Counts[], table: string) =>
    Math.max(...days.map((counts) => counts.get(table) ?? 0))
  for (const table of seen[0]?.keys() ?? []) {
    const [then, last] = [most(seen.slice(7, 7 + window), table), most(seen.slice(-window), table)]
    t.ok(then > 0, `${table} is used`)
    t.ok(last <= then + slackOf(table), `${table}: ${last} in the end, ${then} after a week`)
  }
}

t.test('over a month on SQLite the tables and the file stop growing after the second week', async (t) => {
  const file = `${t.testdir()}/lychgate.db`
  const server = await startServer(t, { ...options, store: `sqlite:${file}` })
  const beside = new Database(file, { readonly: true })
  t.teardown(() => beside.close())
  const tables = beside
    .prepare("select name from sqlite_schema where type = 'table' and name not glob '*_*migrations'")
    .pluck()
    .all()
    .map(String)
    .filter((name) => !name.startsWith('sqlite_'))
  const sizes: number[] = []
  const seen = await live(t, server, 30, async () => {
    sizes.push(Number(beside.pragma('page_count', { simple: true })))
    return new Map(tables.map((table) => [table, Number(beside.prepare(countOf(table)).pluck().get())]))
  })
  assertFlat(t, seen, 7)
  const [second = 0, last = 0] = [sizes[13], sizes.at(-1)]
  t.ok(last <= second * 1.1, `${last} pages after a month, ${second} after two weeks`)
})

t.test('over two weeks on PostgreSQL the tables stop growing after the first', async (t) => {
  const url = await (await startPostgres(t)).createDatabase()
  const server = await startServer(t, { ...options, store: url })
  const beside = new pg.Client(url)
  await beside.connect()
  t.teardown(() => beside.end())
  const found = await beside.query("select tablename from pg_tables where schemaname = 'public'")
  const tables = found.rows.map(({ tablename }) => String(tablename))
  const seen = await live(t, server, 15, async () => {
    const counts = new Map<string, number>()
    for (const table of tables) counts.set(table, Number((await beside.query(countOf(table))).rows[0]?.count))
    return counts
  })
  assertFlat(t, seen, 4)
})
