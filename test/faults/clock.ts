/** The clock of the machine jumps, and jumps back. */
import t from 'tap'
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
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const hour = 3600
const month = 30 * 24 * hour

/** A server with an open code, a used one, valid tokens, and revoked tokens. */
async function arranged(t: Parameters<typeof startServer>[0]) {
  const server = await startServer(t)
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const used = await obtainCode(server, client, { agent })
  const first = (await (await exchange(server, client, used)).json()) as Tokens
  const live = (await (await refresh(server, client, first.refresh_token)).json()) as Tokens
  const revoked = await obtainTokens(server, client, { agent })
  await postAs(server, client, '/api/oauth/revoke', { token: revoked.refresh_token })
  const open = await obtainCode(server, client, { agent })
  const statuses = async () => ({
    live: (await callApi(server, '/api/oauth/userinfo', live.access_token)).status,
    revoked: (await callApi(server, '/api/oauth/userinfo', revoked.access_token)).status,
    revokedRefresh: (await refresh(server, client, revoked.refresh_token)).status,
  })
  return { server, client, agent, used, first, live, revoked, open, statuses }
}

const alive = { live: 200, revoked: 401, revokedRefresh: 400 }
const expired = { live: 401, revoked: 401, revokedRefresh: 400 }

const jumps = [
  { name: 'an hour ahead', seconds: hour, tokens: expired, codeWorks: false, familyWorks: true },
  { name: 'an hour back', seconds: -hour, tokens: alive, codeWorks: true, familyWorks: true },
  { name: '30 days ahead', seconds: month, tokens: expired, codeWorks: false, familyWorks: false },
  { name: '30 days back', seconds: -month, tokens: alive, codeWorks: true, familyWorks: true },
] as const

for (const { name, seconds, tokens: expected, codeWorks, familyWorks } of jumps) {
  t.test(`after a jump ${name}, used and revoked tokens stay so, and new requests succeed`, async (t) => {
    const { server, client, used, live, open, first, statuses } = await arranged(t)
    t.strictSame(await statuses(), alive)
    server.advance(seconds)
    t.strictSame(await statuses(), expected)
    t.equal((await exchange(server, client, open)).status, codeWorks ? 200 : 400, 'the open code')
    t.equal((await refresh(server, client, live.refresh_token)).status, familyWorks ? 200 : 400, 'the family')
    const tokens = await obtainTokens(server, client, { user: alice })
    t.equal((await callApi(server, '/api/oauth/userinfo', tokens.access_token)).status, 200, 'a new user')
    t.equal((await refresh(server, client, tokens.refresh_token)).status, 200)
    t.equal((await refresh(server, client, first.refresh_token)).status, 400, 'a token rotated twice')
    t.equal((await exchange(server, client, used)).status, 400, 'a code used before')
    t.equal((await fetch(`${server.issuer}/readyz`)).status, 200)
    t.notMatch(server.log.join(''), /"level":(50|60)/)
  })

  t.test(`a jump ${name} that is reversed loses only what was swept or used in between`, async (t) => {
    const { server, client, agent, live, open, statuses } = await arranged(t)
    const { config, store } = server.deps
    server.advance(seconds)
    const meanwhile = await obtainTokens(server, client, { user: alice })
    const bounds = {
      now: server.now(),
      clientsIdleSince: 0,
      clientsUnusedSince: server.now() - config.lifetimes.unusedClientSeconds,
      unusedClientBytes: 134_217_728,
      rejectionsKept: config.rejectionsKept,
      auditedSince: 0,
    }
    // The sweep may run then, too: it may delete what had expired by that clock, and nothing else.
    while ((await store.sweep(bounds)).rows > 0);
    server.advance(-seconds)
    const after = await statuses()
    t.equal(after.revoked, 401)
    t.equal(after.revokedRefresh, 400)
    t.equal(after.live, familyWorks ? 200 : 401)
    const redeemed = await exchange(server, client, open)
    t.equal(redeemed.status, seconds > 0 ? 400 : 200, 'the open code')
    t.equal((await refresh(server, client, live.refresh_token)).status, familyWorks ? 200 : 400)
    t.equal(
      (await refresh(server, client, meanwhile.refresh_token)).status,
      -seconds < config.lifetimes.refreshTokenIdleSeconds ? 200 : 400,
      'what was issued in between, unless it was unused for too long by now',
    )
    t.type(await obtainCode(server, client, { agent }), 'string')
    t.notMatch(server.log.join(''), /"level":(50|60)/)
  })
}

t.test('keys made while the clock ran ahead do not prevent the server from signing afterwards', async (t) => {
  const server = await startServer(t)
  const client = await register(server)
  server.advance(4 * month)
  await obtainTokens(server, client)
  await server.deps.keys.reload()
  server.advance(-4 * month)
  const { id_token: token } = await obtainTokens(server, client)
  t.type(token, 'string')
})
