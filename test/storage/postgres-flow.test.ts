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
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, introspect } from '../helpers/wire.ts'
import { startPostgres } from './postgres-server.ts'

const postgres = await startPostgres(t)
const server = await startServer(t, { store: await postgres.createDatabase() })
const client = await register(server)
const agent = new UserAgent(server.issuer)
const fifty = <T>(make: () => Promise<T>) => Promise.all(Array.from({ length: 50 }, make))

t.test('the whole flow runs over PostgreSQL, from registration to revocation', async (t) => {
  const tokens = await obtainTokens(server, client, {
    agent,
    fields: { scope: 'openid profile courses:read' },
  })
  t.match(await (await callApi(server, '/api/oauth/userinfo', tokens.access_token)).json(), {
    name: /^Alice/,
  })
  t.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 200)
  const next = (await (await refresh(server, client, tokens.refresh_token)).json()) as Tokens
  const introspected = await postAs(server, client, '/api/oauth/introspect', { token: next.access_token })
  t.match(await introspected.json(), { active: true, client_id: client.id })
  t.equal((await postAs(server, client, '/api/oauth/revoke', { token: next.access_token })).status, 200)
  t.equal((await callApi(server, '/api/courses', next.access_token)).status, 401)
  t.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 200, 'the other one lives')
  t.equal((await postAs(server, client, '/api/oauth/revoke', { token: next.refresh_token })).status, 200)
  t.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 401)
})

t.test('one of 50 simultaneous redemptions succeeds, and the replays revoke its tokens', async (t) => {
  const code = await obtainCode(server, client, { agent })
  const responses = await fifty(() => exchange(server, client, code))
  const winners = responses.filter(({ status }) => status === 200)
  t.equal(winners.length, 1)
  t.equal(responses.filter(({ status }) => status === 400).length, 49)
  for (const winner of winners) {
    const { access_token: token } = (await winner.json()) as Tokens
    t.equal((await callApi(server, '/api/courses', token)).status, 401)
  }
})

t.test('50 simultaneous refreshes of one token get one successor', async (t) => {
  const { refresh_token: token } = await obtainTokens(server, client, { agent })
  const responses = await fifty(() => refresh(server, client, token))
  t.strictSame(new Set(responses.map(({ status }) => status)), new Set([200]))
  const successors = await Promise.all(
    responses.map(async (response) => ((await response.json()) as Tokens).refresh_token),
  )
  t.equal(new Set(successors).size, 1)
  t.equal((await refresh(server, client, successors[0] ?? '')).status, 200)
})

t.test('an exchanged token ends with its subject token, also when both happen at once', async (t) => {
  const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange'
  const app = await addClient(server, { grantTypes: ['authorization_code', 'refresh_token', grantType] })
  const ask = (token: string) =>
    postAs(server, app, '/api/oauth/token', {
      grant_type: grantType,
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    })
  const isActive = async (token: unknown) => (await introspect(server, app, String(token)))['active']
  for (let turn = 0; turn < 5; turn += 1) {
    const tokens = await obtainTokens(server, app, { agent })
    const { access_token: first } = (await (await ask(tokens.access_token)).json()) as Tokens
    t.equal(await isActive(first), true)
    const [next, chained] = await Promise.all([
      ask(tokens.access_token),
      ask(first),
      postAs(server, app, '/api/oauth/revoke', { token: tokens.refresh_token }),
    ])
    t.equal(await isActive(first), false)
    for (const response of [next, chained])
      if (response.status === 200)
        t.equal(await isActive(((await response.json()) as Tokens).access_token), false)
      else t.equal(response.status, 400)
  }
})
