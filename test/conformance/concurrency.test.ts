import t, { type Test } from 'tap'
import {
  authorizationUrl,
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  postAs,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { alice, type ServerOptions, startServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'

/** A server over a database file, a client, and a signed-in browser. */
async function start(t: Test, options: ServerOptions = {}) {
  const server = await startServer(t, { store: `sqlite:${t.testdir()}/lychgate.db`, ...options })
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  await obtainCode(server, client, { agent })
  return { server, client, agent }
}

const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make))
const bodies = async (responses: readonly Response[]) =>
  Promise.all(
    responses.map(async (response) => ({
      status: response.status,
      body: (await response.json()) as Tokens & { error?: string },
    })),
  )

/** Whether none of these tokens is valid any more. */
async function isDead(
  { server, client }: Awaited<ReturnType<typeof start>>,
  tokens: Tokens,
): Promise<boolean> {
  const api = await callApi(server, '/api/oauth/userinfo', tokens.access_token)
  const again = await refresh(server, client, tokens.refresh_token)
  return (
    api.status === 401 &&
    again.status === 400 &&
    ((await again.json()) as { error: string }).error === 'invalid_grant'
  )
}

t.test(
  '[rfc6749-4.1.2-code-single-use] [rfc6749-4.1.2-code-replay-revokes] one of 50 simultaneous redemptions succeeds, and the replays revoke its tokens',
  async (t) => {
    const started = await start(t)
    const { server, client, agent } = started
    for (const round of [1, 2, 3]) {
      const code = await obtainCode(server, client, { agent })
      const responses = await bodies(await times(50, () => exchange(server, client, code)))
      const [winner, ...others] = responses.filter(({ status }) => status === 200)
      t.equal(others.length, 0, `round ${round}`)
      const rejected = responses.filter(
        ({ status, body }) => status === 400 && body.error === 'invalid_grant',
      )
      t.equal(rejected.length, 49)
      t.ok(winner && (await isDead(started, winner.body)))
    }
  },
)

t.test(
  '[oauth21-7.5.2-replay-only-if-valid] 49 simultaneous redemptions with a wrong verifier neither succeed nor revoke the right one',
  async (t) => {
    const { server, client, agent } = await start(t)
    const code = await obtainCode(server, client, { agent })
    let asked = 0
    const responses = await bodies(
      await times(50, () => {
        asked += 1
        return exchange(server, client, code, asked === 25 ? {} : { code_verifier: 'w'.repeat(43) })
      }),
    )
    const won = responses.filter(({ status }) => status === 200)
    t.equal(won.length, 1)
    const [winner] = won
    t.equal((await callApi(server, '/api/oauth/userinfo', winner?.body.access_token)).status, 200)
    t.equal((await refresh(server, client, winner?.body.refresh_token ?? '')).status, 200)
  },
)

t.test('50 simultaneous refreshes all return the same working successor', async (t) => {
  const { server, client, agent } = await start(t)
  const { refresh_token: first } = await obtainTokens(server, client, { agent })
  const responses = await bodies(await times(50, () => refresh(server, client, first)))
  t.ok(responses.every(({ status }) => status === 200))
  const successors = new Set(responses.map(({ body }) => body.refresh_token))
  t.equal(successors.size, 1)
  const [next = ''] = successors
  t.not(next, first)
  for (const { body } of responses.slice(0, 5)) {
    t.equal((await callApi(server, '/api/oauth/userinfo', body.access_token)).status, 200)
  }
  t.equal((await refresh(server, client, next)).status, 200)
})

t.test(
  '[rfc9700-4.14.2-reuse-revokes-family] without a reuse window one of 50 simultaneous refreshes succeeds, and the family is revoked',
  async (t) => {
    const started = await start(t, { lifetimes: { refreshReuseSeconds: 0 } })
    const { server, client, agent } = started
    const tokens = await obtainTokens(server, client, { agent })
    const responses = await bodies(await times(50, () => refresh(server, client, tokens.refresh_token)))
    const [winner, ...others] = responses.filter(({ status }) => status === 200)
    t.equal(others.length, 0)
    t.equal(
      responses.filter(({ status, body }) => status === 400 && body.error === 'invalid_grant').length,
      49,
    )
    t.ok(winner && (await isDead(started, winner.body)))
    t.ok(await isDead(started, tokens))
  },
)

t.test(
  '[rfc7009-2.1-refresh-cascades] [rfc7009-2.1-immediate] a revocation during refreshes invalidates every token, whichever is committed first',
  async (t) => {
    const started = await start(t)
    const { server, client, agent } = started
    for (let round = 0; round < 8; round += 1) {
      const tokens = await obtainTokens(server, client, { agent })
      const token = tokens.refresh_token
      const refreshing = times(5, () => refresh(server, client, token))
      const revoking = postAs(server, client, '/api/oauth/revoke', { token })
      const more = times(round, () => refresh(server, client, token))
      t.equal((await revoking).status, 200)
      const responses = [...(await refreshing), ...(await more)]
      for (const { status, body } of await bodies(responses)) {
        if (status === 200) t.ok(await isDead(started, body))
        else t.match({ status, body }, { status: 400, body: { error: 'invalid_grant' } })
      }
      t.ok(await isDead(started, tokens))
    }
  },
)

t.test('two tabs that approve one consent page get one code', async (t) => {
  const { server, client, agent } = await start(t)
  const consent = await openConsent()
  const landings = await times(10, () => agent.submit(consent, { decision: 'approve' }))
  const codes = landings.flatMap((landing) =>
    landing.at === 'redirect' ? [landing.location.searchParams.get('code')] : [],
  )
  t.equal(codes.length, 1)
  for (const landing of landings) {
    if (landing.at === 'page') t.match(landing.page, { status: 400, html: /already used, or it has expired/ })
  }
  t.equal((await exchange(server, client, codes[0] ?? '')).status, 200)

  async function openConsent(): Promise<Page> {
    const landing = await agent.open(authorizationUrl(server, client))
    if (landing.at !== 'page') throw new Error('no consent page')
    return landing.page
  }
})

t.test('approving in one tab while denying in the other gives one response', async (t) => {
  const { server, client, agent } = await start(t)
  for (let round = 0; round < 5; round += 1) {
    const landing = await agent.open(authorizationUrl(server, client))
    if (landing.at !== 'page') throw new Error('no consent page')
    const { page } = landing
    const responses = await Promise.all([
      agent.submit(page, { decision: 'approve' }),
      agent.submit(page, { decision: 'deny' }),
    ])
    t.equal(responses.filter(({ at }) => at === 'redirect').length, 1, `round ${round}`)
  }
})

t.test('parallel sign-ins in one browser leave one session', async (t) => {
  const { server, client } = await start(t)
  const agent = new UserAgent(server.issuer)
  const landing = await agent.open(authorizationUrl(server, client))
  if (landing.at !== 'page') throw new Error('no sign-in page')
  const landings = await times(3, () => agent.submit(landing.page, alice))
  t.ok(landings.every(({ at }) => at === 'page'))
  const again = await agent.open(authorizationUrl(server, client))
  t.match(again, { at: 'page', page: { status: 200, html: /approve/ } })
})
