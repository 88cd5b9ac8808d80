/** A grant lasts as long as anything issued from it, and is deleted then. */
import t, { type Test } from 'tap'
import { openHandle } from '../../src/domain/handle.ts'
import {
  exchange,
  obtainCode,
  obtainTokens,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, introspect, isAlive, startFlow } from '../helpers/wire.ts'

const [idle, absolute, access, brief] = [100, 250, 3600, 60]
const short = 'https://short.example/api'

// Refresh tokens expire long before access tokens do.
const { server, client, agent } = await startFlow(t, {
  lifetimes: { refreshTokenIdleSeconds: idle, refreshTokenAbsoluteSeconds: absolute },
  resources: [
    {
      identifier: short,
      name: 'Short',
      scopes: ['pages:read'],
      tokenFormat: 'opaque',
      accessTokenSeconds: brief,
    },
  ],
})
const code = (of: TestClient = client, fields = {}) => obtainCode(server, of, { agent, fields })

async function tokensFrom(response: Promise<Response>): Promise<Tokens> {
  const httpResponse = await response
  if (httpResponse.status !== 200) throw new Error(`${httpResponse.status} ${await httpResponse.text()}`)
  return (await httpResponse.json()) as Tokens
}

/** Whether the grant of this token is still stored. */
async function isStored(token: string): Promise<boolean> {
  const handle = openHandle(server.deps.keys.handles, token, 'code', 'access', 'refresh')
  if (handle === undefined) throw new Error('no token of this server')
  return (await server.deps.store.find('grant', handle.grantId)) !== undefined
}

/** Moves the clock and sweeps: a code that is not redeemed is deleted. */
async function sleep(t: Test, seconds: number): Promise<void> {
  const left = await code()
  server.advance(seconds)
  await server.maintain()
  t.notOk(await isStored(left), 'swept')
}

t.test(
  '[rfc6749-5.1-expires-in-number] [rfc9700-4.14.2-inactive-expiry] refresh tokens expire with the grant, its access tokens at their own time',
  async (t) => {
    let latest = await tokensFrom(exchange(server, client, await code()))
    for (const _round of [1, 2, 3]) {
      server.advance(80)
      latest = await tokensFrom(refresh(server, client, latest.refresh_token))
    }
    t.equal(latest.expires_in, access)
    const { exp, iat } = await introspect(server, client, latest.refresh_token)
    t.ok(Number(exp) - Number(iat) <= absolute - 240, 'the expiry of the grant, not the idle time')
    await sleep(t, idle)
    await assertRejected(t, await refresh(server, client, latest.refresh_token), 'invalid_grant')
    t.ok(await isAlive(server, latest.access_token))
    server.advance(access - idle - 20)
    t.ok(await isAlive(server, latest.access_token), 'to its end')
    await sleep(t, 60)
    t.notOk(await isAlive(server, latest.access_token))
    t.notOk(await isStored(latest.access_token), 'nothing is kept of it')
  },
)

t.test(
  '[rfc6749-5.1-expires-in-number] a token with a shorter lifetime, issued later, does not shorten an earlier one',
  async (t) => {
    const fields = { scope: 'openid pages:read', resource: [server.issuer, short] }
    const approved = await code(client, fields)
    const long = await tokensFrom(exchange(server, client, approved, { resource: server.issuer }))
    t.equal(long.expires_in, access)
    const later = await tokensFrom(refresh(server, client, long.refresh_token, { resource: short }))
    t.equal(later.expires_in, brief)
    await sleep(t, access - 20)
    t.ok(await isAlive(server, long.access_token))
    t.strictSame(await introspect(server, client, later.access_token), { active: false })
  },
)

t.test(
  '[rfc6749-5.1-expires-in-number] the token issued to the retry of a refresh has its full lifetime too',
  async (t) => {
    const first = await tokensFrom(exchange(server, client, await code()))
    const second = await tokensFrom(refresh(server, client, first.refresh_token))
    server.advance(7)
    const retried = await tokensFrom(refresh(server, client, first.refresh_token))
    await sleep(t, access - 4)
    t.notOk(await isAlive(server, second.access_token))
    t.ok(await isAlive(server, retried.access_token))
  },
)

t.test(
  '[rfc6749-5.1-expires-in-number] without refresh tokens the access token still outlives its code',
  async (t) => {
    const once = await register(server, { grant_types: ['authorization_code'] })
    const { access_token: token, expires_in: seconds } = await tokensFrom(
      exchange(server, once, await code(once)),
    )
    t.equal(seconds, access)
    await sleep(t, access - 20)
    t.ok(await isAlive(server, token))
    await sleep(t, 60)
    t.notOk(await isAlive(server, token))
    t.notOk(await isStored(token))
  },
)

t.test('a client with too many grants of one user loses the oldest, and the newest work', async (t) => {
  const server = await startServer(t, { limits: { grantsPerUserAndClient: 10 } })
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const tokens: Tokens[] = []
  for (let n = 0; n < 14; n += 1) {
    server.advance(1)
    tokens.push(await obtainTokens(server, client, { agent }))
  }
  const other = await register(server)
  const elsewhere = await obtainTokens(server, other, { agent })
  const works = ({ access_token: token }: Tokens) => isAlive(server, token)
  const alive = await Promise.all(tokens.map(works))
  t.strictSame(alive.slice(0, 4), [false, false, false, false])
  t.strictSame(alive.slice(4), Array(10).fill(true))
  t.ok(await works(elsewhere), 'another client is not touched')
  const refreshed = await refresh(server, client, tokens[0]?.refresh_token ?? '')
  t.match(await refreshed.json(), { error: 'invalid_grant' })
  const user = await server.deps.store.find('userByLogin', alice.username)
  const { page } = await server.deps.store.connections(user?.id ?? '', {
    now: server.now(),
    limit: 9,
    offset: 0,
  })
  t.equal(page.find(({ clientId }) => clientId === client.id)?.grants, 10)
})
