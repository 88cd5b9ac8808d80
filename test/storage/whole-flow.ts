/** A store with many rows, what clients and browsers do with it, and the statements that run for that. */
import pg from 'pg'
import type { Test } from 'tap'
import { consentKind } from '../../src/domain/connections.ts'
import { insert, put, type Write } from '../../src/domain/decision.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import type { Store } from '../../src/storage/store.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import { callApi, obtainCode, obtainTokens, postAs, refresh, register, type Tokens } from '../helpers/flow.ts'
import type { TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import * as sample from './samples.ts'
import { grantOwners } from './store.suite.ts'

/** So many rows that no planner considers a full scan cheap. */
export const rows = 1000

/** The rows of a used store: many of every kind that requests look up. */
export async function fill(store: Store): Promise<void> {
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

/** Calls every endpoint of a client and of a browser once. */
export async function wholeFlow(t: Test, server: TestServer): Promise<void> {
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

export interface Ran {
  readonly text: string
  readonly values: readonly unknown[]
}

/** The prepared statements that run from here on, by name. */
export function recordPostgres(t: Test): Map<string, Ran> {
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

/** The kinds of access a request may have to a grant. */
export const hot = [
  'find_grant',
  'find_grantOfToken',
  'transact_grantOfToken',
  'insertGrant',
  'redeemGrant_exactly',
  'rotateGrant_exactly',
  'revokeGrant',
  'revokeAccessToken',
]
