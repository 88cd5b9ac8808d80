/** Codes and tokens on four nodes that share only a PostgreSQL: each step goes to another node than the one before. */

import t from 'tap'
import { put } from '../../src/domain/decision.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import { addDeviceClient, decide, poll, startDevice } from '../helpers/device.ts'
import {
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  postAs,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)
const server = await startServer(t, { nodes: 4, store: await postgres.createDatabase() })
const [one, two, three, four] = server.nodes
if (!one || !two || !three || !four) throw new Error('four nodes were asked for')
const client = await register(one)
const agent = new UserAgent(server.issuer)
const fields = { scope: 'openid courses:read' }

/** The statuses of the API for this token, for each node. */
async function seenBy(token: string): Promise<readonly number[]> {
  const responses = await Promise.all(server.nodes.map((node) => callApi(node, '/api/courses', token)))
  return responses.map(({ status }) => status)
}
const [alive, dead] = [
  [200, 200, 200, 200],
  [401, 401, 401, 401],
]

async function bodies(responses: readonly Response[]) {
  return Promise.all(
    responses.map(async (response) => ({
      status: response.status,
      ...((await response.json()) as Partial<Tokens> & { readonly error?: string }),
    })),
  )
}

/** This many simultaneous requests, spread over all nodes. */
async function atOnce(count: number, ask: (node: typeof one & {}) => Promise<Response>) {
  const asked = Array.from({ length: count }, (_, index) => ask(server.nodes[index % 4] ?? server))
  return bodies(await Promise.all(asked))
}

t.test('a code issued by one node is redeemed by another, and its tokens work on all', async (t) => {
  const code = await obtainCode(one, client, { fields })
  const response = await exchange(three, client, code)
  t.equal(response.status, 200)
  const tokens = (await response.json()) as Tokens
  t.strictSame(await seenBy(tokens.access_token), alive)
  t.equal((await exchange(four, client, code)).status, 400, 'and not once more, by nobody')
  t.strictSame(await seenBy(tokens.access_token), dead, 'which ends what it was redeemed for')
  t.equal((await refresh(two, client, tokens.refresh_token)).status, 400)
})

t.test(
  'one of 50 simultaneous redemptions over four nodes succeeds, and the replays revoke its tokens',
  async (t) => {
    for (const round of [1, 2, 3]) {
      const code = await obtainCode(server, client, { agent, fields })
      const responses = await atOnce(50, (node) => exchange(node, client, code))
      const [winner, ...others] = responses.filter(({ status }) => status === 200)
      t.equal(others.length, 0, `round ${round}`)
      t.equal(responses.filter(({ status, error }) => status === 400 && error === 'invalid_grant').length, 49)
      t.strictSame(await seenBy(winner?.access_token ?? ''), dead)
      t.equal((await refresh(two, client, winner?.refresh_token ?? '')).status, 400)
    }
  },
)

t.test(
  'one of 20 simultaneous polls of a device over four nodes gets the tokens, and they stay',
  async (t) => {
    const tv = await addDeviceClient(server)
    for (const round of [1, 2, 3]) {
      const device = await startDevice(server, tv)
      await decide(server, device.user_code)
      const responses = await atOnce(20, (node) => poll(node, tv, device))
      const [winner, ...others] = responses.filter(({ status }) => status === 200)
      t.equal(others.length, 0, `round ${round}`)
      t.equal(responses.filter(({ status, error }) => status === 400 && error === 'invalid_grant').length, 19)
      t.strictSame(await seenBy(winner?.access_token ?? ''), alive)
    }
  },
)

t.test(
  'a refresh token rotated by one node has the same successor at the others while that is unused',
  async (t) => {
    const { refresh_token: first } = await obtainTokens(server, client, { agent, fields })
    const responses = await atOnce(48, (node) => refresh(node, client, first))
    t.strictSame(new Set(responses.map(({ status }) => status)), new Set([200]))
    const successors = new Set(responses.map(({ refresh_token: next }) => next))
    t.equal(successors.size, 1)
    for (const { access_token: access = '' } of responses.slice(0, 4))
      t.strictSame(await seenBy(access), alive)

    const [second = ''] = successors
    const [next] = await bodies([await refresh(two, client, second)])
    t.equal(next?.status, 200)
    t.equal((await refresh(three, client, first)).status, 400, 'its successor was used, elsewhere')
    t.strictSame(await seenBy(next?.access_token ?? ''), dead)
    t.equal((await refresh(one, client, next?.refresh_token ?? '')).status, 400)
  },
)

t.test('the reuse window ends at the same time on all nodes', async (t) => {
  const tokens = await obtainTokens(server, client, { agent, fields })
  const [next] = await bodies([await refresh(one, client, tokens.refresh_token)])
  server.advance(10)
  t.equal((await refresh(two, client, tokens.refresh_token)).status, 400)
  t.strictSame(await seenBy(next?.access_token ?? ''), dead)
})

t.test('what one node revokes is rejected by all nodes once it has responded', async (t) => {
  const tokens = await obtainTokens(server, client, { agent, fields })
  const [next] = await bodies([await refresh(one, client, tokens.refresh_token)])
  const [access = '', token = ''] = [next?.access_token, next?.refresh_token]
  t.equal((await postAs(two, client, '/api/oauth/revoke', { token: access })).status, 200)
  t.strictSame(await seenBy(access), dead)
  t.strictSame(await seenBy(tokens.access_token), alive, 'and only it')
  t.equal((await postAs(three, client, '/api/oauth/revoke', { token })).status, 200)
  t.strictSame(await seenBy(tokens.access_token), dead)
  const introspected = await Promise.all(
    server.nodes.map((node) => postAs(node, client, '/api/oauth/introspect', { token })),
  )
  for (const response of introspected) t.strictSame(await response.json(), { active: false })
})

t.test('a revocation during refreshes at other nodes invalidates every token', async (t) => {
  for (let round = 0; round < 4; round += 1) {
    const { refresh_token: token, access_token: access } = await obtainTokens(server, client, {
      agent,
      fields,
    })
    const refreshing = atOnce(8 + round, (node) => refresh(node, client, token))
    t.equal((await postAs(three, client, '/api/oauth/revoke', { token })).status, 200)
    for (const { access_token: later } of await refreshing) {
      if (later !== undefined) t.strictSame(await seenBy(later), dead)
    }
    t.strictSame(await seenBy(access), dead)
  }
})

t.test(
  'all nodes sweep at the same time without blocking each other, and expired records are deleted',
  async (t) => {
    const now = server.now()
    const keys = Array.from({ length: 400 }, (_, index) => `bucket ${index}`)
    for (const [index, key] of keys.entries()) {
      const throttle = { key, failures: 1, expiresAt: index < 300 ? now - 1 : now + 100 }
      await one.deps.store.write(put(throttleKind, throttle))
    }
    const bounds = {
      now,
      clientsUnusedSince: 0,
      unusedClientBytes: 1e9,
      clientsIdleSince: 0,
      rejectionsKept: 100,
      auditedSince: 0,
    }
    for (let round = 0; round < 4; round += 1) {
      await t.resolves(Promise.all(server.nodes.map(({ deps }) => deps.store.sweep(bounds))))
    }
    const left = await Promise.all(keys.map((key) => two.deps.store.find(throttleKind, key)))
    t.strictSame(
      left.map((throttle) => throttle !== undefined),
      keys.map((_key, index) => index >= 300),
    )
  },
)
